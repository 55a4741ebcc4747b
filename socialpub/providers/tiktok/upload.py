"""The bytes of a video but for the last chunk: in order, one piece after the other.

Until the last chunk has gone out a task can become no post, so here it may be begun anew. Where it is unclear how much
arrived, TikTok is asked, and what it has counts.
"""

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers import upload_address
from socialpub.providers.errors import ProviderError, Rejected
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Done, More, Outcome, Refused, Wait
from socialpub.providers.responses import HttpResponse
from socialpub.providers.tiktok import chunk_put, chunks, status
from socialpub.providers.tiktok.errors import UNKNOWN_TASK
from socialpub.providers.tiktok.plan import start_over

PAUSES_SECONDS = (2.0, 5.0, 15.0, 60.0)
"""Between the tries of one chunk that TikTok's side could not take: five in all."""
NO_SUCH_UPLOAD = frozenset({401, 403, 404, 410})
OUT_OF_STEP = 416
PASSING = frozenset({408, 425, 429})

EXPIRED = "The address of the upload ended before the video was whole; it is sent anew."
GONE = "TikTok does not know the upload any more; the video is sent anew."
INCONSISTENT = "TikTok has less of the video than was sent; it is sent anew."
NOT_TAKEN = "TikTok did not take a part of the video in five tries; it is sent anew."
ANEW_LATER_SECONDS = 900.0


def send_chunks(job: Job, section: TikTokSection) -> Outcome:
    """All but the last chunk, for as long as this run may take."""
    cut = chunks.plan(job.content.media[0].size_bytes)
    if chunk_put.ended(job):
        return anew(job, EXPIRED)
    complaint = chunk_put.complaint(job, section)
    if complaint is not None:
        return upload_address.hold(complaint)
    try:
        task = status.fetch(job, section)
    except Rejected as error:
        if error.code in UNKNOWN_TASK:
            return anew(job, GONE)
        raise
    if task.status == status.FAILED:
        return anew(job, GONE)
    # A run that died had perhaps sent more than was written down. A count that lags behind is not believed.
    index = began_at = max(_sent(job), cut.next_after(task.uploaded_bytes or 0) or 0)
    while index < cut.count - 1:
        if index > began_at and job.slice_over():
            return More(chunk_put.progress(job, index, out=False))
        try:
            response = chunk_put.put(job, cut, index)
        except ProviderError:
            if index == began_at:
                raise
            # What went through is kept; the next run asks what became of this one.
            return More(chunk_put.progress(job, index, out=False))
        if response.status not in chunk_put.TAKEN:
            return _not_taken(job, index, response)
        index += 1
    return Done(chunk_put.progress(job, index, out=False))


def anew(job: Job, because: str, seconds: float = 0.0) -> Outcome:
    """A new task, once for each reason. Only where no try of the last chunk can have left."""
    why, _, _ = because.partition(";")
    refusal = Refused(f"{why}, twice. Nothing was posted: create the post again later.", "upload_failed")
    return start_over(job, because, refusal, seconds=seconds)


def _not_taken(job: Job, index: int, response: HttpResponse) -> Outcome:
    """What to do about a chunk that the upload host refused."""
    code = response.status
    if code in NO_SUCH_UPLOAD:
        return anew(job, EXPIRED if code == 403 else GONE)
    if code != OUT_OF_STEP and code not in PASSING and code < 500:
        return Refused(f"TikTok refused a part of the video (HTTP {code}). Please report it as a fault.", str(code))
    tries = 1 + (int(job.memo["upload"].get("tries", 0)) if index == _sent(job) else 0)
    if tries > len(PAUSES_SECONDS):
        return anew(job, INCONSISTENT if code == OUT_OF_STEP else NOT_TAKEN, ANEW_LATER_SECONDS)
    reason = f"TikTok could not take a part of the video (HTTP {code})"
    return Wait(PAUSES_SECONDS[tries - 1], reason, chunk_put.progress(job, index, out=False, tries=tries))


def _sent(job: Job) -> int:
    return int(job.memo["upload"]["sent"])
