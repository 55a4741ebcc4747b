"""Bringing media to X: one call for a picture, a session of chunks for an animated GIF or a video.

Every step looks at what the memo holds first (`upload_memo.py`): what is there and still good is not sent again.
"""

import math
from typing import Any

from socialpub.core.settings.networks import XSection
from socialpub.providers.bodies import FilePart
from socialpub.providers.content import ImageLimits, MediaFile
from socialpub.providers.error_table import Reason, Rejection
from socialpub.providers.errors import ProviderError, Throttled
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, More, Outcome, Refused, Wait
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import limits
from socialpub.providers.x.client import answered_data_of, call, data_of
from socialpub.providers.x.errors import classify
from socialpub.providers.x.upload_memo import (
    end_of,
    is_open,
    opened,
    ready,
    recall,
    remember,
    start_over,
    start_over_expired,
)

EXTENSIONS = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
CHECK_AFTER_SECONDS = 5
RESTARTS = 1
IMAGE_MIN_BYTES = 500_000


# --- pictures --------------------------------------------------------------------------------------------------------


def upload_image(job: Job, section: XSection, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    media = job.content.media[index]
    max_bytes = recall(job.memo, index).get("max_bytes", limits.IMAGE_BYTES)
    # What is drawn stays sharp as PNG; for everything else the file's own type comes first anyway.
    types = ("image/png", "image/jpeg") if media.mime_type == "image/gif" else limits.IMAGE_TYPES
    fitted = job.fit(media, ImageLimits(types, max_bytes, max_width=limits.IMAGE_SIDE, max_height=limits.IMAGE_SIDE))
    response = call(
        job,
        "POST",
        f"{section.api_url}/2/media/upload",
        multipart={"media_category": "tweet_image", "media": _slice(fitted, 0, fitted.size_bytes)},
    )
    if response.ok:
        upload = opened(job, response)
        return Done(remember(job.memo, index, {**upload, "ready_at": job.now.timestamp()}))
    rejection = _rejection(job, response, sent_bytes=True)
    if rejection.reason is Reason.TOO_LARGE and max_bytes // 2 >= IMAGE_MIN_BYTES:
        otherwise = Refused(rejection.message, content=True)
        return start_over(job, index, "X found the picture too large", 4, otherwise, max_bytes=max_bytes // 2)
    return rejection.refused()


# --- sessions of chunks ----------------------------------------------------------------------------------------------


def initialize(job: Job, section: XSection, index: int) -> Outcome:
    upload = recall(job.memo, index)
    if is_open(job, upload):
        return Done(job.memo)
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
        return _rejection(job, response).refused()
    chunk = upload.get("chunk_bytes") or chunk_bytes(media.size_bytes)
    return Done(remember(job.memo, index, {**opened(job, response), "chunk_bytes": chunk, "segment": 0}))


def chunk_bytes(total_bytes: int) -> int:
    """A size that X's edge is known to take and that fits the file into a thousand segments."""
    return min(max(limits.CHUNK_BYTES, math.ceil(total_bytes / limits.SEGMENTS)), limits.CHUNK_MAX_BYTES)


def append(job: Job, section: XSection, index: int) -> Outcome:
    """Send segments until the file or this run's time is over."""
    if ready(job, index):
        return Done(job.memo)
    media, upload = _chunked(job, index), recall(job.memo, index)
    if not is_open(job, upload):
        return start_over_expired(job, index)
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
                # No body is needed; one that cannot be read is a page, and the segment is sent again.
                data_of(response)
        except ProviderError as error:
            if upload["segment"] == began_at:
                raise
            if isinstance(error, Throttled) and error.retry_after_seconds is not None:
                return Wait(error.retry_after_seconds, error.message, remember(job.memo, index, upload))
            # What went through is kept; the same call at the beginning of the next run tells what is wrong.
            return More(remember(job.memo, index, upload))
        if rejection is not None:
            if rejection.reason is Reason.TOO_LARGE and _may_halve(media, chunk):
                otherwise = Refused(rejection.message, content=True)
                return start_over(job, index, "X found the pieces too large", 8, otherwise, chunk_bytes=chunk // 2)
            return _restart(job, index, rejection)
        upload["segment"] += 1
    return Done(remember(job.memo, index, upload))


def finalize(job: Job, section: XSection, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    upload = recall(job.memo, index)
    if not is_open(job, upload):
        return start_over_expired(job, index)
    # Without a JSON object as its body the call is refused.
    response = call(job, "POST", f"{section.api_url}/2/media/upload/{upload['id']}/finalize", json={})
    if not response.ok:
        return _restart(job, index, _rejection(job, response))
    data = answered_data_of(response)
    if isinstance(data.get("expires_after_secs"), int):
        upload["expires_at"] = end_of(job, data["expires_after_secs"])
    processing = data.get("processing_info")
    if not isinstance(processing, dict) or processing.get("state") == "succeeded":
        return Done(remember(job.memo, index, {**upload, "ready_at": job.now.timestamp()}))
    if processing.get("state") == "failed":
        return _failed(job, index, processing)
    pause = _check_after(processing)
    return Done(remember(job.memo, index, {**upload, "pause": pause, "waits_since": job.now.timestamp()}))


def await_processing(job: Job, section: XSection, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    upload = recall(job.memo, index)
    if not is_open(job, upload):
        return start_over_expired(job, index)
    what = "video" if job.content.media[index].kind == "video" else "GIF"
    if pause := upload.pop("pause", None):
        return Wait(pause, f"X is processing the {what}", remember(job.memo, index, upload))
    response = call(
        job, "GET", f"{section.api_url}/2/media/upload", params={"command": "STATUS", "media_id": upload["id"]}
    )
    if not response.ok:
        return _restart(job, index, _rejection(job, response))
    processing = answered_data_of(response).get("processing_info")
    if not isinstance(processing, dict) or processing.get("state") == "succeeded":
        upload["ready_at"] = job.now.timestamp()
        return Wait(limits.SETTLING_SECONDS, f"X has just processed the {what}", remember(job.memo, index, upload))
    if processing.get("state") == "failed":
        return _failed(job, index, processing)
    waited = job.now.timestamp() - upload.setdefault("waits_since", job.now.timestamp())
    if waited > limits.PROCESSING_PATIENCE_SECONDS:
        minutes = limits.PROCESSING_PATIENCE_SECONDS // 60
        return Refused(
            f"X did not finish processing the {what} within {minutes} minutes. Post it again, or re-encode it."
        )
    progress = processing.get("progress_percent")
    shown = f" ({progress} %)" if type(progress) is int else ""
    return Wait(_check_after(processing), f"X is processing the {what}{shown}", remember(job.memo, index, upload))


def _chunked(job: Job, index: int) -> MediaFile:
    """The file as it is sent: a GIF without its metadata."""
    media = job.content.media[index]
    return media if media.kind == "video" else job.fit(media, ImageLimits((media.mime_type,), limits.GIF_BYTES))


def _slice(media: MediaFile, offset: int, length: int) -> FilePart:
    # The owner's file name is nobody's business.
    name = f"media.{EXTENSIONS.get(media.mime_type, 'bin')}"
    return FilePart(media.path, offset, length, name, media.mime_type)


def _may_halve(media: MediaFile, chunk: int) -> bool:
    half = chunk // 2
    return half >= limits.CHUNK_MIN_BYTES and math.ceil(media.size_bytes / half) <= limits.SEGMENTS


def _rejection(job: Job, response: HttpResponse, *, sent_bytes: bool = False) -> Rejection:
    return classify(response, now=job.now, media=True, sent_bytes=sent_bytes)


def _restart(job: Job, index: int, rejection: Rejection) -> Outcome:
    """A session that X does not know, or finds inconsistent (an answer got lost on the way), is worth a second one."""
    if rejection.status not in (400, 404):
        return rejection.refused()
    chunk = recall(job.memo, index).get("chunk_bytes")
    otherwise = Refused(rejection.message, content=rejection.reason is not Reason.GONE)
    return start_over(job, index, "X found the upload inconsistent", RESTARTS, otherwise, chunk_bytes=chunk)


def _failed(job: Job, index: int, processing: dict[str, Any]) -> Outcome:
    error = processing.get("error")
    message = error.get("message") or error.get("name") if isinstance(error, dict) else None
    words = f': "{message}"' if isinstance(message, str) else ""
    kind = job.content.media[index].kind
    advice = (
        "Encode it as MP4 (H.264 High, yuv420p, AAC, at most 60 frames a second)."
        if kind == "video"
        else "Save the GIF anew, or make it a video."
    )
    return Refused(f"X could not process media item {index + 1}{words}. {advice}", "processing-failed", content=True)


def _check_after(processing: dict[str, Any]) -> float:
    seconds = processing.get("check_after_secs")
    return max(1.0, float(seconds)) if isinstance(seconds, int | float) else float(CHECK_AFTER_SECONDS)
