"""A post's status, and the counters that move with it in the same write."""

from socialpub.db.database import Tx
from socialpub.db.models import PostStatus
from socialpub.publishing import audiences


def move(tx: Tx, post_id: str, status: PostStatus) -> None:
    """Put a post into this status (it may be in it already) and note the change's time."""
    post = tx.one("SELECT status, audience_id FROM post WHERE id = ?", (post_id,))
    assert post is not None
    tx.update("post", post_id, status=status, updated_at=tx.stamp)
    if post["status"] != status:
        audiences.count(tx, post["audience_id"], post["status"], -1)
        audiences.count(tx, post["audience_id"], status, +1)


def begin(tx: Tx, post_id: str) -> None:
    """The first delivery of the post starts: a scheduled post is pending from now on."""
    post = tx.one("SELECT status FROM post WHERE id = ?", (post_id,))
    if post is not None and post["status"] == PostStatus.SCHEDULED:
        move(tx, post_id, PostStatus.PENDING)


def settle_if_resolved(tx: Tx, post_id: str) -> None:
    """A post is settled in the write that resolves its last delivery."""
    open_ = tx.one("SELECT 1 FROM delivery WHERE post_id = ? AND state IN ('queued', 'running')", (post_id,))
    if open_ is None:
        move(tx, post_id, PostStatus.SETTLED)
    else:
        tx.update("post", post_id, updated_at=tx.stamp)
