"""The last chunk of a video: the commit. With it the task becomes a post, whatever the upload host says about it.

    before it                what happens                                  what it comes to
    no try can have left     the address is over                           a new task
    no try can have left     the host of the address is not listed         held
    anything                 taken, or TikTok counts every byte            its verdict is awaited
    no try can have left     anything else: a cut, a refusal, a page       unknown: the task is looked at
    a try may have left      anything else, also a lapsed address          watched until it is certain

The same bytes may be sent to the same task again: it becomes one post or none. Another task would be another post, so
none is begun any more once a try may have left. TikTok's count of the bytes may lag, and a refusal may be about the
second try only: neither proves that the first one failed. What does is a count that is still short long after the
address has lapsed (`await_outcome.py`).
"""

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers import upload_address
from socialpub.providers.errors import NoAnswer, ProviderError
from socialpub.providers.job import Job, Withdrawn
from socialpub.providers.outcomes import Done, Outcome, Unknown
from socialpub.providers.tiktok import chunk_put, chunks, status, upload

LAPSED = "The address of the upload is over."


def send_last(job: Job, section: TikTokSection) -> Outcome:
    """Send it, or send it again to the same task; `Unknown` where it stays open whether TikTok has all of it."""
    cut = chunks.plan(job.content.media[0].size_bytes)
    over, complaint = chunk_put.ended(job), chunk_put.complaint(job, section)
    if not _may_be_out(job):
        if over:
            return upload.anew(job, upload.EXPIRED)
        if complaint is not None:
            return upload_address.hold(complaint)
    if over or complaint is not None:
        return _as_tiktok_counts(job, section, cut, LAPSED if over else complaint or "")
    try:
        response = chunk_put.put(job, cut, cut.count - 1)
    except NoAnswer as error:
        return _as_tiktok_counts(job, section, cut, error.message)
    if response.status in chunk_put.TAKEN and not chunk_put.is_doubtful(response):
        job.trace.message = "TikTok has the whole video."
        return Done(chunk_put.progress(job, cut.count, out=True))
    said = f"TikTok's upload host answered the end of the video with HTTP {response.status}."
    return _as_tiktok_counts(job, section, cut, said)


def _as_tiktok_counts(job: Job, section: TikTokSection, cut: chunks.Chunks, said: str) -> Outcome:
    """What TikTok has by its own count; `said` is what is known without it."""
    code = job.trace.code
    try:
        task = status.fetch(job, section)
    except (ProviderError, Withdrawn) as error:
        counted = str(error)
    else:
        if status.arrived(task, cut.total_bytes):
            job.trace.message = "TikTok has the whole video."
            return Done(chunk_put.progress(job, cut.count, out=True))
        counted = status.count_of(task, cut.total_bytes)
    if job.unknown_before:
        job.trace.message = f"{said} {counted} It is watched until its upload has lapsed."
        return Done(chunk_put.progress(job, cut.count - 1, out=True, watched=said))
    return Unknown(f"{said} {counted}", code, chunk_put.progress(job, cut.count - 1, out=True))


def _may_be_out(job: Job) -> bool:
    """Whether some try may have left before. A memo that does not say was written before it was noted down."""
    return job.unknown_before or bool(job.memo["upload"].get("out", True))
