"""What the memo holds per file: what X gave us for it, and by when it ends.

Every step looks here first: what is there and still good is not sent again, so a crash resumes, and a step that finds
its upload gone goes back to its beginning.
"""

from copy import deepcopy
from typing import Any

from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Memo, Refused
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import limits
from socialpub.providers.x.client import data_of, media_id_of
from socialpub.providers.x.plan import upload_steps

EXPIRES_AFTER_SECONDS = 24 * 3600
"""When X does not say."""


def recall(memo: Memo, index: int) -> dict[str, Any]:
    """What the memo knows about one upload: id, expires_at, ready_at (Unix seconds) and the session's progress."""
    return deepcopy(memo.get("media", {}).get(str(index), {}))


def remember(memo: Memo, index: int, upload: dict[str, Any]) -> Memo:
    """The memo with that instead. The old one is left alone: a step that fails half-way has changed nothing."""
    return {**memo, "media": {**memo.get("media", {}), str(index): upload}}


def opened(job: Job, response: HttpResponse) -> dict[str, Any]:
    """The upload that a response of X opened."""
    lifetime = data_of(response).get("expires_after_secs")
    seconds = lifetime if type(lifetime) is int else EXPIRES_AFTER_SECONDS
    return {"id": media_id_of(response), "expires_at": end_of(job, seconds)}


def end_of(job: Job, lifetime_seconds: int) -> float:
    """Until when an upload counts as good: a little less than X says, because the post takes its time too."""
    return job.now.timestamp() + lifetime_seconds - min(limits.EXPIRY_MARGIN_SECONDS, lifetime_seconds / 10)


def ready(job: Job, index: int) -> bool:
    """X has the whole file, processed, and keeps it long enough for the post."""
    upload = recall(job.memo, index)
    return upload.get("ready_at") is not None and not _expired(job, upload)


def is_open(job: Job, upload: dict[str, Any]) -> bool:
    """X knows this upload, and keeps it long enough."""
    return bool(upload.get("id")) and not _expired(job, upload)


def _expired(job: Job, upload: dict[str, Any]) -> bool:
    return bool(job.now.timestamp() >= upload.get("expires_at", 0))


def start_over(job: Job, index: int, because: str, limit: int, otherwise: Refused, **kept: Any) -> Again:
    """Back to the first step of this upload."""
    reason = f"Media item {index + 1} is sent anew: {because}."
    step = upload_steps(index, job.content.media[index])[0].name
    return Again(step, remember(job.memo, index, kept), reason, limit, otherwise=otherwise)


def start_over_expired(job: Job, index: int) -> Again:
    """X no longer has it, or will not have it long enough."""
    message = f"X kept media item {index + 1} for too short a time to post it. Post it again."
    return start_over(job, index, "X keeps uploads for a day, and this one is over", 2, Refused(message))
