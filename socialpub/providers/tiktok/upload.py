"""The bytes of a video: in order, one piece after the other, the last of them being the commit.

Where it is unclear how much arrived, TikTok is asked, and what it has counts. Once the last byte went out, a video is
only sent anew when TikTok says that bytes are missing and the address for them is gone.
"""

from socialpub.core.settings.sections import TikTokSection
from socialpub.providers.bodies import FileBody
from socialpub.providers.errors import NoAnswer, ProviderError, Rejected
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, Memo, More, Outcome, Refused, Unknown, Wait
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import chunks, status
from socialpub.providers.tiktok.errors import UNKNOWN_TASK
from socialpub.providers.tiktok.plan import start_over

PAUSES_SECONDS = (2.0, 5.0, 15.0, 60.0)
"""Between the tries of one chunk that TikTok's side could not take: five in all."""
TAKEN = frozenset({200, 201, 206})
NO_SUCH_UPLOAD = frozenset({401, 403, 404, 410})
OUT_OF_STEP = 416
PASSING = frozenset({408, 425, 429})

EXPIRED = "The address of the upload ended before the video was whole; it is sent anew."
GONE = "TikTok does not know the upload any more; the video is sent anew."
INCONSISTENT = "TikTok has less of the video than was sent; it is sent anew."
NOT_TAKEN = "TikTok did not take a part of the video in five tries; it is sent anew."
ANEW_LATER_SECONDS = 900.0
AFTER_THE_END_SECONDS = 120.0


def send_chunks(job: Job, section: TikTokSection) -> Outcome:
    """All but the last chunk, for as long as this run may take."""
    cut = chunks.plan(job.content.media[0].size_bytes)
    if _ended(job):
        return _anew(job, EXPIRED)
    try:
        task = status.fetch(job, section)
    except Rejected as error:
        if error.code in UNKNOWN_TASK:
            return _anew(job, GONE)
        raise
    if task.status == status.FAILED:
        return _anew(job, GONE)
    # A run that died had perhaps sent more than was written down. A count that lags behind is not believed.
    index = began_at = max(_sent(job), cut.next_after(task.uploaded_bytes or 0) or 0)
    while index < cut.count - 1:
        if index > began_at and job.slice_over():
            return More(_progress(job, index))
        try:
            response = _put(job, section, cut, index)
        except ProviderError:
            if index == began_at:
                raise
            # What went through is kept; the next run asks what became of this one.
            return More(_progress(job, index))
        if response.status not in TAKEN:
            return _not_taken(job, index, response)
        index += 1
    return Done(_progress(job, index))


def send_last(job: Job, section: TikTokSection) -> Outcome:
    """The last chunk. `Unknown` whenever it stays open whether TikTok has all of it."""
    cut = chunks.plan(job.content.media[0].size_bytes)
    last = cut.count - 1
    response = None
    if not _ended(job):
        response = _put(job, section, cut, last)
        if response.status in TAKEN and not _doubtful(response):
            job.trace.message = "TikTok has the whole video."
            return Done(_progress(job, cut.count))
    try:
        task = status.fetch(job, section)
    except ProviderError as error:
        if isinstance(error, Rejected) and error.code in UNKNOWN_TASK and not _may_have_arrived(job, response):
            return _anew(job, GONE)
        return Unknown(f"The last part of the video may be with TikTok: {error.message}", error.code)
    if status.arrived(task, cut.total_bytes):
        return Done(_progress(job, cut.count))
    if task.uploaded_bytes is None:
        return Unknown("TikTok does not say how much of the video it has.")
    if response is None:
        return _anew(job, EXPIRED)
    if response.status in TAKEN:
        return Unknown("The upload host took the end of the video, but TikTok does not count it.")
    out_of_step = response.status == OUT_OF_STEP and cut.next_after(task.uploaded_bytes) != last
    if out_of_step or (_passes(response.status) and _tries(job) >= len(PAUSES_SECONDS)):
        return _wait_for_the_end(job)
    return _not_taken(job, last, response)


def _put(job: Job, section: TikTokSection, cut: chunks.Chunks, index: int) -> HttpResponse:
    """Send one chunk. The address is the credential: no token goes with it."""
    media = job.content.media[0]
    address = job.open(job.memo["upload"]["address"])
    complaint = chunks.complaint(address, section)
    if complaint is not None:
        raise Rejected(complaint, code="upload_host")
    offset, length = cut.slice(index)
    response: HttpResponse = job.call(
        "PUT",
        address,
        headers={"content-type": media.mime_type, "content-range": cut.content_range(index)},
        content=FileBody(media.path, offset, length),
    )
    job.trace.code = None if response.status in TAKEN else str(response.status)
    if 200 <= response.status < 300 and response.status not in TAKEN:
        raise NoAnswer(f"TikTok's upload host answered in a way that it does not document (HTTP {response.status}).")
    return response


def _doubtful(response: HttpResponse) -> bool:
    """Whether it looks as if something in between had answered: with words, but without a word on the progress."""
    return bool(response.body.strip()) and "content-range" not in response.headers


def _not_taken(job: Job, index: int, response: HttpResponse) -> Outcome:
    """What to do about a chunk that TikTok certainly does not have."""
    code = response.status
    if code in NO_SUCH_UPLOAD:
        return _anew(job, EXPIRED if code == 403 else GONE)
    if not _passes(code):
        return Refused(f"TikTok refused a part of the video (HTTP {code}). Please report it as a fault.", str(code))
    tries = 1 + (_tries(job) if index == _sent(job) else 0)
    if tries > len(PAUSES_SECONDS):
        return _anew(job, INCONSISTENT if code == OUT_OF_STEP else NOT_TAKEN, ANEW_LATER_SECONDS)
    reason = f"TikTok could not take a part of the video (HTTP {code})"
    return Wait(PAUSES_SECONDS[tries - 1], reason, _progress(job, index, tries))


def _wait_for_the_end(job: Job) -> Wait:
    """All bytes went out once and TikTok lacks some: only when the address is over is it certain that this task can
    not become a post any more. TikTok is asked once more then."""
    seconds = job.memo["upload"]["ends_at"] + AFTER_THE_END_SECONDS - job.now.timestamp()
    return Wait(
        seconds, "TikTok did not take the end of the video; its upload must lapse before it is sent anew", job.memo
    )


def _passes(code: int) -> bool:
    """Whether the same chunk may be taken later."""
    return code == OUT_OF_STEP or code in PASSING or code >= 500


def _anew(job: Job, because: str, seconds: float = 0.0) -> Outcome:
    why, _, _ = because.partition(";")
    refusal = Refused(f"{why}, twice. Nothing was posted: create the post again later.", "upload_failed")
    return start_over(job, because, refusal, seconds=seconds)


def _may_have_arrived(job: Job, response: HttpResponse | None) -> bool:
    """Whether some try of the last chunk ended without a plain refusal."""
    refused = response is None or response.status in NO_SUCH_UPLOAD
    return job.unknown_before or _tries(job) > 0 or not refused


def _ended(job: Job) -> bool:
    return bool(job.now.timestamp() >= job.memo["upload"]["ends_at"])


def _sent(job: Job) -> int:
    return int(job.memo["upload"]["sent"])


def _tries(job: Job) -> int:
    """Tries of the chunk that follows on `sent` which ended with a fault on TikTok's side."""
    return int(job.memo["upload"].get("tries", 0))


def _progress(job: Job, sent: int, tries: int = 0) -> Memo:
    return {**job.memo, "upload": {**job.memo["upload"], "sent": sent, "tries": tries}}
