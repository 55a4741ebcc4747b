"""The steps of a post on TikTok, which of them makes it public, and the chunks of a video.

A video becomes a post with its last byte, photos with the call that names their addresses. Another task may follow only
a task that TikTok calls failed, or whose last byte certainly never left. All others are only observed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from socialpub.providers.base import Again, Content, Job, Kind, Refused, Step
from socialpub.providers.tiktok import limits
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
"""What the memo holds of a task at TikTok. A new task must not find it."""


def plan_steps(content: Content, chosen: Mapping[str, Any]) -> list[Step]:
    """Return the plan: a pure function of content and options."""
    draft = is_draft(chosen)
    # TikTok wants to be asked about the creator before every direct post; a token for drafts may not ask.
    steps = [] if draft else [Step(CREATOR, Kind.PREPARE)]
    if content.has_video:
        steps.append(Step(INIT_DRAFT if draft else INIT_VIDEO, Kind.PREPARE))
        if cut_video(content.media[0].size_bytes).count > 1:
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
    """Go back to the first step for a new task, once for this reason; then `otherwise`.

    Only for tasks that TikTok calls failed, or whose last byte cannot have left: otherwise it is a second post.
    """
    memo = {key: value for key, value in job.memo.items() if key not in OF_ONE_TASK}
    return Again(plan_steps(job.content, job.options)[0].name, memo, because, seconds=seconds, otherwise=otherwise)


@dataclass(frozen=True, slots=True)
class Chunks:
    """Sizes in bytes. All chunks have `chunk_bytes`, the last one takes the remainder on top."""

    total_bytes: int
    chunk_bytes: int
    count: int

    def slice(self, index: int) -> tuple[int, int]:
        """Return offset and length of one chunk."""
        offset = index * self.chunk_bytes
        return offset, self.total_bytes - offset if index == self.count - 1 else self.chunk_bytes

    def content_range(self, index: int) -> str:
        offset, length = self.slice(index)
        return f"bytes {offset}-{offset + length - 1}/{self.total_bytes}"

    def next_after(self, received_bytes: int) -> int | None:
        """Return the chunk after these bytes (`count`: none is missing). None: they end inside a chunk."""
        if received_bytes >= self.total_bytes:
            return self.count
        index, inside = divmod(received_bytes, self.chunk_bytes)
        return index if inside == 0 and index < self.count else None


def cut_video(total_bytes: int) -> Chunks:
    """Return one chunk while that is allowed, else chunks of TikTok's example size. The count is rounded down."""
    if total_bytes <= limits.ONE_CHUNK_BYTES:
        return Chunks(total_bytes, total_bytes, 1)
    return Chunks(total_bytes, limits.CHUNK_BYTES, total_bytes // limits.CHUNK_BYTES)
