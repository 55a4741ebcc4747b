"""A post's status, and the counters that move with it in the same write."""

from socialpub.db import delivery_rows, post_rows
from socialpub.db.database import Tx
from socialpub.db.models import PostStatus
from socialpub.publishing import audiences


def move(tx: Tx, post_id: str, status: PostStatus) -> None:
    """Put a post into this status (it may be in it already) and note the change's time."""
    post = post_rows.find(tx, post_id)
    assert post is not None
    post_rows.update(tx, post_id, status=status, updated_at=tx.stamp)
    if post["status"] != status:
        audiences.count(tx, post["audience_id"], post["status"], -1)
        audiences.count(tx, post["audience_id"], status, +1)


def begin(tx: Tx, post_id: str) -> None:
    """The first delivery of the post starts: a scheduled post is pending from now on."""
    post = post_rows.find(tx, post_id)
    if post is not None and post["status"] == PostStatus.SCHEDULED:
        move(tx, post_id, PostStatus.PENDING)


def settle_if_resolved(tx: Tx, post_id: str) -> None:
    """A post is settled in the write that resolves its last delivery."""
    if delivery_rows.any_open_of_post(tx, post_id):
        post_rows.update(tx, post_id, updated_at=tx.stamp)
    else:
        move(tx, post_id, PostStatus.SETTLED)
