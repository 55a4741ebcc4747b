"""A post's status, and the counters that change with it in the same write."""

from collections.abc import Sequence

from socialpub.db.connection import Row, Tx
from socialpub.db.states import PostStatus, State
from socialpub.db.tables import artifact_rows, audience_rows, counters, delivery_rows, post_rows

FINAL = (PostStatus.SETTLED, PostStatus.CANCELED)


def set_status(tx: Tx, post_id: str, status: PostStatus) -> None:
    """Put a post into this status (it may be in it already), with what became of its deliveries, and note the change's
    time."""
    post = post_rows.find(tx, post_id)
    assert post is not None
    _put(tx, post, status, delivery_rows.states_of_post(tx, post_id))


def begin_post(tx: Tx, post_id: str) -> None:
    """The first delivery of the post starts: a scheduled post is pending from now on."""
    post = post_rows.find(tx, post_id)
    if post is not None and post.status == PostStatus.SCHEDULED:
        set_status(tx, post_id, PostStatus.PENDING)


def settle_if_resolved(tx: Tx, post_id: str) -> None:
    """A post is settled in the write that resolves its last delivery."""
    post = post_rows.find(tx, post_id)
    assert post is not None
    states = delivery_rows.states_of_post(tx, post_id)
    _put(tx, post, PostStatus.SETTLED if all(state.final for _, state in states) else post.status, states)


def _put(tx: Tx, post: Row, status: str, states: Sequence[tuple[str, State]]) -> None:
    outcomes = "".join(state.letter for _, state in states)
    post_rows.update(tx, post.id, status=status, outcomes=outcomes, updated_at=tx.stamp)
    if (post.status, post.outcomes) != (status, outcomes):
        audience_rows.remove_post(tx, post.audience_id, post.status, post.outcomes)
        audience_rows.add_post(tx, post.audience_id, status, outcomes)
    if status in FINAL and post.status not in FINAL:
        # What it shows stays named by it; what only its options name is unused from now on.
        artifact_rows.drop(tx, delivery_rows.named_in_options(tx, post.id), tx.stamp)
    for before, (provider, state) in zip(post.outcomes, states, strict=True):
        if state.final and before != state.letter:
            counters.count_outcome(tx, provider, state.outcome)
