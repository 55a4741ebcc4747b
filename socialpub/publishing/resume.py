"""Going on after a pause, and after a restore: a copy never sends what its original may have sent already.

Whatever was due between the copy and the resume is looked for at the account, from the instant of the copy on. If it
is there it is published; if it is not, or nobody can tell, its message says so. What is due later is looked for once
before its first call, since its owner may have published it from the original before its time.
"""

from dataclasses import dataclass

from socialpub.core.clock import after
from socialpub.db import appliance_state, delivery_rows, post_rows, trail
from socialpub.db.models import Delivery, State
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.publishing import attempts, deliveries, holds, post_status, read_back
from socialpub.publishing.attempts import Attempt, AttemptOutcome
from socialpub.runtime import Runtime

MAYBE_SENT = "it was due after this copy was made, and the original may have sent it"


@dataclass(frozen=True, slots=True)
class ScheduledPost:
    """A post that waits for its time. `body` is None without a text."""

    id: str
    scheduled_at: str
    body: str | None


@dataclass(frozen=True, slots=True)
class Resumed:
    too_late: int
    """Posts that waited longer than `max_lateness` and are not sent."""
    read_back: int
    """Deliveries that were due while this copy was not in charge: they are looked for, and never sent."""
    restored: bool
    """Whether this was the first time since a restore."""
    scheduled: tuple[ScheduledPost, ...] = ()
    """What is still to come after a restore: the original may have changed or canceled it."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `resume` would come to at this moment."""

    too_late: int
    restored_from: str | None
    due: int
    """After a restore: deliveries that the original may have sent already."""
    scheduled: tuple[ScheduledPost, ...]
    """After a restore: the next posts that are still to come."""
    scheduled_count: int


def outlook(rt: Runtime, reader: Reader, most: int = 50) -> Outlook:
    """What the owner has to know before they resume; of scheduled posts at most so many."""
    now = rt.stamp()
    too_late = delivery_rows.count_posts_due_before(reader, deliveries.too_late_before(rt))
    restored_from = appliance_state.restored_from(reader)
    if restored_from is None:
        return Outlook(too_late, None, 0, (), 0)
    scheduled = [ScheduledPost(*row) for row in post_rows.scheduled_after(reader, now)]
    due = len(delivery_rows.open_due_by(reader, now))
    return Outlook(too_late, restored_from, due, tuple(scheduled[:most]), len(scheduled))


def try_held(rt: Runtime, tx: Tx) -> int:
    """Ask networks that refuse this app again at once, and not when their time comes; how many there are."""
    holds.probe_all(tx)
    networks = sorted({hold["provider"] for hold in holds.list_all(tx)})
    if networks:
        trail.record(tx, TrailAction.PUBLISHING_TRIED, networks=networks)
    return len(networks)


def resume(rt: Runtime, tx: Tx, *, nothing_was_sent: bool = False) -> Resumed:
    """Let deliveries start again. `nothing_was_sent` is the owner's word that the original sent nothing since."""
    copied_at = appliance_state.restored_from(tx)
    count = 0
    if copied_at is not None:
        for delivery in delivery_rows.open_due_by(tx, tx.stamp):
            if not nothing_was_sent:
                _read_back_later(rt, tx, delivery, copied_at)
                count += 1
            elif not delivery.past_commit:
                _begin_anew(tx, delivery)
        if not nothing_was_sent:
            for delivery in delivery_rows.open_due_after(tx, tx.stamp):
                _look_first(tx, delivery, copied_at)
        appliance_state.remove(tx, appliance_state.RESTORED_FROM)
    restored = copied_at is not None
    scheduled = tuple(ScheduledPost(*row) for row in post_rows.scheduled_after(tx, tx.stamp)) if restored else ()
    if restored or appliance_state.paused_at(tx) is not None:
        trail.record(tx, TrailAction.PUBLISHING_RESUMED, copied_at=copied_at, nothing_was_sent=nothing_was_sent or None)
    return Resumed(deliveries.resume(rt, tx), count, restored, scheduled)


def _look_first(tx: Tx, delivery: Delivery, copied_at: str) -> None:
    """However far ahead its time lies, the original may have sent it by now."""
    if delivery.progress.reading_back or delivery.progress.commits:
        return  # it is looked for as it is
    delivery.progress.look_first, delivery.progress.since = True, copied_at
    delivery_rows.update(tx, delivery.id, progress=delivery_rows.as_json(delivery.progress.as_dict()))


def _read_back_later(rt: Runtime, tx: Tx, delivery: Delivery, copied_at: str) -> None:
    progress = delivery.progress
    progress.restored, progress.look_first = True, False
    delivery.state, delivery.held_by = State.QUEUED, None  # its owner was a process of the original's
    delivery.started_at = tx.stamp  # reading back has a patience of its own
    delivery.run_at = tx.stamp
    if not delivery.past_commit_step:  # else its commit lies behind it, and asking how it stands sends nothing
        read_back.begin_round(rt, delivery)
        progress.since = min(progress.since or copied_at, delivery.committed_at or copied_at)
        progress.unknown = progress.unknown or MAYBE_SENT
        delivery.committed_at = delivery.committed_at or copied_at
        delivery.step = max(delivery.step, delivery.commit_step)
        delivery.run_at = after(tx.stamp, read_back.LOOK_AFTER_SECONDS[0])
        message = f"{MAYBE_SENT[0].upper()}{MAYBE_SENT[1:]}: the account is read back."
        attempts.record(
            tx,
            delivery,
            Attempt(delivery.step_name, tx.stamp, AttemptOutcome.WAITING, message, next_at=delivery.run_at),
        )
    delivery_rows.store(tx, delivery)
    post_status.begin(tx, delivery.post_id)


def _begin_anew(tx: Tx, delivery: Delivery) -> None:
    """What the network was given belongs to the original, or has lapsed: it is sent from the first step on."""
    if delivery.plan is None:
        return
    delivery.plan, delivery.step, delivery.memo = None, 0, {}
    delivery.progress.tries, delivery.progress.again = 0, {}
    delivery.state, delivery.held_by = State.QUEUED, None
    delivery.run_at = tx.stamp
    delivery_rows.store(tx, delivery)
