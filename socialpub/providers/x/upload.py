"""Bringing media to X: one call for a picture, a session of chunks for an animated GIF or a video.

The memo holds per file what X gave us for it, and by when it ends. Every step looks there first: what is there and
still good is not sent again, so a crash resumes, and a step that finds its upload gone goes back to its beginning.
"""

import math
from copy import deepcopy
from typing import Any

from socialpub.providers.bodies import FilePart
from socialpub.providers.content import ImageLimits, MediaFile
from socialpub.providers.errors import NoAnswer, ProviderError, Throttled
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Done, Memo, More, Outcome, Refused, Wait
from socialpub.providers.protocol import Kind, Step
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import limits
from socialpub.providers.x.errors import judge
from socialpub.providers.x.refusals import Why
from socialpub.providers.x.talk import ask, data_of, media_id_of, succeeded

EXTENSIONS = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
EXPIRES_AFTER_SECONDS = 24 * 3600
"""When X does not say."""
CHECK_AFTER_SECONDS = 5
ALT_TRIES = 5
RESTARTS = 1
IMAGE_MIN_BYTES = 500_000


def in_chunks(media: MediaFile) -> bool:
    """X takes pictures in one call; a GIF with a single frame is a picture."""
    return media.kind == "video" or media.animated


def steps(index: int, media: MediaFile) -> list[Step]:
    """What the upload of one media item takes, before the post."""
    names = ["init", "append", "finalize"] if in_chunks(media) else ["upload"]
    plan = [Step(f"{name}:{index}", Kind.PREPARE) for name in names]
    if in_chunks(media):
        plan.append(Step(f"await:{index}", Kind.POLL))
    if media.alt and media.kind == "image":
        plan.append(Step(f"alt:{index}", Kind.PREPARE))
    return plan


# --- what is remembered ----------------------------------------------------------------------------------------------


def recall(memo: Memo, index: int) -> dict[str, Any]:
    """What the memo knows about one upload: id, expires_at, ready_at (Unix seconds) and the session's progress."""
    return deepcopy(memo.get("media", {}).get(str(index), {}))


def remember(memo: Memo, index: int, upload: dict[str, Any]) -> Memo:
    """The memo with that instead. The old one is left alone: a step that fails half-way has changed nothing."""
    return {**memo, "media": {**memo.get("media", {}), str(index): upload}}


def ready(job: Job, index: int) -> bool:
    """X has the whole file, processed, and keeps it long enough for the post."""
    upload = recall(job.memo, index)
    return upload.get("ready_at") is not None and not _expired(job, upload)


def _expired(job: Job, upload: dict[str, Any]) -> bool:
    return bool(job.now.timestamp() >= upload.get("expires_at", 0))


def start_over(job: Job, index: int, because: str, limit: int, message: str, **kept: Any) -> Outcome:
    """Back to the first step of this upload, at most `limit` times for this reason; then refused with `message`."""
    counts = job.memo.get("restarts", {})
    reason = f"Media item {index + 1} is sent anew: {because}."
    if counts.get(reason, 0) >= limit:
        return Refused(message)
    memo = remember({**job.memo, "restarts": {**counts, reason: counts.get(reason, 0) + 1}}, index, kept)
    return Again(steps(index, job.content.media[index])[0].name, memo, reason, limit)


def lost(job: Job, index: int) -> Outcome:
    """X no longer has it, or will not have it long enough."""
    message = f"X kept media item {index + 1} for too short a time to post it. Post it again."
    return start_over(job, index, "X keeps uploads for a day, and this one is over", 2, message)


# --- pictures --------------------------------------------------------------------------------------------------------


def upload_image(job: Job, api: str, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    media = job.content.media[index]
    max_bytes = recall(job.memo, index).get("max_bytes", limits.IMAGE_BYTES)
    # What is drawn stays sharp as PNG; for everything else the file's own type comes first anyway.
    types = ("image/png", "image/jpeg") if media.mime_type == "image/gif" else limits.IMAGE_TYPES
    fitted = job.fit(media, ImageLimits(types, max_bytes, max_width=limits.IMAGE_SIDE, max_height=limits.IMAGE_SIDE))
    answer = ask(
        job,
        "POST",
        f"{api}/2/media/upload",
        multipart={"media_category": "tweet_image", "media": _slice(fitted, 0, fitted.size_bytes)},
    )
    if succeeded(answer):
        upload = _opened(job, answer)
        return Done(remember(job.memo, index, {**upload, "ready_at": job.now.timestamp()}))
    no = judge(answer, endpoint="POST /2/media/upload", now=job.now, media=True)
    if no.why is Why.TOO_LARGE and max_bytes // 2 >= IMAGE_MIN_BYTES:
        return start_over(job, index, "X found the picture too large", 4, no.message, max_bytes=max_bytes // 2)
    return no.refused()


# --- sessions of chunks ----------------------------------------------------------------------------------------------


def initialize(job: Job, api: str, index: int) -> Outcome:
    upload = recall(job.memo, index)
    if upload.get("id") and not _expired(job, upload):
        return Done(job.memo)
    media = job.content.media[index]
    answer = ask(
        job,
        "POST",
        f"{api}/2/media/upload/initialize",
        json={
            "media_type": media.mime_type,
            "total_bytes": media.size_bytes,
            "media_category": "tweet_video" if media.kind == "video" else "tweet_gif",
        },
    )
    if not succeeded(answer):
        return judge(answer, endpoint="POST /2/media/upload/initialize", now=job.now, media=True).refused()
    chunk = upload.get("chunk_bytes") or chunk_bytes(media.size_bytes)
    return Done(remember(job.memo, index, {**_opened(job, answer), "chunk_bytes": chunk, "segment": 0}))


def chunk_bytes(total_bytes: int) -> int:
    """A size that X's edge is known to take and that fits the file into a thousand segments."""
    return min(max(limits.CHUNK_BYTES, math.ceil(total_bytes / limits.SEGMENTS)), limits.CHUNK_MAX_BYTES)


def append(job: Job, api: str, index: int) -> Outcome:
    """Send segments until the file or this run's time is over."""
    if ready(job, index):
        return Done(job.memo)
    media, upload = job.content.media[index], recall(job.memo, index)
    if not upload.get("id") or _expired(job, upload):
        return lost(job, index)
    began_at, chunk = upload["segment"], upload["chunk_bytes"]
    while (offset := upload["segment"] * chunk) < media.size_bytes:
        if upload["segment"] > began_at and job.slice_over():
            return More(remember(job.memo, index, upload))
        try:
            answer = ask(
                job,
                "POST",
                f"{api}/2/media/upload/{upload['id']}/append",
                multipart={
                    "segment_index": str(upload["segment"]),
                    "media": _slice(media, offset, min(chunk, media.size_bytes - offset)),
                },
            )
            no = (
                None
                if succeeded(answer)
                else judge(answer, endpoint="POST /2/media/upload/append", now=job.now, media=True)
            )
        except ProviderError as error:
            if upload["segment"] == began_at:
                raise
            if isinstance(error, Throttled) and error.retry_after_seconds is not None:
                return Wait(error.retry_after_seconds, error.message, remember(job.memo, index, upload))
            # What went through is kept; the same call at the beginning of the next run tells what is wrong.
            return More(remember(job.memo, index, upload))
        if no is not None:
            if no.why is Why.TOO_LARGE and _may_halve(media, chunk):
                return start_over(job, index, "X found the pieces too large", 8, no.message, chunk_bytes=chunk // 2)
            return _restart(job, index, no.status, no.refused())
        upload["segment"] += 1
    return Done(remember(job.memo, index, upload))


def finalize(job: Job, api: str, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    upload = recall(job.memo, index)
    if not upload.get("id") or _expired(job, upload):
        return lost(job, index)
    # Without a JSON object as its body the call is refused.
    answer = ask(job, "POST", f"{api}/2/media/upload/{upload['id']}/finalize", json={})
    if not succeeded(answer):
        no = judge(answer, endpoint="POST /2/media/upload/finalize", now=job.now, media=True)
        return _restart(job, index, no.status, no.refused())
    data = data_of(answer)
    if isinstance(data.get("expires_after_secs"), int):
        upload["expires_at"] = _end_of(job, data["expires_after_secs"])
    processing = data.get("processing_info")
    if not isinstance(processing, dict) or processing.get("state") == "succeeded":
        return Done(remember(job.memo, index, {**upload, "ready_at": job.now.timestamp()}))
    if processing.get("state") == "failed":
        return _failed(job, index, processing)
    pause = _check_after(processing)
    return Done(remember(job.memo, index, {**upload, "pause": pause, "waits_since": job.now.timestamp()}))


def await_processing(job: Job, api: str, index: int) -> Outcome:
    if ready(job, index):
        return Done(job.memo)
    upload = recall(job.memo, index)
    if not upload.get("id") or _expired(job, upload):
        return lost(job, index)
    what = "video" if job.content.media[index].kind == "video" else "GIF"
    if pause := upload.pop("pause", None):
        return Wait(pause, f"X is processing the {what}", remember(job.memo, index, upload))
    answer = ask(job, "GET", f"{api}/2/media/upload", params={"command": "STATUS", "media_id": upload["id"]})
    if not succeeded(answer):
        no = judge(answer, endpoint="GET /2/media/upload", now=job.now, media=True)
        return _restart(job, index, no.status, no.refused())
    processing = data_of(answer).get("processing_info")
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


# --- alt text --------------------------------------------------------------------------------------------------------


def describe(job: Job, api: str, index: int) -> Outcome:
    """Give a picture its alt text. X does not insist on one, so the post goes out without it rather than not at all."""
    media, upload = job.content.media[index], recall(job.memo, index)
    if upload.get("described") or not media.alt:
        return Done(job.memo)
    if not upload.get("id"):
        return lost(job, index)
    try:
        answer = ask(
            job,
            "POST",
            f"{api}/2/media/metadata",
            json={"id": upload["id"], "metadata": {"alt_text": {"text": media.alt[: limits.ALT_LENGTH]}}},
        )
        failure = (
            None
            if succeeded(answer)
            else judge(answer, endpoint="POST /2/media/metadata", now=job.now, media=True).message
        )
    except NoAnswer as error:
        upload["alt_tries"] = upload.get("alt_tries", 0) + 1
        if upload["alt_tries"] < ALT_TRIES:
            pause = 5.0 * 2 ** upload["alt_tries"]
            return Wait(pause, "X did not take the alt text yet", remember(job.memo, index, upload))
        failure = error.message
    memo = remember(job.memo, index, {**upload, "described": True})
    if failure is not None:
        # Read by whoever shows the delivery.
        memo["notes"] = [*memo.get("notes", []), f"Published without the alt text of media item {index + 1}: {failure}"]
    return Done(memo)


# --- shared by the above ---------------------------------------------------------------------------------------------


def _opened(job: Job, answer: HttpResponse) -> dict[str, Any]:
    """The upload that an answer of X opened."""
    data = data_of(answer)
    lifetime = data.get("expires_after_secs")
    seconds = lifetime if type(lifetime) is int else EXPIRES_AFTER_SECONDS
    return {"id": media_id_of(answer), "expires_at": _end_of(job, seconds)}


def _end_of(job: Job, lifetime_seconds: int) -> float:
    """Until when an upload counts as good: a little less than X says, because the post takes its time too."""
    return job.now.timestamp() + lifetime_seconds - min(limits.EXPIRY_MARGIN_SECONDS, lifetime_seconds / 10)


def _slice(media: MediaFile, offset: int, length: int) -> FilePart:
    # The owner's file name is nobody's business.
    name = f"media.{EXTENSIONS.get(media.mime_type, 'bin')}"
    return FilePart(media.path, offset, length, name, media.mime_type)


def _may_halve(media: MediaFile, chunk: int) -> bool:
    half = chunk // 2
    return half >= limits.CHUNK_MIN_BYTES and math.ceil(media.size_bytes / half) <= limits.SEGMENTS


def _restart(job: Job, index: int, status: int, refused: Refused) -> Outcome:
    """A session that X does not know, or finds inconsistent (an answer got lost on the way), is worth a second one."""
    if status not in (400, 404):
        return refused
    chunk = recall(job.memo, index).get("chunk_bytes")
    return start_over(job, index, "X found the upload inconsistent", RESTARTS, refused.message, chunk_bytes=chunk)


def _failed(job: Job, index: int, processing: dict[str, Any]) -> Outcome:
    error = processing.get("error")
    said = error.get("message") or error.get("name") if isinstance(error, dict) else None
    words = f': "{said}"' if isinstance(said, str) else ""
    kind = job.content.media[index].kind
    advice = (
        "Encode it as MP4 (H.264 High, yuv420p, AAC, at most 60 frames a second)."
        if kind == "video"
        else "Save the GIF anew, or make it a video."
    )
    return Refused(f"X could not process media item {index + 1}{words}. {advice}", "processing-failed")


def _check_after(processing: dict[str, Any]) -> float:
    seconds = processing.get("check_after_secs")
    return max(1.0, float(seconds)) if isinstance(seconds, int | float) else float(CHECK_AFTER_SECONDS)
