"""Resume after a pause and after a restore: a restored appliance never resends a post of the original installation.

A post in the backup that was due before the resume is read back, and ends as published, failed or unknown. A later post
is read back once before its first call, because the owner may have published it from the original. A reply is due with
the post for which it waits. A post that was created or changed since the restore belongs to this installation
(`post.restore_count`).
"""

from dataclasses import dataclass

from socialpub.core.clock import after, stamp
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.queries import profile_queue
from socialpub.db.states import Committing, Preparing, Processing, State
from socialpub.db.tables import audit_log, delivery_rows, log_entries, post_rows, waits, webhooks
from socialpub.db.tables.audit_log import AuditAction
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.providers.base import LINK_CARD
from socialpub.publishing.delivery import read_back, transitions
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class ScheduledPost:
    """A scheduled post. `body` is None without a text."""

    id: str
    scheduled_at: str
    body: str | None


@dataclass(frozen=True, slots=True)
class Resumed:
    too_late: int
    """Posts that waited longer than `max_lateness` and are not sent."""
    read_back: int
    """Deliveries of the backup that were due before the resume: they are only read back."""
    restored: bool
    """Whether this was the first resume since a restore."""
    scheduled: tuple[ScheduledPost, ...] = ()
    """After a restore: later posts. The original installation may have changed or canceled these posts."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The effect that a resume would have now."""

    too_late: int
    restored_from: str | None
    due: int
    """After a restore: deliveries that the original installation may have sent already."""
    scheduled: tuple[ScheduledPost, ...]
    """After a restore: the next later posts."""
    scheduled_count: int


def load_outlook(rt: Runtime, db: Database, max_posts: int = 50) -> Outlook:
    """Return the effect of a resume, with at most `max_posts` scheduled posts."""
    now, count = rt.stamp(), len(appliance_state.restores(db))
    too_late = profile_queue.count_posts_due_before(db, too_late_before(rt))
    restored_from = appliance_state.restored_from(db)
    if restored_from is None:
        return Outlook(too_late, None, 0, (), 0)
    scheduled = [ScheduledPost(*row) for row in post_rows.scheduled_elsewhere(db, now, count)]
    later = delivery_rows.due_later(db, now)
    due = sum(delivery.id not in later for delivery in delivery_rows.open_elsewhere(db, count))
    return Outlook(too_late, restored_from, due, tuple(scheduled[:max_posts]), len(scheduled))


def probe_held_networks(rt: Runtime, tx: Database) -> int:
    """Probe all networks that refuse this app now. Return the number of these networks."""
    waits.probe_all(tx)
    networks = sorted({hold.subject for hold in waits.list_holds(tx)})
    if networks:
        audit_log.record(tx, AuditAction.PUBLISHING_TRIED, networks=networks)
    return len(networks)


def resume(rt: Runtime, tx: Database, *, nothing_was_sent: bool = False) -> Resumed:
    """Start deliveries again.

    `nothing_was_sent`: the owner confirms that the original installation did not send anything.
    """
    copied_at, restores = appliance_state.restored_from(tx), len(appliance_state.restores(tx))
    count, scheduled = 0, tuple[ScheduledPost, ...]()
    if copied_at is not None:
        scheduled = tuple(ScheduledPost(*row) for row in post_rows.scheduled_elsewhere(tx, tx.stamp, restores))
        later = delivery_rows.due_later(tx, tx.stamp)
        for delivery in delivery_rows.open_elsewhere(tx, restores):
            since, due = post_rows.elsewhere_since(tx, delivery.post_id), delivery.id not in later
            assert since is not None
            if due and not nothing_was_sent:
                _read_back_later(rt, tx, delivery, since)
                count += 1
            elif due and not delivery.past_commit:
                _start_over(tx, delivery)
            elif not (nothing_was_sent or _is_called_already(delivery)):
                read_back.require_first(tx, delivery, since)
        webhooks.begin_now(tx)  # the original installation may have sent earlier entries
        appliance_state.end_restore(tx, nothing_was_sent=nothing_was_sent)
    restored = copied_at is not None
    if restored or appliance_state.paused_at(tx) is not None:
        audit_log.record(
            tx, AuditAction.PUBLISHING_RESUMED, copied_at=copied_at, nothing_was_sent=nothing_was_sent or None
        )
    return Resumed(end_pause(rt, tx), count, restored, scheduled)


def _read_back_later(rt: Runtime, tx: Database, delivery: Delivery, since: str) -> None:
    delivery.state, delivery.held_by = State.QUEUED, None  # a process of the original installation held it
    delivery.run_at = tx.stamp
    read_back.begin_restored(rt, tx, delivery, since)
    if delivery.phase.reads_back:
        delivery.run_at = after(tx.stamp, read_back.READ_BACK_AFTER_SECONDS[0])
        why = f"{read_back.MAYBE_SENT[0].upper()}{read_back.MAYBE_SENT[1:]}: the account is read back."
        attempt = Attempt(delivery.step_name, tx.stamp, AttemptOutcome.WAITING, why, next_at=delivery.run_at)
        log_entries.record_attempt(tx, delivery, attempt)
    delivery_rows.store(tx, delivery)
    post_rows.begin(tx, delivery.post_id)


def _is_called_already(delivery: Delivery) -> bool:
    """Return whether the delivery is read back anyway."""
    phase = delivery.phase
    if isinstance(phase, Committing):
        return delivery.past_commit
    return not (isinstance(phase, Preparing | Processing) or phase.is_uncalled)


def _start_over(tx: Database, delivery: Delivery) -> None:
    """Start again with the first step: uploads belong to the original or have expired."""
    if delivery.plan is None:
        return
    if isinstance(delivery.phase, Committing):
        transitions.move(delivery, PhaseEvent.STARTED_OVER)
    approved = {LINK_CARD: delivery.memo[LINK_CARD]} if LINK_CARD in delivery.memo else {}
    delivery.plan, delivery.step, delivery.memo = None, 0, approved
    delivery.progress.tries, delivery.progress.again = 0, {}
    delivery.state, delivery.held_by, delivery.run_at = State.QUEUED, None, tx.stamp
    delivery_rows.store(tx, delivery)


def pause(rt: Runtime, tx: Database) -> None:
    """Pause publishing. An existing pause keeps its start."""
    if appliance_state.paused_at(tx) is None:
        appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp)
        audit_log.record(tx, AuditAction.PUBLISHING_PAUSED)


def end_pause(rt: Runtime, tx: Database) -> int:
    """End the pause. Return the number of posts that are too late."""
    appliance_state.remove(tx, appliance_state.PAUSED_AT)
    waits.probe_all(tx)
    return profile_queue.count_posts_due_before(tx, too_late_before(rt))


def too_late_before(rt: Runtime) -> str:
    """Return the instant before which a due post that has not started is too late."""
    return stamp(rt.now() - rt.settings.publishing.max_lateness)
