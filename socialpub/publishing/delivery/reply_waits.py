"""The wait of a reply for its parent, and the end of that wait (contract 10.7). The wait has no deadline."""

from socialpub.core.clock import after
from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import delivery_rows, profile_rows
from socialpub.db.tables.log_entries import AttemptOutcome
from socialpub.providers.base import Refused
from socialpub.providers.responses import MAX_WAIT_SECONDS
from socialpub.publishing.delivery import replies, transitions
from socialpub.publishing.delivery.replies import Parent
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.runtime import Runtime


def check_parent(settlement: Settlement) -> Refused | bool:
    """Return whether a due delivery waits for its parent or for its own time, or why it ends with its parent.

    The lateness of a reply counts from the publication of its parent.
    """
    tx, delivery = settlement.tx, settlement.delivery
    waited, may_wait = delivery.waits_for_post is not None, _may_wait(delivery)
    if not (waited or may_wait) or delivery.progress.stopped:
        return False
    parent, profile = replies.find_parent(tx, delivery.reply_to), profile_rows.find(tx, delivery.profile_id)
    may_wait = may_wait and profile is not None and profile.status is not ProfileStatus.DISCONNECTED
    if may_wait and parent is not None and not parent.state.final:
        _wait(settlement, parent)
        return True
    if may_wait and parent is not None and parent.is_published:
        _count_from_publication(tx, delivery, parent)
        if waited and delivery.due_at > tx.stamp:
            _end_wait(settlement, f"The post {parent.post_id} is published. This post waits for its time.")
            return True
    if waited:
        transitions.move(delivery, PhaseEvent.POST_ENDED)
        delivery_rows.store(tx, delivery)
    if not may_wait or (parent is not None and parent.is_published):
        return False
    return Refused(replies.REMOVED if parent is None else parent.end)


def update(rt: Runtime, tx: Database, delivery_id: str) -> bool:
    """Begin or end the wait of a new or changed delivery. Return whether the delivery waits for an open post."""
    delivery = delivery_rows.find(tx, delivery_id)
    assert delivery is not None
    if delivery.waits_for_approval:
        return False  # the approval begins the wait
    parent, settlement = replies.find_parent(tx, delivery.reply_to), Settlement(rt, tx, delivery)
    if parent is not None and not parent.is_published and _may_wait(delivery):
        _wait(settlement, parent)
        return not parent.state.final
    if delivery.waits_for_post is not None:
        _end_wait(settlement, "This post no longer waits for another post.")
    return False


def _may_wait(delivery: Delivery) -> bool:
    """Return whether this is a reply before its first call. A read-back for another installation does not wait."""
    return delivery.reply_to is not None and (delivery.phase.name, PhaseEvent.NEEDS_POST) in transitions.TABLE


def _count_from_publication(tx: Database, delivery: Delivery, parent: Parent) -> None:
    # The clock may have been set since.
    age_seconds = clock_jumps.age_seconds(tx, tx.now, parent.published_at or tx.stamp)
    published_at = after(tx.stamp, -max(age_seconds, 0.0))
    if published_at > delivery.due_at:
        delivery.due_at = published_at
        delivery_rows.update(tx, delivery.id, due_at=published_at)


def _wait(settlement: Settlement, parent: Parent) -> None:
    tx, delivery = settlement.tx, settlement.delivery
    if delivery.waits_for_post != parent.post_id:
        transitions.move(delivery, PhaseEvent.NEEDS_POST, post_id=parent.post_id)
        message = f"Waits for the post {parent.post_id}, to which this post replies."
        settlement.record_attempt(AttemptOutcome.HELD, message)
    delivery.state, delivery.held_by = State.QUEUED, None
    # The outcome of that post makes this delivery due. The daily claim only proves that the wait is still right.
    delivery.run_at = tx.stamp if parent.state.final else after(max(tx.stamp, delivery.due_at), MAX_WAIT_SECONDS)
    delivery_rows.store(tx, delivery)


def _end_wait(settlement: Settlement, message: str) -> None:
    tx, delivery = settlement.tx, settlement.delivery
    transitions.move(delivery, PhaseEvent.POST_ENDED)
    delivery.run_at = max(tx.stamp, delivery.due_at)
    settlement.record_attempt(AttemptOutcome.WAITING, message, next_at=delivery.run_at)
    delivery_rows.store(tx, delivery)
