"""The steps of a post on TikTok, and which of them makes it public.

A video becomes a post with its last byte, photos with the call that names their addresses. Only a task that TikTok
calls failed, or whose last byte certainly never left, is followed by another one; all others are only observed.
"""

from collections.abc import Mapping
from typing import Any

from socialpub.providers.content import Content
from socialpub.providers.job import Job
from socialpub.providers.outcomes import Again, Refused
from socialpub.providers.protocol import Kind, Step
from socialpub.providers.tiktok import chunks
from socialpub.providers.tiktok.options import is_draft

CREATOR = "creator_info"
INIT_VIDEO = "init_video"
INIT_DRAFT = "init_draft"
SEND_CHUNKS = "send_chunks"
SEND_LAST = "send_last"
FIT_PHOTOS = "fit_photos"
INIT_PHOTOS = "init_photos"
INIT_PHOTO_DRAFT = "init_photo_draft"
AWAIT = "await_outcome"
SETTLE_DRAFT = "settle_draft"

OF_ONE_TASK = ("publish_id", "upload")
"""What the memo holds of a task at TikTok, and a new one must not find."""


def plan(content: Content, chosen: Mapping[str, Any]) -> list[Step]:
    """A pure function of content and options."""
    draft = is_draft(chosen)
    # TikTok wants to be asked about the creator before every direct post; a token for drafts may not ask.
    steps = [] if draft else [Step(CREATOR, Kind.PREPARE)]
    if content.has_video:
        steps.append(Step(INIT_DRAFT if draft else INIT_VIDEO, Kind.PREPARE))
        if chunks.plan(content.media[0].size_bytes).count > 1:
            steps.append(Step(SEND_CHUNKS, Kind.PREPARE))
        steps.append(Step(SEND_LAST, Kind.COMMIT))
    else:
        steps.append(Step(FIT_PHOTOS, Kind.PREPARE))
        steps.append(Step(INIT_PHOTO_DRAFT if draft else INIT_PHOTOS, Kind.COMMIT))
    steps.append(Step(AWAIT, Kind.POLL))
    if draft:
        steps.append(Step(SETTLE_DRAFT, Kind.POLL))
    return steps


def start_over(job: Job, because: str, otherwise: Refused, *, seconds: float = 0.0) -> Again:
    """A new task from the first step on, once for this reason; then `otherwise`.

    Only for tasks that TikTok calls failed, or whose last byte cannot have left: a new init is a second post otherwise.
    """
    memo = {key: value for key, value in job.memo.items() if key not in OF_ONE_TASK}
    return Again(plan(job.content, job.options)[0].name, memo, because, seconds=seconds, otherwise=otherwise)
