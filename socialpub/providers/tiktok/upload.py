"""Uploads media to TikTok: photos by their URLs, a video in ordered chunks, of which the last is the commit.

Before the last chunk leaves, a task cannot become a post, so a new task may replace it. If it is unclear how much
arrived, TikTok's byte count decides. The last chunk makes the task a post, with any response of the upload host:

    earlier tries of it      event                                         result
    none can have left       the upload URL has expired                    a new task
    none can have left       the host of the URL is not listed             held
    any                      success, or TikTok counts every byte          wait for TikTok's verdict
    none can have left       anything else: a cut, a refusal, a page       unknown: the task is read back
    one may have left        anything else, even an expired URL            polled until the outcome is known

The same bytes may be sent to the same task again: the task becomes one post or none. Another task would be another
post, so no task begins after a try may have left. TikTok's byte count may lag, and a refusal may concern only the
second try: neither proves that the first try failed. The proof is a count that is still too low long after the address
has expired (`read_back.py`).
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.base import (
    Again,
    Cause,
    Done,
    Held,
    Job,
    MediaFile,
    Memo,
    More,
    Outcome,
    Refused,
    Unknown,
    Wait,
    Withdrawn,
    refuse_upload_address,
)
from socialpub.providers.bodies import FileBody
from socialpub.providers.responses import HttpResponse, NoAnswer, ProviderError, Rejected, foreign_answer, text_at
from socialpub.providers.tiktok import check, limits, options, read_back
from socialpub.providers.tiktok.client import UNKNOWN_TASK, call
from socialpub.providers.tiktok.creator import disabled
from socialpub.providers.tiktok.options import FIRST_PHOTO, INTERACTIONS, is_draft


@dataclass(frozen=True, slots=True)
class Chunks:
    """The chunks of a video. Each has `chunk_bytes`, and the last also has the remainder."""

    total_bytes: int
    chunk_bytes: int
    count: int

    def slice(self, index: int) -> tuple[int, int]:
        offset = index * self.chunk_bytes
        return offset, self.total_bytes - offset if index == self.count - 1 else self.chunk_bytes

    def content_range(self, index: int) -> str:
        offset, length = self.slice(index)
        return f"bytes {offset}-{offset + length - 1}/{self.total_bytes}"

    def next_after(self, received_bytes: int) -> int | None:
        """Return the chunk after these bytes, or `count` if all chunks arrived. None: the bytes end inside a chunk."""
        if received_bytes >= self.total_bytes:
            return self.count
        index, inside = divmod(received_bytes, self.chunk_bytes)
        return index if inside == 0 and index < self.count else None


def plan_chunks(total_bytes: int) -> Chunks:
    """Return one chunk if TikTok allows that, else chunks of TikTok's example size. The count is rounded down."""
    if total_bytes <= limits.ONE_CHUNK_BYTES:
        return Chunks(total_bytes, total_bytes, 1)
    return Chunks(total_bytes, limits.CHUNK_BYTES, total_bytes // limits.CHUNK_BYTES)


PAUSES_SECONDS = (2.0, 5.0, 15.0, 60.0)
"""The pauses between five tries of one chunk."""
NO_SUCH_UPLOAD = frozenset({401, 403, 404, 410})
OUT_OF_STEP = 416
PASSING = frozenset({408, 425, 429})
TAKEN = frozenset({200, 201, 206})
PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

NEW_TASK_LATER_SECONDS = 900.0
LAPSED = "The upload URL has expired."


# --- the task --------------------------------------------------------------------------------------------------------
#
# No bytes have left when TikTok responds, so a lost response costs only a place in the rate limit.


def init_video(job: Job, section: TikTokSection) -> Outcome:
    return _init(job, section, "post/publish/video/init/", {"post_info": post_info(job)})


def init_draft(job: Job, section: TikTokSection) -> Outcome:
    return _init(job, section, "post/publish/inbox/video/init/", {})


def post_info(job: Job) -> dict[str, Any]:
    """Return the `post_info` of a direct video. TikTok requires both brand fields in every call."""
    chosen = job.options
    info: dict[str, Any] = {"privacy_level": chosen["privacyLevel"]}
    if job.content.text:
        info["title"] = job.content.text
    info.update({f"disable_{name}": disabled(job, name) for name in INTERACTIONS})
    if "videoCoverTimestampMs" in chosen:
        info["video_cover_timestamp_ms"] = chosen["videoCoverTimestampMs"]
    info.update(brands(job))
    info["is_aigc"] = bool(chosen.get("isAigc"))
    return info


def brands(job: Job) -> dict[str, bool]:
    return {
        "brand_content_toggle": bool(job.options.get("brandContentToggle")),
        "brand_organic_toggle": bool(job.options.get("brandOrganicToggle")),
    }


def _init(job: Job, section: TikTokSection, path: str, body: dict[str, Any]) -> Outcome:
    cut = plan_chunks(job.content.media[0].size_bytes)
    source = {
        "source": "FILE_UPLOAD",
        "video_size": cut.total_bytes,
        "chunk_size": cut.chunk_bytes,
        "total_chunk_count": cut.count,
    }
    data = call(job, section, path, {**body, "source_info": source})
    publish_id, address = text_at(data, "publish_id"), text_at(data, "upload_url")
    if publish_id is None or address is None:
        raise NoAnswer("TikTok accepted the request but did not return an upload.", request_id=job.trace.request_id)
    held = refuse_upload_address(address, section, "tiktok", "TikTok")
    if held is not None:
        return held
    job.trace.message = f"publish_id {publish_id}"
    upload = {
        "address": job.seal(address),
        "ends_at": job.even_now.timestamp() + limits.UPLOAD_SECONDS - limits.UPLOAD_MARGIN_SECONDS,
        "sent": 0,
        "out": False,
    }
    return Done({**job.memo, "publish_id": publish_id, "upload": upload})


# --- all chunks but the last ------------------------------------------------------------------------------------------


def send_chunks(job: Job, section: TikTokSection) -> Outcome:
    cut = plan_chunks(job.content.media[0].size_bytes)
    if is_address_expired(job):
        return start_new_task(job, Cause.EXPIRED)
    held = refuse_task_address(job, section)
    if held is not None:
        return held
    try:
        task = read_back.fetch_status(job, section)
    except Rejected as error:
        if error.code in UNKNOWN_TASK:
            return start_new_task(job, Cause.FORGOTTEN)
        raise
    if task.status == read_back.FAILED:
        return start_new_task(job, Cause.FORGOTTEN)
    # A run that died may have sent more than was stored. TikTok's count may lag, so the larger number counts.
    index = began_at = max(_sent(job), cut.next_after(task.uploaded_bytes or 0) or 0)
    while index < cut.count - 1:
        if index > began_at and job.slice_over():
            return More(note_progress(job, index, out=False))
        try:
            response = put_chunk(job, cut, index)
        except ProviderError:
            if index == began_at:
                raise
            # Earlier chunks count. The next run asks TikTok about this chunk.
            return More(note_progress(job, index, out=False))
        if response.status not in TAKEN:
            return _retry_chunk(job, index, response)
        index += 1
    return Done(note_progress(job, index, out=False))


RESTARTS = {
    Cause.EXPIRED: "The upload URL expired before TikTok had the whole video.",
    Cause.FORGOTTEN: "TikTok no longer knows the upload.",
    Cause.INCONSISTENT: "TikTok has less of the video than socialpub sent.",
    Cause.NOT_ACCEPTED: "TikTok did not accept a part of the video in five tries.",
}


def start_new_task(job: Job, cause: Cause, seconds: float = 0.0) -> Outcome:
    """Begin a new task, once for each cause. Only while no try of the last chunk can have left."""
    because = RESTARTS[cause]
    message = f"{because} This happened twice. Nothing was posted. Create the post again later."
    again = f"{because} socialpub sends the video again."
    return read_back.start_over(job, cause, again, Refused(message, "upload_failed"), seconds=seconds)


def _retry_chunk(job: Job, index: int, response: HttpResponse) -> Outcome:
    code = response.status
    if code in NO_SUCH_UPLOAD:
        return start_new_task(job, Cause.EXPIRED if code == 403 else Cause.FORGOTTEN)
    if code != OUT_OF_STEP and code not in PASSING and code < 500:
        return Refused(f"TikTok refused a part of the video (HTTP {code}). Report a bug in socialpub.", str(code))
    tries = 1 + (int(job.memo["upload"].get("tries", 0)) if index == _sent(job) else 0)
    if tries > len(PAUSES_SECONDS):
        cause = Cause.INCONSISTENT if code == OUT_OF_STEP else Cause.NOT_ACCEPTED
        return start_new_task(job, cause, NEW_TASK_LATER_SECONDS)
    reason = f"TikTok did not accept a part of the video (HTTP {code})"
    return Wait(PAUSES_SECONDS[tries - 1], reason, note_progress(job, index, out=False, tries=tries))


def _sent(job: Job) -> int:
    return int(job.memo["upload"]["sent"])


# --- the last chunk --------------------------------------------------------------------------------------------------


def send_last(job: Job, section: TikTokSection) -> Outcome:
    """Send the last chunk, perhaps again, to the same task. `Unknown`: TikTok may have the whole video."""
    cut = plan_chunks(job.content.media[0].size_bytes)
    over, held = is_address_expired(job), refuse_task_address(job, section)
    may_be_out = job.unknown_before or bool(job.memo["upload"]["out"])
    if not may_be_out:
        if over:
            return start_new_task(job, Cause.EXPIRED)
        if held is not None:
            return held
    if over or held is not None:
        return _decide_by_byte_count(job, section, cut, LAPSED if over or held is None else held.reason)
    try:
        response = put_chunk(job, cut, cut.count - 1)
    except NoAnswer as error:
        return _decide_by_byte_count(job, section, cut, error.message)
    # A success with a body but without a progress header may come from a proxy.
    is_doubtful = bool(response.body.strip()) and "content-range" not in response.headers
    if response.status in TAKEN and not is_doubtful:
        job.trace.message = "TikTok has the whole video."
        return Done(note_progress(job, cut.count, out=True))
    said = f"TikTok's upload host answered the last part of the video with HTTP {response.status}."
    return _decide_by_byte_count(job, section, cut, said)


def _decide_by_byte_count(job: Job, section: TikTokSection, cut: Chunks, said: str) -> Outcome:
    """Decide by TikTok's byte count. `said` describes the event that made it necessary."""
    code = job.trace.code
    try:
        task = read_back.fetch_status(job, section)
    except (ProviderError, Withdrawn) as error:
        counted = str(error)
    else:
        if task.has_all(cut.total_bytes):
            job.trace.message = "TikTok has the whole video."
            return Done(note_progress(job, cut.count, out=True))
        counted = task.describe_count(cut.total_bytes)
    if job.unknown_before:
        job.trace.message = f"{said} {counted} socialpub polls TikTok until the outcome is known."
        return Done(note_progress(job, cut.count - 1, out=True, watched=said))
    return Unknown(f"{said} {counted}", code, note_progress(job, cut.count - 1, out=True))


# --- one chunk -------------------------------------------------------------------------------------------------------
#
# The upload host responds with a bare status. A page comes from a proxy or CDN and proves nothing.


def put_chunk(job: Job, cut: Chunks, index: int) -> HttpResponse:
    """Send one chunk to an allowed URL. Raises `NoAnswer` when the response is not from the upload host.

    The URL is the credential, so the call does not send a token.
    """
    media = job.content.media[0]
    offset, length = cut.slice(index)
    response: HttpResponse = job.call(
        "PUT",
        job.open(job.memo["upload"]["address"]),
        headers={"content-type": media.mime_type, "content-range": cut.content_range(index)},
        content=FileBody(media.path, offset, length),
    )
    code = response.status
    job.trace.code = None if code in TAKEN else str(code)
    if "html" in response.headers.get("content-type", "").lower() or PAGE.match(response.body):
        raise foreign_answer(response, "TikTok's upload host")
    if response.ok and code not in TAKEN:
        raise NoAnswer(f"TikTok's upload host sent an undocumented response (HTTP {code}).")
    return response


def refuse_task_address(job: Job, section: TikTokSection) -> Held | None:
    return refuse_upload_address(job.open(job.memo["upload"]["address"]), section, "tiktok", "TikTok")


def is_address_expired(job: Job) -> bool:
    """Return whether the URL has expired or is about to expire."""
    return bool(job.even_now.timestamp() >= job.memo["upload"]["ends_at"])


def note_progress(job: Job, sent: int, **more: object) -> Memo:
    """Return the memo with this number of sent chunks and, unless given, no tries."""
    return {**job.memo, "upload": {**job.memo["upload"], "sent": sent, "tries": 0, **more}}


# --- photos -----------------------------------------------------------------------------------------------------------
#
# The call with the photos is the commit. When its response is lost, a task may exist without a known id. TikTok
# has no list of posts, so the outcome stays unknown.

REFITS = 3


def fit_photos(job: Job, section: TikTokSection) -> Outcome:
    """Create versions within TikTok's limits. This step is separate because it can take long."""
    fitted: list[dict[str, Any]] = list(job.memo.get("photos", ()))
    began_at = len(fitted)
    for photo in job.content.media[began_at:]:
        if len(fitted) > began_at and job.slice_over():
            return More({**job.memo, "photos": fitted})
        version = job.fit(photo, limits.PHOTO)
        unreachable = check.unreachable(job.public_url(version), section)
        if unreachable is not None:
            return Refused(unreachable, "url_ownership_unverified")
        fitted.append({"path": str(version.path), "mime_type": version.mime_type, "size_bytes": version.size_bytes})
    return Done({**job.memo, "photos": fitted})


def init_photos(job: Job, section: TikTokSection) -> Outcome:
    photos = [
        replace(photo, path=Path(stored["path"]), mime_type=stored["mime_type"], size_bytes=stored["size_bytes"])
        for photo, stored in zip(job.content.media, job.memo["photos"], strict=True)
    ]
    if not all(_is_whole(photo) for photo in photos):
        memo = {key: value for key, value in job.memo.items() if key != "photos"}
        reason = "A fitted version of a photo is missing. socialpub creates it again."
        return Again(options.FIT_PHOTOS, memo, Cause.FILE_MISSING, reason, REFITS)
    data = call(
        job, section, "post/publish/content/init/", request_body(job, [job.public_url(photo) for photo in photos])
    )
    publish_id = text_at(data, "publish_id")
    if publish_id is None:
        raise NoAnswer("TikTok accepted the photos but did not return a publish_id.", request_id=job.trace.request_id)
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
    # A power cut may have left a truncated file, which TikTok must not fetch.
    try:
        return photo.path.stat().st_size == photo.size_bytes
    except FileNotFoundError:
        return False
