"""One delivery: one post on its way to one profile.

The row is the only truth. A worker may die between any two lines of the engine, and the next worker must know what is
certain. So a commit (the call that makes something public) is announced in the row before it is sent. Its outcome is
stored, or read back from the account. It is never guessed, and never repeated blindly.

`claim.py` and `settle.py` share what this file does with a delivery.
"""

from dataclasses import dataclass, field
from datetime import timedelta

from socialpub.core.clock import after, parse, stamp
from socialpub.db import appliance_state
from socialpub.db.connection import Reader, Tx
from socialpub.db.delivery import Delivery
from socialpub.db.phases import Inherited
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import delivery_rows, log_entries, post_rows, profile_rows
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.providers.errors import MAX_WAIT_SECONDS
from socialpub.publishing.delivery import read_back, waiting
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.publishing.delivery.transitions import PhaseEvent, move
from socialpub.publishing.posts import post_status
from socialpub.runtime import Runtime

OUTCOME_UNKNOWN = "Outcome unknown: "


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a step reports besides its result."""

    started_at: str
    code: str | None = None
    request_id: str | None = None
    answered: bool = False
    """Whether the network answered at all."""
    message: str | None = None
    grant: bytes | None = field(default=None, repr=False)
    """The sealed access token that was used last."""


# --- the owner's stop ------------------------------------------------------------------------------------------------


def stop(tx: Tx, post_id: str) -> None:
    """Fail each delivery before its commit. Read back once more what may be public, and never send it again."""
    # The original may have published what was due since the backup. The resume reads that back.
    unclear = is_unclear(tx, post_id)
    for delivery in delivery_rows.open_of_post(tx, post_id):
        if may_be_sent(tx, delivery, tx.stamp):
            delivery.progress.stopped = True
            delivery_rows.update(tx, delivery.id, progress=delivery_rows.as_json(delivery.progress.as_dict()))
            reads_back = delivery.phase.reads_back and not delivery.waits_for_reconnect
            if delivery.state is State.QUEUED and not reads_back and not unclear:
                # A wait of hours is over: the next run is a read-back.
                delivery_rows.update(tx, delivery.id, run_at=min(delivery.run_at, tx.stamp))
        else:
            fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))


def may_be_sent(store: Reader, delivery: Delivery, now: str) -> bool:
    """Return whether an open delivery may be public, here or by another installation: it can only be read back."""
    unclear = delivery.due_at <= now and is_unclear(store, delivery.post_id)
    return delivery.past_commit or delivery.phase.inherited or unclear


def is_unclear(store: Reader, post_id: str) -> bool:
    """Return whether this post came with a backup that was restored and not resumed yet."""
    return appliance_state.restored_from(store) is not None and post_rows.elsewhere_since(store, post_id) is not None


def stopped(tx: Tx, delivery: Delivery) -> bool:
    """End a stopped delivery whose commit certainly did not happen. Return whether it ended."""
    if not delivery.progress.stopped or delivery.past_commit or delivery.phase.inherited:
        return False
    fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))
    return True


# --- the next run ----------------------------------------------------------------------------------------------------


def announce(rt: Runtime, tx: Tx, delivery: Delivery) -> None:
    """Write down a commit before it is sent."""
    if delivery.commits_next:
        if not delivery.unknown_calls:
            delivery.committed_at = tx.stamp
        read_back.note_announcement(rt, delivery)


def requeue(rt: Runtime, tx: Tx, delivery: Delivery, seconds: float, *, notify: bool = True) -> None:
    """Release the delivery until its next run."""
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
    delivery_rows.store(tx, delivery)
    if notify and not seconds:
        tx.after_commit(rt.wakeup.notify, delivery.id)


def ask_later(
    rt: Runtime,
    tx: Tx,
    delivery: Delivery,
    run: Run,
    seconds: float,
    outcome: AttemptOutcome,
    message: str,
    code: str | None = None,
) -> None:
    """Run again in `seconds`, at most a day. A wait beyond the deadline ends the delivery at once."""
    until = after(tx.stamp, seconds)
    if parse(until) > waiting.give_up_at(rt, tx, delivery):
        give_up(rt, tx, delivery, run, waiting.too_long(until, message), code)
        return
    if stopped(tx, delivery):
        return
    seconds = min(seconds, MAX_WAIT_SECONDS)
    record_attempt(tx, delivery, run, outcome, message, code, after(tx.stamp, seconds))
    requeue(rt, tx, delivery, seconds)


def record_attempt(
    tx: Tx,
    delivery: Delivery,
    run: Run,
    outcome: AttemptOutcome,
    message: str | None = None,
    code: str | None = None,
    next_at: str | None = None,
    *,
    step_name: str | None = None,
) -> None:
    name, code = step_name or delivery.step_name, code or run.code
    attempt = Attempt(name, run.started_at, outcome, message, code, run.request_id, next_at)
    log_entries.record_attempt(tx, delivery, attempt)


# --- the end ---------------------------------------------------------------------------------------------------------


def give_up(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, why: str, code: str | None = None) -> None:
    """End a delivery whose deadline is over."""
    may_be_public = delivery.phase.may_be_public
    if may_be_public and not delivery.asks:
        not_sent = "Not sent again" if delivery.unknown_calls else "Not sent"
        close(rt, tx, delivery, run, f"{not_sent}: socialpub {why}. The account does not show the post.", code)
    elif may_be_public or delivery.past_commit:
        fail_unconfirmed(tx, delivery, f"socialpub {why}.", run, code=code)
    else:
        fail(tx, delivery, State.FAILED, f"Not sent: socialpub {why}.", run, code=code)


def close(
    rt: Runtime,
    tx: Tx,
    delivery: Delivery,
    run: Run,
    message: str,
    code: str | None = None,
    outcome: AttemptOutcome = AttemptOutcome.UNKNOWN,
) -> None:
    """End a delivery without another call, after one more round of read-backs: the post may be public already."""
    record_attempt(tx, delivery, run, outcome, f"{message} The account is read back before this counts.", code)
    if isinstance(delivery.phase, Inherited):
        post_status.begin_post(tx, delivery.post_id)
    read_back.begin_closing(rt, delivery, tx.stamp, message)
    requeue(rt, tx, delivery, read_back.READ_BACK_AFTER_SECONDS[0])


def fail(
    tx: Tx,
    delivery: Delivery,
    state: State,
    message: str,
    run: Run,
    outcome: AttemptOutcome = AttemptOutcome.REFUSED,
    code: str | None = None,
    *,
    content: bool = False,
) -> None:
    """End a delivery. `content`: the post itself was refused."""
    move(delivery, PhaseEvent[state.name])
    delivery_rows.update(
        tx,
        delivery.id,
        state=state,
        failed_at=tx.stamp,
        error_message=message,
        content_refused=content,
        owner=None,
        started_at=delivery.started_at,
        progress=delivery_rows.as_json(delivery.progress.as_dict()),
    )
    record_attempt(tx, delivery, run, outcome, message, code)
    log_entries.record(tx, delivery.id, "failed")
    post_status.begin_post(tx, delivery.post_id)
    post_status.settle_if_resolved(tx, delivery.post_id)


def fail_unconfirmed(
    tx: Tx,
    delivery: Delivery,
    hint: str,
    run: Run,
    outcome: AttemptOutcome = AttemptOutcome.UNKNOWN,
    code: str | None = None,
) -> None:
    """End a delivery whose post may be public. `hint` says what the owner can do."""
    default = "the result of the call is not known"
    if isinstance(delivery.phase, Inherited):
        default = read_back.MAYBE_SENT
    why = (getattr(delivery.phase, "why", "") or default).rstrip(".")
    fail(tx, delivery, State.UNCONFIRMED, f"{OUTCOME_UNKNOWN}{why}. {hint}", run, outcome, code)


def format_hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"


# --- the wait for a reconnection -------------------------------------------------------------------------------------
#
# A delivery stays pending for as long as a post may be late. It continues once its account is connected (contract 4).


def wait_for_reconnect(
    rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None
) -> None:
    """Wait until the account is connected again. End the delivery if its time is over."""
    until = waiting.start_deadline(rt, tx, delivery)
    if delivery.progress.stopped:
        hint = f"Stopped by the owner while the account could not be asked. {message} Look at the account."
        fail_unconfirmed(tx, delivery, hint, run, code=code)
        return
    if until <= tx.now:
        _end_unconnected(rt, tx, delivery, run, message, code)
        return
    if not delivery.waits_for_reconnect:
        move(delivery, PhaseEvent.NEEDS_RECONNECT)
    delivery.progress.reconnected_at = None
    delivery.state, delivery.held_by = State.QUEUED, None
    delivery.run_at = stamp(until)
    record_attempt(tx, delivery, run, AttemptOutcome.HELD, message, code, delivery.run_at)
    delivery_rows.store(tx, delivery)


def ended_unconnected(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """End a delivery whose account was connected again too late. Return whether it ended."""
    profile, until = profile_rows.find(tx, delivery.profile_id), waiting.start_deadline(rt, tx, delivery)
    if until >= tx.now or profile is None or profile.status is not ProfileStatus.ACTIVE:
        return False
    _end_unconnected(rt, tx, delivery, Run(tx.stamp), "The account had to be connected again.")
    return True


def _end_unconnected(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None) -> None:
    hours = format_hours(rt.settings.publishing.max_lateness)
    late = f"It was not connected within {hours} of the post's time."
    if delivery.phase.may_be_public:
        fail_unconfirmed(tx, delivery, f"{message} {late} Look at the account.", run, code=code)
    else:
        text = f"Not sent: {message[0].lower()}{message[1:]} {late} Create the post again afterwards."
        fail(tx, delivery, State.FAILED, text, run, code=code)
