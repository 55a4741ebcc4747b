"""Prepares media for Pinterest: a video is uploaded before the pin, images are part of the call that creates the pin.

A video is registered at Pinterest, then sent to the storage in Pinterest's response. The signed form for the storage is
a secret for one upload and is never stored. One step registers and sends, and after any failure the next run registers
again.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from socialpub.core.settings.networks import PinterestSection
from socialpub.providers.base import (
    Again,
    Cause,
    Done,
    ImageLimits,
    Job,
    MediaFile,
    Outcome,
    Refused,
    Unfit,
    Wait,
    refuse_upload_address,
)
from socialpub.providers.bodies import Base64File, FilePart
from socialpub.providers.pinterest import limits, options
from socialpub.providers.pinterest.client import REQUEST_ID, TABLE, call, read_id, refusal
from socialpub.providers.pinterest.options import FIRST_FRAME
from socialpub.providers.responses import HttpResponse, NoAnswer, Reason, foreign_answer, json_object, text_at

UPLOAD, AWAIT = "upload", "await_processing"
FILE_NAMES = {"video/mp4": "video.mp4", "video/quicktime": "video.mov"}
UNTIL_DEADLINE = 1000
"""The delivery's own deadline is the only limit."""
FIRST_PAUSES = (1.0, 2.0, 4.0, 8.0)
LATER_PAUSES = ((600.0, 10.0), (3600.0, 60.0), (float("inf"), 300.0))
"""Seconds of waiting, and the pause between two polls until then: a Trial app has a thousand reads a day."""

FORGOTTEN = "Pinterest no longer knows the video. socialpub uploads the video again."
RESTARTS = {
    Cause.NOT_SENT: "The video is not uploaded yet. socialpub uploads the video.",
    Cause.INTERRUPTED: "The upload of the video was interrupted. socialpub uploads the video again.",
    Cause.NOT_ACCEPTED: "Pinterest's storage did not accept the video. socialpub uploads the video again.",
    Cause.FORGOTTEN: FORGOTTEN,
    Cause.NOT_PROCESSED: "Pinterest could not process the video. socialpub uploads the video again.",
}


def upload_video(job: Job, section: PinterestSection) -> Outcome:
    """Register the video and send it. A second run leaves an unused registration."""
    if (job.memo.get("video") or {}).get("uploaded_at"):
        return Done(job.memo)
    registered = _register(job, section)
    return _send(job, registered) if isinstance(registered, _Form) else registered


@dataclass(frozen=True, slots=True)
class _Form:
    media_id: str
    url: str = field(repr=False)
    fields: dict[str, str] = field(repr=False)


def _register(job: Job, section: PinterestSection) -> _Form | Outcome:
    response = call(job, "POST", f"{section.api_url}/media", json={"media_type": "video"})
    if not response.ok:
        return refusal(job, TABLE.classify(response))
    body = json_object(response)
    media_id, url, fields = (read_id(body, "media_id"), text_at(body, "upload_url"), body.get("upload_parameters"))
    if media_id is None or url is None or not _is_form(fields):
        raise NoAnswer("Pinterest's registration of the video could not be read.", request_id=_request_id(response))
    held = refuse_upload_address(url, section, "pinterest", "Pinterest")
    return held or _Form(media_id, url, fields)


def _send(job: Job, form: _Form) -> Outcome:
    media = job.content.media[0]
    part = FilePart(media.path, 0, media.size_bytes, FILE_NAMES[media.mime_type], media.mime_type)
    try:
        # The form is signed, so no token. Such storage requires the file last, and its length before the first byte.
        response = job.call("POST", form.url, multipart={**form.fields, "file": part})
    except NoAnswer as error:
        return _restart_upload(job, error.message)
    job.trace.request_id = response.headers.get("x-amz-request-id")
    if _is_accepted(response):
        upload = {"id": form.media_id, "uploaded_at": job.even_now.timestamp(), "polls": 0}
        return Done({**job.memo, "video": upload})
    code = _storage_code(response)
    job.trace.code = code or str(response.status)
    if code is None:
        foreign = foreign_answer(response, "Pinterest's storage")
        job.trace.message, job.trace.refused = foreign.message, foreign.refuses
        return _restart_upload(job, foreign.message)
    if not 400 <= response.status < 500 or response.status in (408, 429):
        return _restart_upload(job, f"Pinterest's storage responded with HTTP {response.status}, {code}.")
    if code == "EntityTooLarge":
        return Refused(
            f"Pinterest's storage refused the video as too large ({media.size_bytes} bytes). Use a smaller video.",
            code,
            content=True,
        )
    why = f"Pinterest's storage refused the video (HTTP {response.status}, {code}). Create the post again later."
    return _register_again(job, Cause.NOT_ACCEPTED, limit=3, otherwise=why, seconds=30.0)


def await_processing(job: Job, section: PinterestSection) -> Outcome:
    video = dict(job.memo.get("video") or {})
    if video.get("ready"):
        return Done(job.memo)
    if not video.get("uploaded_at"):
        return _register_again(job, Cause.NOT_SENT, limit=UNTIL_DEADLINE, otherwise=RESTARTS[Cause.NOT_SENT])
    response = call(job, "GET", f"{section.api_url}/media/{video['id']}")
    if not response.ok:
        rejection = TABLE.classify(response)
        return (
            register_forgotten(job, rejection.message) if rejection.reason is Reason.GONE else refusal(job, rejection)
        )
    status = text_at(json_object(response), "status")
    if status is None:
        raise NoAnswer("Pinterest did not report the state of the video.", request_id=_request_id(response))
    if status == "succeeded":
        return Done({**job.memo, "video": {**video, "ready": True}})
    if status == "failed":
        why = (
            "Pinterest could not process the video and did not report a reason. Encode the video as MP4 with H.264 "
            "and AAC, 4 seconds to 15 minutes long. Then create the post again."
        )
        return _register_again(job, Cause.NOT_PROCESSED, limit=1, otherwise=why, content=True)
    # `registered` is usual right after the upload, and an unknown status is not a verdict.
    waited = job.even_now.timestamp() - video["uploaded_at"]
    memo = {**job.memo, "video": {**video, "polls": video["polls"] + 1}}
    return Wait(pause_after(video["polls"], waited), "Pinterest is processing the video", memo)


def register_forgotten(job: Job, message: str) -> Outcome:
    return _register_again(job, Cause.FORGOTTEN, limit=1, otherwise=message)


def is_ready(job: Job) -> bool:
    return bool((job.memo.get("video") or {}).get("ready"))


def video_source(job: Job) -> dict[str, Any]:
    frame = job.options.get("coverImageKeyFrameTime", FIRST_FRAME)
    cover = cover_fields(job) or {"cover_image_key_frame_time": frame}
    return {"source_type": "video_id", "media_id": job.memo["video"]["id"], **cover}


def pause_after(polls: int, waited_seconds: float) -> float:
    if polls < len(FIRST_PAUSES):
        return FIRST_PAUSES[polls]
    return next(pause for until, pause in LATER_PAUSES if waited_seconds < until)


def _restart_upload(job: Job, message: str) -> Outcome:
    """Register again: it is unknown how much arrived."""
    otherwise = f"The video could not be uploaded to Pinterest. {message}"
    # The pauses grow, because every registration counts against the app's daily writes.
    seconds = float(min(5 * 2 ** min(job.times(Cause.INTERRUPTED), 10), 900))
    return _register_again(job, Cause.INTERRUPTED, limit=UNTIL_DEADLINE, otherwise=otherwise, seconds=seconds)


def _register_again(
    job: Job, cause: Cause, *, limit: int, otherwise: str, seconds: float = 0.0, content: bool = False
) -> Again:
    memo, refused = {**job.memo, "video": None}, Refused(otherwise, content=content)
    return Again(UPLOAD, memo, cause, RESTARTS[cause], limit, seconds, refused)


def _is_form(fields: Any) -> TypeGuard[dict[str, str]]:
    """Return whether all fields are text. A field `file` would replace ours."""
    return (
        isinstance(fields, dict)
        and "file" not in fields
        and all(isinstance(name, str) and isinstance(value, str) for name, value in fields.items())
    )


def _is_accepted(response: HttpResponse) -> bool:
    """Return whether the storage accepted the file: it responds with no body or with its own XML document."""
    body = response.body.strip()
    return response.ok and (not body or body.startswith((b"<?xml", b"<PostResponse")))


def _storage_code(response: HttpResponse) -> str | None:
    """Return the code in the storage's XML, such as `AccessDenied`. None: the response is not from the storage."""
    match = re.search(rb"<Code>([A-Za-z0-9]{1,60})</Code>", response.body[:4096])
    return match[1].decode() if match else None


def _request_id(response: HttpResponse) -> str | None:
    return response.headers.get(REQUEST_ID)


# --- images, including the cover of a video ---------------------------------------------------------------------------
#
# The call that creates the pin contains them as Base64. A separate step fits them, so that nothing between the
# announcement of that call and the call is slow or can fail.

ROUNDS = 6
"""Each round fits all images to the size of the smallest. Usually two rounds are enough."""


def fit_images(job: Job, section: PinterestSection) -> Outcome:  # noqa: ARG001
    chosen = _limits(job)
    for _ in range(ROUNDS):
        facts = [image.facts for image in _fitted(job, chosen)]
        sizes = [
            (image_facts["width"], image_facts["height"])
            for image_facts in facts
            if image_facts.get("width") and image_facts.get("height")
        ]
        if len(set(sizes)) <= 1 or len(sizes) < len(facts):
            sides = {"max_width": chosen.max_width, "max_height": chosen.max_height}
            return Done({**job.memo, "fit": {name: side for name, side in sides.items() if side is not None}})
        # An image that shrank to meet the byte limit makes the others smaller as well.
        chosen = replace(chosen, max_width=min(sizes)[0], max_height=min(height for _, height in sizes))
    raise Unfit("The images of the pin could not be fitted to one size. Use images of the same size, below 2 MB each.")


def image_source(job: Job) -> dict[str, Any]:
    fitted = _fitted(job, _limits(job))
    if len(fitted) == 1:
        return {"source_type": "image_base64", **_item(fitted[0])}
    return {"source_type": "multiple_image_base64", "items": [_item(image) for image in fitted]}


def cover_fields(job: Job) -> dict[str, Any]:
    if not has_cover(job):
        return {}
    (fitted,) = _fitted(job, _limits(job))
    item = _item(fitted)
    return {"cover_image_content_type": item["content_type"], "cover_image_data": item["data"]}


def has_cover(job: Job) -> bool:
    return job.content.has_video and options.COVER in job.options


def max_image_bytes(job: Job) -> int:
    """Return the limit of each image, which shrinks after Pinterest found the request too large."""
    usual = limits.IMAGE if len(job.content.media) == 1 else limits.CAROUSEL_IMAGE
    return int(job.memo.get("max_bytes", usual.max_bytes))


def _limits(job: Job) -> ImageLimits:
    fit = job.memo.get("fit", {})
    return ImageLimits(limits.IMAGE_TYPES, max_image_bytes(job), fit.get("max_width"), fit.get("max_height"))


def _fitted(job: Job, chosen: ImageLimits) -> Sequence[MediaFile]:
    return [job.fit(image, chosen) for image in _images(job)]


def _images(job: Job) -> Sequence[MediaFile]:
    if not has_cover(job):
        return job.content.media
    artifact_id = job.options[options.COVER]
    image = job.content.option_files.get(artifact_id)
    if image is None:
        raise Unfit(f"The cover image {artifact_id} is missing from storage. Upload the image again.")
    return [image]


def _item(image: MediaFile) -> dict[str, Any]:
    return {"content_type": image.mime_type, "data": Base64File(image.path, image.size_bytes)}
