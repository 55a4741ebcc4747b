"""Pictures as Pinterest takes them, also as the cover of a video: inside the call that makes the pin, as Base64.

They are fitted in a step of their own, so that nothing slow or refusable is left between the announcement of that call
and the call. Its body is never in memory whole: the files are read while it is sent.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.bodies import Base64File
from socialpub.providers.content import ImageLimits, MediaFile
from socialpub.providers.job import Job, Unfit
from socialpub.providers.outcomes import Done, Outcome
from socialpub.providers.pinterest import limits, options

ROUNDS = 6
"""Each makes the common size that of the smallest picture; two are the rule."""


def fit(job: Job, section: PinterestSection) -> Outcome:  # noqa: ARG001
    """Find the limits within which every picture of the pin fits, all in one size, and remember them."""
    chosen = _limits(job)
    for _ in range(ROUNDS):
        sizes = [_size(picture) for picture in _fitted(job, chosen)]
        if len(set(sizes)) <= 1 or None in sizes:
            return Done({**job.memo, "fit": _side_limits(chosen)})
        # One that had to lose pixels to lose bytes brings the others down with it.
        known = [size for size in sizes if size is not None]
        chosen = replace(
            chosen, max_width=min(width for width, _ in known), max_height=min(height for _, height in known)
        )
    raise Unfit(
        "The pictures of the pin could not be brought to one size: give them in the same size, below 2 MB each."
    )


def source(job: Job) -> dict[str, Any]:
    """The `media_source` of a pin of pictures, with files in place of their Base64."""
    fitted = _fitted(job, _limits(job))
    if len(fitted) == 1:
        return {"source_type": "image_base64", **_item(fitted[0])}
    return {"source_type": "multiple_image_base64", "items": [_item(picture) for picture in fitted]}


def cover(job: Job) -> dict[str, Any]:
    """The fields of a video's own cover; empty when the owner chose none."""
    if not has_cover(job):
        return {}
    (fitted,) = _fitted(job, _limits(job))
    item = _item(fitted)
    return {"cover_image_content_type": item["content_type"], "cover_image_data": item["data"]}


def has_cover(job: Job) -> bool:
    return job.content.has_video and options.COVER in job.options


def bytes_allowed(job: Job) -> int:
    """How large each picture may be; less than at first when Pinterest found the whole too large."""
    usual = limits.IMAGE if len(job.content.media) == 1 else limits.CAROUSEL_IMAGE
    return int(job.memo.get("max_bytes", usual.max_bytes))


def _limits(job: Job) -> ImageLimits:
    found = job.memo.get("fit", {})
    return ImageLimits(limits.IMAGE_TYPES, bytes_allowed(job), found.get("max_width"), found.get("max_height"))


def _side_limits(chosen: ImageLimits) -> dict[str, int]:
    sides = {"max_width": chosen.max_width, "max_height": chosen.max_height}
    return {name: side for name, side in sides.items() if side is not None}


def _fitted(job: Job, chosen: ImageLimits) -> Sequence[MediaFile]:
    return [job.fit(picture, chosen) for picture in _pictures(job)]


def _pictures(job: Job) -> Sequence[MediaFile]:
    if not has_cover(job):
        return job.content.media
    artifact_id = job.options[options.COVER]
    found = job.content.option_files.get(artifact_id)
    if found is None:
        raise Unfit(f"The cover {artifact_id} is missing in socialpub's storage: upload it again.")
    return [found]


def _size(picture: MediaFile) -> tuple[int, int] | None:
    width, height = picture.facts.get("width"), picture.facts.get("height")
    return (width, height) if width and height else None


def _item(picture: MediaFile) -> dict[str, Any]:
    return {"content_type": picture.mime_type, "data": Base64File(picture.path, picture.size_bytes)}
