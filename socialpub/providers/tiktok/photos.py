"""Photos: fitted first, then handed to TikTok as addresses from which it fetches them.

That call is the commit. When its answer is lost, a task may exist without a known id: TikTok has no list to look at,
so the outcome stays unknown and nothing is sent again.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import Again, Done, ImageLimits, Job, MediaFile, More, Outcome, Refused
from socialpub.providers.errors import NoAnswer
from socialpub.providers.responses import text_at
from socialpub.providers.tiktok import check, limits, plan
from socialpub.providers.tiktok.client import call
from socialpub.providers.tiktok.creator import disabled
from socialpub.providers.tiktok.options import FIRST_PHOTO, is_draft
from socialpub.providers.tiktok.upload import brands

REFITS = 3


def fit_photos(job: Job, section: TikTokSection) -> Outcome:
    """Make versions that TikTok takes, before anything is announced: it can take a while."""
    fitted: list[dict[str, Any]] = list(job.memo.get("photos", ()))
    began_at = len(fitted)
    for photo in job.content.media[began_at:]:
        if len(fitted) > began_at and job.slice_over():
            return More({**job.memo, "photos": fitted})
        version = job.fit(photo, limits_for(photo))
        unreachable = check.unreachable(job.public_url(version), section)
        if unreachable is not None:
            return Refused(unreachable, "url_ownership_unverified")
        fitted.append({"path": str(version.path), "mime_type": version.mime_type, "size_bytes": version.size_bytes})
    return Done({**job.memo, "photos": fitted})


def limits_for(photo: MediaFile) -> ImageLimits:
    """Of a picture that moves the first frame is taken: a WebP that fits would be handed over as it is."""
    moves = int(photo.facts.get("frames", 1)) > 1
    return replace(limits.PHOTO, types=("image/jpeg",)) if moves else limits.PHOTO


def init_photos(job: Job, section: TikTokSection) -> Outcome:
    photos = [_version(photo, kept) for photo, kept in zip(job.content.media, job.memo["photos"], strict=True)]
    if not all(_is_whole(photo) for photo in photos):
        memo = {key: value for key, value in job.memo.items() if key != "photos"}
        return Again(plan.FIT_PHOTOS, memo, "A fitted version of a photo is gone; it is made again.", REFITS)
    data = call(
        job,
        section,
        "post/publish/content/init/",
        request_body(job, [job.public_url(photo) for photo in photos]),
    )
    publish_id = text_at(data, "publish_id")
    if publish_id is None:
        raise NoAnswer("TikTok took the photos but named no publish_id.", request_id=job.trace.request_id)
    job.trace.message = f"publish_id {publish_id}"
    return Done({**job.memo, "publish_id": publish_id})


def request_body(job: Job, addresses: list[str]) -> dict[str, Any]:
    chosen, draft = job.options, is_draft(job.options)
    info: dict[str, Any] = {}
    if "title" in chosen:
        info["title"] = chosen["title"]
    if job.content.text:
        info["description"] = job.content.text
    if not draft:
        info["privacy_level"] = chosen["privacyLevel"]
        info["disable_comment"] = disabled(job, "comment")
        info["auto_add_music"] = bool(chosen.get("autoAddMusic"))
        info.update(brands(job))
    return {
        "media_type": "PHOTO",
        "post_mode": "MEDIA_UPLOAD" if draft else "DIRECT_POST",
        "post_info": info,
        "source_info": {
            "source": "PULL_FROM_URL",
            "photo_cover_index": chosen.get("photoCoverIndex", FIRST_PHOTO),
            "photo_images": addresses,
        },
    }


def _is_whole(photo: MediaFile) -> bool:
    """A file that was cut short when the power went must not be what TikTok fetches."""
    try:
        return photo.path.stat().st_size == photo.size_bytes
    except FileNotFoundError:
        return False


def _version(photo: MediaFile, kept: Mapping[str, Any]) -> MediaFile:
    return replace(photo, path=Path(kept["path"]), mime_type=kept["mime_type"], size_bytes=kept["size_bytes"])
