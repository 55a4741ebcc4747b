"""Uploads media to X: an image in one call, an animated GIF or a video in a session of chunks.

Every step reads the memo first and does not send again what X still has, so a delivery resumes after a crash. A step
whose upload has expired goes back to the first step of the upload.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.base import (
    Again,
    Cause,
    Content,
    Done,
    ImageLimits,
    Job,
    Kind,
    MediaFile,
    Memo,
    More,
    Outcome,
    Refused,
    Step,
    Unfit,
    Wait,
)
from socialpub.providers.bodies import FilePart
from socialpub.providers.error_table import as_outcome
from socialpub.providers.responses import (
    HttpResponse,
    NoAnswer,
    ProviderError,
    Reason,
    Rejected,
    Throttled,
    read_lifetime,
)
from socialpub.providers.x import limits
from socialpub.providers.x.client import (
    SHORTEN_VIDEO,
    TOO_LONG_VIDEO,
    call,
    classify,
    read_data,
    read_id,
    require_data,
)

UPLOAD_IMAGE, INIT, APPEND, FINALIZE, AWAIT, ALT_TEXT = "upload", "init", "append", "finalize", "await", "alt"
"""In a step's name, `:` and the index of the media item follow."""

Upload = dict[str, Any]
"""One file in the memo: its id, expires_at, ready_at (Unix seconds) and the session's progress."""


def plan(content: Content) -> list[Step]:
    return [step for index, media in enumerate(content.media) for step in _plan_item(index, media)]


def _plan_item(index: int, media: MediaFile) -> Iterator[Step]:
    for name in (INIT, APPEND, FINALIZE) if limits.needs_chunks(media) else (UPLOAD_IMAGE,):
        yield Step(f"{name}:{index}", Kind.PREPARE)
    if limits.needs_chunks(media):
        yield Step(f"{AWAIT}:{index}", Kind.POLL)
    if media.alt and media.kind == "image":
        yield Step(f"{ALT_TEXT}:{index}", Kind.PREPARE)


EXTENSIONS = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
VIDEO_ADVICE = (
    "Convert the video to MP4 with H.264, 4:2:0 color and AAC, with at most 60 frames per second and "
    f"{limits.VIDEO_SURE_LONG_SIDE}×{limits.VIDEO_SURE_SHORT_SIDE} pixels."
)
IMAGE_ADVICE = "Save the image again as a JPEG of at most 2 MB, or use another image."
GIF_ADVICE = (
    f"Save the GIF again with at most {limits.GIF_FRAMES} frames and {limits.GIF_LONG_SIDE}×{limits.GIF_SHORT_SIDE} "
    "pixels, or convert it to a video."
)
CHECK_AFTER_SECONDS = 5
RESTARTS = 1
IMAGE_MIN_BYTES = 500_000


# --- images -----------------------------------------------------------------------------------------------------------


def upload_image(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    media = job.content.media[index]
    max_bytes = upload.get("max_bytes", limits.IMAGE_BYTES)
    as_jpeg = {"as_jpeg": True} if upload.get("as_jpeg") else {}
    types = ("image/jpeg",) if as_jpeg else limits.IMAGE_TYPES
    within = ImageLimits(types, max_bytes, max_width=limits.IMAGE_SIDE, max_height=limits.IMAGE_SIDE)
    try:
        fitted = job.fit(media, within)
    except Unfit:
        if not as_jpeg:
            raise
        # A tiny image cannot become smaller.
        fitted = job.fit(media, replace(within, max_bytes=limits.JPEG_SURE_BYTES))
    response = call(
        job,
        "POST",
        f"{section.api_url}/2/media/upload",
        multipart={"media_category": "tweet_image", "media": _slice(fitted, 0, fitted.size_bytes)},
    )
    if response.ok:
        sent = {"sent_type": fitted.mime_type, "sent_bytes": fitted.size_bytes}
        upload = {**read_upload(job, response), "ready_at": job.even_now.timestamp(), **sent}
        return Done(remember(job.memo, index, upload))
    rejection = _rejection(job, response, sent_bytes=True)
    if rejection.reason is Reason.TOO_LARGE and max_bytes // 2 >= IMAGE_MIN_BYTES:
        otherwise = Refused(rejection.message, content=True)
        return start_over(
            job, index, Cause.TOO_LARGE, "X found the image too large", 4, otherwise,
            max_bytes=max_bytes // 2, **as_jpeg,
        )  # fmt: skip
    return as_outcome(rejection)


def change(media: MediaFile, upload: Upload) -> Upload:
    """Return how the next upload of a refused file differs. An image becomes a JPEG, or a smaller JPEG."""
    if limits.needs_chunks(media):
        return {}
    max_bytes = limits.JPEG_SURE_BYTES
    if upload.get("sent_type") == "image/jpeg":
        max_bytes = min(max_bytes, upload["sent_bytes"] * 3 // 4)
    return {"as_jpeg": True, "max_bytes": max_bytes}


# --- sessions of chunks ----------------------------------------------------------------------------------------------


def initialize(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    media = _chunked(job, index)
    response = call(
        job,
        "POST",
        f"{section.api_url}/2/media/upload/initialize",
        json={
            "media_type": media.mime_type,
            "total_bytes": media.size_bytes,
            "media_category": "tweet_video" if media.kind == "video" else "tweet_gif",
        },
    )
    if not response.ok:
        return as_outcome(_rejection(job, response))
    chunk = upload.get("chunk_bytes") or chunk_bytes(media.size_bytes)
    return Done(remember(job.memo, index, {**read_upload(job, response), "chunk_bytes": chunk, "segment": 0}))


def chunk_bytes(total_bytes: int) -> int:
    """Return a size that X's edge accepts and that needs at most a thousand segments."""
    return min(max(limits.CHUNK_BYTES, math.ceil(total_bytes / limits.SEGMENTS)), limits.CHUNK_MAX_BYTES)


def append(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    media = _chunked(job, index)
    began_at, chunk = upload["segment"], upload["chunk_bytes"]
    while (offset := upload["segment"] * chunk) < media.size_bytes:
        if upload["segment"] > began_at and job.slice_over():
            return More(remember(job.memo, index, upload))
        try:
            response = call(
                job,
                "POST",
                f"{section.api_url}/2/media/upload/{upload['id']}/append",
                multipart={
                    "segment_index": str(upload["segment"]),
                    "media": _slice(media, offset, min(chunk, media.size_bytes - offset)),
                },
            )
            rejection = None if response.ok else _rejection(job, response, sent_bytes=True)
            if rejection is None:
                # A body is optional. An unreadable body is a page, so the segment is sent again.
                read_data(response)
        except ProviderError as error:
            if upload["segment"] == began_at:
                raise
            if isinstance(error, Throttled) and error.retry_after_seconds is not None:
                return Wait(error.retry_after_seconds, error.message, remember(job.memo, index, upload))
            # Earlier segments count. The same call in the next run shows the error.
            return More(remember(job.memo, index, upload))
        if rejection is not None:
            if rejection.reason is Reason.TOO_LARGE and _may_halve(media, chunk):
                otherwise = Refused(rejection.message, content=True)
                because = "X found the chunks too large"
                return start_over(job, index, Cause.TOO_LARGE, because, 8, otherwise, chunk_bytes=chunk // 2)
            return _restart(job, index, rejection)
        upload["segment"] += 1
    return Done(remember(job.memo, index, upload))


def finalize(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    # X refuses this call without a JSON object as its body.
    response = call(job, "POST", f"{section.api_url}/2/media/upload/{upload['id']}/finalize", json={})
    if not response.ok:
        return _restart(job, index, _rejection(job, response))
    data = require_data(response)
    if lifetime := read_lifetime(data.get("expires_after_secs")):
        upload["expires_at"] = usable_until(job, lifetime)
    processing = data.get("processing_info")
    if not isinstance(processing, dict) or processing.get("state") == "succeeded":
        return Done(remember(job.memo, index, {**upload, "ready_at": job.even_now.timestamp()}))
    if processing.get("state") == "failed":
        return _failed(job, index, processing)
    pause = _check_after(processing)
    return Done(remember(job.memo, index, {**upload, "pause": pause, "waits_since": job.even_now.timestamp()}))


def await_processing(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    what = "video" if job.content.media[index].kind == "video" else "GIF"
    if pause := upload.pop("pause", None):
        return Wait(pause, f"X is processing the {what}", remember(job.memo, index, upload))
    response = call(
        job, "GET", f"{section.api_url}/2/media/upload", params={"command": "STATUS", "media_id": upload["id"]}
    )
    if not response.ok:
        return _restart(job, index, _rejection(job, response))
    processing = require_data(response).get("processing_info")
    if not isinstance(processing, dict) or processing.get("state") == "succeeded":
        upload["ready_at"] = job.even_now.timestamp()
        return Wait(limits.SETTLING_SECONDS, f"X has just processed the {what}", remember(job.memo, index, upload))
    if processing.get("state") == "failed":
        return _failed(job, index, processing)
    waited = job.even_now.timestamp() - upload.setdefault("waits_since", job.even_now.timestamp())
    if waited > limits.PROCESSING_TIMEOUT_SECONDS:
        minutes = limits.PROCESSING_TIMEOUT_SECONDS // 60
        return Refused(
            f"X did not finish processing the {what} within {minutes} minutes. Convert the {what}, then create the "
            "post again."
        )
    progress = processing.get("progress_percent")
    percent = f" ({progress} %)" if type(progress) is int else ""
    return Wait(_check_after(processing), f"X is processing the {what}{percent}", remember(job.memo, index, upload))


def _chunked(job: Job, index: int) -> MediaFile:
    media = job.content.media[index]
    return media if media.kind == "video" else job.fit(media, ImageLimits((media.mime_type,), limits.GIF_BYTES))


def _slice(media: MediaFile, offset: int, length: int) -> FilePart:
    # The owner's file name stays private.
    name = f"media.{EXTENSIONS.get(media.mime_type, 'bin')}"
    return FilePart(media.path, offset, length, name, media.mime_type)


def _may_halve(media: MediaFile, chunk: int) -> bool:
    half = chunk // 2
    return half >= limits.CHUNK_MIN_BYTES and math.ceil(media.size_bytes / half) <= limits.SEGMENTS


def _rejection(job: Job, response: HttpResponse, *, sent_bytes: bool = False) -> Rejected:
    return classify(response, now=job.wall_now, media=True, sent_bytes=sent_bytes)


def _restart(job: Job, index: int, rejection: Rejected) -> Outcome:
    """Open a second session when X does not know this session or finds it inconsistent (a response was lost)."""
    if rejection.status not in (400, 404) or rejection.reason is Reason.TOO_LONG:
        return as_outcome(rejection)
    chunk = recall(job.memo, index).get("chunk_bytes")
    otherwise = Refused(rejection.message, content=rejection.reason is not Reason.GONE)
    because = "X found the upload inconsistent"
    return start_over(job, index, Cause.INCONSISTENT, because, RESTARTS, otherwise, chunk_bytes=chunk)


def _failed(job: Job, index: int, processing: dict[str, Any]) -> Outcome:
    error = processing.get("error")
    message = error.get("message") or error.get("name") if isinstance(error, dict) else None
    words = f': "{message}"' if isinstance(message, str) else ""
    is_video, said = job.content.media[index].kind == "video", words.lower()
    too_long = is_video and any(part in said for part in TOO_LONG_VIDEO)
    if too_long:
        advice = SHORTEN_VIDEO
    elif "duration too short" in said:
        advice = f"Use a video of at least {limits.VIDEO_MIN_SECONDS} seconds."
    else:
        advice = VIDEO_ADVICE if is_video else GIF_ADVICE
    message = f"X could not process media item {index + 1}{words}. {advice}"
    return Refused(message, "processing-failed", content=True, too_long=too_long)


def _check_after(processing: dict[str, Any]) -> float:
    seconds = processing.get("check_after_secs")
    return max(1.0, float(seconds)) if isinstance(seconds, int | float) else float(CHECK_AFTER_SECONDS)


# --- alt texts --------------------------------------------------------------------------------------------------------

ALT_TEXT_TRIES = 5


def set_alt_text(job: Job, section: XSection, index: int, upload: Upload) -> Outcome:
    """Set an image's alt text. X does not require alt text, so a failure never stops the post."""
    media = job.content.media[index]
    if upload.get("described") or not media.alt:
        return Done(job.memo)
    if not upload.get("id"):
        return start_over_expired(job, index)
    body = {"id": upload["id"], "metadata": {"alt_text": {"text": media.alt[: limits.ALT_LENGTH]}}}
    failure = None
    try:
        response = call(job, "POST", f"{section.api_url}/2/media/metadata", json=body)
        if response.ok:
            read_data(response)
        else:
            failure = classify(response, now=job.wall_now, media=True).message
    except NoAnswer as error:
        upload["alt_tries"] = upload.get("alt_tries", 0) + 1
        if upload["alt_tries"] < ALT_TEXT_TRIES:
            pause = 5.0 * 2 ** upload["alt_tries"]
            return Wait(pause, "X has not accepted the alt text yet", remember(job.memo, index, upload))
        failure = error.message
    memo = remember(job.memo, index, {**upload, "described": True})
    if failure is not None:
        memo["notes"] = [*memo.get("notes", []), f"Published without the alt text of media item {index + 1}: {failure}"]
    return Done(memo)


# --- the memo of one file ---------------------------------------------------------------------------------------------

EXPIRES_AFTER_SECONDS = 24 * 3600
"""The pause when X's response does not contain a time."""


def recall(memo: Memo, index: int) -> Upload:
    return deepcopy(memo.get("media", {}).get(str(index), {}))


def remember(memo: Memo, index: int, upload: Upload) -> Memo:
    """Return a new memo with this upload. The old memo stays unchanged, so a step that fails has no effect."""
    return {**memo, "media": {**memo.get("media", {}), str(index): upload}}


def read_upload(job: Job, response: HttpResponse) -> Upload:
    lifetime = read_lifetime(read_data(response).get("expires_after_secs")) or EXPIRES_AFTER_SECONDS
    return {"id": read_id(response, "upload"), "expires_at": usable_until(job, lifetime)}


def usable_until(job: Job, lifetime_seconds: int) -> float:
    """Return the end of the use of an upload, which is before X's end, because the post needs time."""
    return job.even_now.timestamp() + lifetime_seconds - min(limits.EXPIRY_MARGIN_SECONDS, lifetime_seconds / 10)


def ready(job: Job, index: int) -> bool:
    upload = recall(job.memo, index)
    return upload.get("ready_at") is not None and not _expired(job, upload)


def _expired(job: Job, upload: Upload) -> bool:
    return bool(job.even_now.timestamp() >= upload.get("expires_at", 0))


def start_over(job: Job, index: int, cause: Cause, because: str, limit: int, otherwise: Refused, **kept: Any) -> Again:
    reason = f"socialpub uploads media item {index + 1} again: {because}."
    step = next(_plan_item(index, job.content.media[index])).name
    return Again(step, remember(job.memo, index, kept), f"{cause}:{index}", reason, limit, otherwise=otherwise)


def start_over_expired(job: Job, index: int) -> Again:
    """Upload a file again that X no longer has or is about to remove."""
    message = f"The upload of media item {index + 1} at X expired before the post. Create the post again."
    because = "X keeps uploads for a day, and this upload has expired"
    return start_over(job, index, Cause.EXPIRED, because, 2, Refused(message))


# --- the steps --------------------------------------------------------------------------------------------------------

STEPS: Mapping[str, Callable[[Job, XSection, int, Upload], Outcome]] = {
    UPLOAD_IMAGE: upload_image,
    INIT: initialize,
    APPEND: append,
    FINALIZE: finalize,
    AWAIT: await_processing,
    ALT_TEXT: set_alt_text,
}


def run_step(name: str, job: Job, section: XSection, index: int) -> Outcome:
    """Run one step of an upload. A completed step does nothing, and a step without its upload starts over."""
    upload = recall(job.memo, index)
    is_known = bool(upload.get("id")) and not _expired(job, upload)
    if name != ALT_TEXT and (ready(job, index) or (name == INIT and is_known)):
        return Done(job.memo)
    if name in (APPEND, FINALIZE, AWAIT) and not is_known:
        return start_over_expired(job, index)
    return STEPS[name](job, section, index, upload)
