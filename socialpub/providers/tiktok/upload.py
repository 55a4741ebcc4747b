"""Bringing a video to TikTok: a task is opened, chunks are sent in order, and the last chunk is the commit.

Until the last chunk has left, a task can become no post, so it may be replaced by a new one. Where it is unclear how
much arrived, TikTok is asked, and its count decides. With the last chunk the task becomes a post, whatever the upload
host answers:

    before it                what happens                                  result
    no try can have left     the address is over                           a new task
    no try can have left     the host of the address is not listed         held
    anything                 taken, or TikTok counts every byte            its verdict is awaited
    no try can have left     anything else: a cut, a refusal, a page       unknown: the task is read back
    a try may have left      anything else, also a lapsed address          watched until it is certain

The same bytes may be sent to the same task again: it becomes one post or none. Another task would be another post, so
no task begins once a try may have left. TikTok's count of the bytes may lag, and a refusal may be about the second try
only: neither proves that the first one failed. The proof is a count that is still short long after the address has
lapsed (`read_back.py`).
"""

import re
from typing import Any

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers import upload_address
from socialpub.providers.base import Done, Job, Memo, More, Outcome, Refused, Unknown, Wait, Withdrawn
from socialpub.providers.bodies import FileBody
from socialpub.providers.errors import NoAnswer, ProviderError, Rejected
from socialpub.providers.responses import HttpResponse, text_at
from socialpub.providers.tiktok import limits, plan, read_back
from socialpub.providers.tiktok.client import UNKNOWN_TASK, call
from socialpub.providers.tiktok.creator import disabled
from socialpub.providers.tiktok.options import INTERACTIONS

PAUSES_SECONDS = (2.0, 5.0, 15.0, 60.0)
"""Between the tries of one chunk that TikTok's side could not take: five in all."""
NO_SUCH_UPLOAD = frozenset({401, 403, 404, 410})
OUT_OF_STEP = 416
PASSING = frozenset({408, 425, 429})
TAKEN = frozenset({200, 201, 206})
PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)

EXPIRED = "The address of the upload ended before the video was whole; it is sent anew."
GONE = "TikTok does not know the upload any more; the video is sent anew."
INCONSISTENT = "TikTok has less of the video than was sent; it is sent anew."
NOT_TAKEN = "TikTok did not take a part of the video in five tries; it is sent anew."
NEW_TASK_LATER_SECONDS = 900.0
LAPSED = "The address of the upload is over."


# --- the task --------------------------------------------------------------------------------------------------------
#
# No bytes have left when TikTok answers, so a lost answer costs a place in its rate limit and nothing more.


def init_video(job: Job, section: TikTokSection) -> Outcome:
    return _init(job, section, "post/publish/video/init/", {"post_info": post_info(job)})


def init_draft(job: Job, section: TikTokSection) -> Outcome:
    return _init(job, section, "post/publish/inbox/video/init/", {})


def post_info(job: Job) -> dict[str, Any]:
    """Return what the owner says about a direct video. Both brand marks are always sent: TikTok requires them."""
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
    cut = plan.cut_video(job.content.media[0].size_bytes)
    source = {
        "source": "FILE_UPLOAD",
        "video_size": cut.total_bytes,
        "chunk_size": cut.chunk_bytes,
        "total_chunk_count": cut.count,
    }
    data = call(job, section, path, {**body, "source_info": source})
    publish_id, address = text_at(data, "publish_id"), text_at(data, "upload_url")
    if publish_id is None or address is None:
        raise NoAnswer("TikTok took the request but named no upload.", request_id=job.trace.request_id)
    complaint = upload_address.complaint(address, section, "tiktok", "TikTok")
    if complaint is not None:
        return upload_address.hold(complaint)
    job.trace.message = f"publish_id {publish_id}"
    upload = {
        "address": job.seal(address),
        "ends_at": job.now.timestamp() + limits.UPLOAD_SECONDS - limits.UPLOAD_MARGIN_SECONDS,
        "sent": 0,
        "out": False,
    }
    return Done({**job.memo, "publish_id": publish_id, "upload": upload})


# --- all chunks but the last ------------------------------------------------------------------------------------------


def send_chunks(job: Job, section: TikTokSection) -> Outcome:
    """Send all but the last chunk, for as long as this run may take."""
    cut = plan.cut_video(job.content.media[0].size_bytes)
    if is_address_over(job):
        return start_new_task(job, EXPIRED)
    complaint = task_address_fault(job, section)
    if complaint is not None:
        return upload_address.hold(complaint)
    try:
        task = read_back.fetch_status(job, section)
    except Rejected as error:
        if error.code in UNKNOWN_TASK:
            return start_new_task(job, GONE)
        raise
    if task.status == read_back.FAILED:
        return start_new_task(job, GONE)
    # A run that died may have sent more than was stored. A count that lags behind is not believed.
    index = began_at = max(_sent(job), cut.next_after(task.uploaded_bytes or 0) or 0)
    while index < cut.count - 1:
        if index > began_at and job.slice_over():
            return More(note_progress(job, index, out=False))
        try:
            response = put_chunk(job, cut, index)
        except ProviderError:
            if index == began_at:
                raise
            # What went through is kept. The next run asks what became of this chunk.
            return More(note_progress(job, index, out=False))
        if response.status not in TAKEN:
            return _not_taken(job, index, response)
        index += 1
    return Done(note_progress(job, index, out=False))


def start_new_task(job: Job, because: str, seconds: float = 0.0) -> Outcome:
    """Begin a new task, once for each reason. Only where no try of the last chunk can have left."""
    why, _, _ = because.partition(";")
    refusal = Refused(f"{why}, twice. Nothing was posted: create the post again later.", "upload_failed")
    return plan.start_over(job, because, refusal, seconds=seconds)


def _not_taken(job: Job, index: int, response: HttpResponse) -> Outcome:
    """Decide about a chunk that the upload host refused."""
    code = response.status
    if code in NO_SUCH_UPLOAD:
        return start_new_task(job, EXPIRED if code == 403 else GONE)
    if code != OUT_OF_STEP and code not in PASSING and code < 500:
        return Refused(f"TikTok refused a part of the video (HTTP {code}). Please report it as a fault.", str(code))
    tries = 1 + (int(job.memo["upload"].get("tries", 0)) if index == _sent(job) else 0)
    if tries > len(PAUSES_SECONDS):
        return start_new_task(job, INCONSISTENT if code == OUT_OF_STEP else NOT_TAKEN, NEW_TASK_LATER_SECONDS)
    reason = f"TikTok could not take a part of the video (HTTP {code})"
    return Wait(PAUSES_SECONDS[tries - 1], reason, note_progress(job, index, out=False, tries=tries))


def _sent(job: Job) -> int:
    return int(job.memo["upload"]["sent"])


# --- the last chunk --------------------------------------------------------------------------------------------------


def send_last(job: Job, section: TikTokSection) -> Outcome:
    """Send the last chunk, perhaps again, to the same task; `Unknown` where TikTok may have all of the video."""
    cut = plan.cut_video(job.content.media[0].size_bytes)
    over, complaint = is_address_over(job), task_address_fault(job, section)
    # A memo without this mark comes from a version that did not note it.
    may_be_out = job.unknown_before or bool(job.memo["upload"].get("out", True))
    if not may_be_out:
        if over:
            return start_new_task(job, EXPIRED)
        if complaint is not None:
            return upload_address.hold(complaint)
    if over or complaint is not None:
        return _as_tiktok_counts(job, section, cut, LAPSED if over else complaint or "")
    try:
        response = put_chunk(job, cut, cut.count - 1)
    except NoAnswer as error:
        return _as_tiktok_counts(job, section, cut, error.message)
    if response.status in TAKEN and not is_doubtful(response):
        job.trace.message = "TikTok has the whole video."
        return Done(note_progress(job, cut.count, out=True))
    said = f"TikTok's upload host answered the end of the video with HTTP {response.status}."
    return _as_tiktok_counts(job, section, cut, said)


def _as_tiktok_counts(job: Job, section: TikTokSection, cut: plan.Chunks, said: str) -> Outcome:
    """Decide by TikTok's own count of the bytes; `said` is what is known without it."""
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
        job.trace.message = f"{said} {counted} It is watched until its upload has lapsed."
        return Done(note_progress(job, cut.count - 1, out=True, watched=said))
    return Unknown(f"{said} {counted}", code, note_progress(job, cut.count - 1, out=True))


# --- one chunk -------------------------------------------------------------------------------------------------------
#
# The upload host answers with a bare status; a page in its place comes from something in between and proves nothing.


def put_chunk(job: Job, cut: plan.Chunks, index: int) -> HttpResponse:
    """Send one chunk to an address that was judged before. The address is the credential: no token goes with it.

    Raises `NoAnswer` for everything that is no answer of the upload host.
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
        raise NoAnswer(
            f"Something between here and TikTok's upload host answered in its place (HTTP {code}).", code=str(code)
        )
    if response.ok and code not in TAKEN:
        raise NoAnswer(f"TikTok's upload host answered in a way that it does not document (HTTP {code}).")
    return response


def task_address_fault(job: Job, section: TikTokSection) -> str | None:
    """Return why nothing may be sent to the address of this task. It is judged each time."""
    return upload_address.complaint(job.open(job.memo["upload"]["address"]), section, "tiktok", "TikTok")


def is_address_over(job: Job) -> bool:
    """Return whether the address is over, or nearly over: then nothing begins with it."""
    return bool(job.now.timestamp() >= job.memo["upload"]["ends_at"])


def note_progress(job: Job, sent: int, **more: object) -> Memo:
    """Return the memo with this number of sent chunks; `tries` starts again at 0."""
    return {**job.memo, "upload": {**job.memo["upload"], "sent": sent, "tries": 0, **more}}


def is_doubtful(response: HttpResponse) -> bool:
    """Return whether a success may come from something else: it has a body, but no header about the progress."""
    return bool(response.body.strip()) and "content-range" not in response.headers
