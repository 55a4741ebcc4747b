"""What one run of a step can come to, beside what a network's own outcomes say (`providers/outcomes.py`)."""

from dataclasses import dataclass, field
from datetime import timedelta

from socialpub.accounts import rate_limits
from socialpub.core.clock import after, parse, stamp
from socialpub.db import appliance_state
from socialpub.db.connection import Reader, Tx
from socialpub.db.delivery import Delivery
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import delivery_rows, log_entries, post_rows, profile_rows
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.publishing.delivery import read_back, waiting
from socialpub.publishing.posts import post_status
from socialpub.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a step has to tell beside its result."""

    started_at: str
    code: str | None = None
    request_id: str | None = None
    answered: bool = False
    """Whether the network answered at all."""
    message: str | None = None
    grant: bytes | None = field(default=None, repr=False)
    """The sealed access token that was used last."""


# MERGED from publishing/deliveries.py: One delivery: one post on its way to one profile.

OUTCOME_UNKNOWN = "Outcome unknown: "
STOPPED = "Stopped by the owner."


def stop(tx: Tx, post_id: str) -> None:
    """Fail what is not past its commit; what may be public already is looked for once more, but never sent again."""
    # The original may have published what was due since the backup. The resume reads that back.
    unclear = is_unclear(tx, post_id)
    for delivery in delivery_rows.open_of_post(tx, post_id):
        if may_be_sent(tx, delivery, tx.stamp):
            delivery.progress.stopped = True
            delivery_rows.update(tx, delivery.id, progress=delivery_rows.as_json(delivery.progress.as_dict()))
            looks = delivery.progress.reading_back and not delivery.progress.waits_for_owner
            if delivery.state is State.QUEUED and not looks and not unclear:
                # What waits for hours need not wait to be looked for.
                delivery_rows.update(tx, delivery.id, run_at=min(delivery.run_at, tx.stamp))
        else:
            fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))


def may_be_sent(store: Reader, delivery: Delivery, now: str) -> bool:
    """Whether an open delivery is past its commit, or another installation may have published it: it cannot be stopped
    any more, only read back."""
    unclear = delivery.due_at <= now and is_unclear(store, delivery.post_id)
    return delivery.past_commit or delivery.progress.look_first or unclear


def is_unclear(store: Reader, post_id: str) -> bool:
    """Whether this post came with a backup that was restored and not resumed yet."""
    return appliance_state.restored_from(store) is not None and post_rows.elsewhere_since(store, post_id) is not None


def steps_done(delivery: Delivery) -> int:
    """How many steps of the plan lie behind."""
    return len(delivery.plan or ()) if delivery.state == State.PUBLISHED else delivery.step


# --- what claiming and settling share ---------------------------------------------------------------------------


def announce(rt: Runtime, tx: Tx, delivery: Delivery) -> None:
    if delivery.commits_next:
        if not delivery.progress.commits:
            delivery.committed_at = tx.stamp
        elif delivery.committed_at is None:  # a former version cleared it before the second call
            delivery.committed_at = delivery.progress.since or tx.stamp
        read_back.note_announcement(rt, delivery)


def requeue(rt: Runtime, tx: Tx, delivery: Delivery, seconds: float, *, notify: bool = True) -> None:
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
    delivery_rows.store(tx, delivery)
    if notify and not seconds:
        tx.after_commit(rt.wakeup.notify, delivery.id)


def stopped(tx: Tx, delivery: Delivery) -> bool:
    """End a stopped delivery whose commit certainly did not happen."""
    if not delivery.progress.stopped or delivery.past_commit or delivery.progress.look_first:
        return False
    fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))
    return True


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
    """Ask again in `seconds`, after a day at the latest; a wait that would outlast the patience ends the delivery at
    once."""
    until = after(tx.stamp, seconds)
    if parse(until) > waiting.give_up_at(rt, tx, delivery):
        give_up(rt, tx, delivery, run, waiting.too_long(until, message), code)
        return
    if stopped(tx, delivery):
        return
    seconds = min(seconds, rate_limits.MAX_SECONDS)
    record_attempt(tx, delivery, run, outcome, message, code, after(tx.stamp, seconds))
    requeue(rt, tx, delivery, seconds)


def give_up(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, why: str, code: str | None = None) -> None:
    """The patience is over."""
    if delivery.may_be_public and not delivery.asks:
        not_sent = "Not sent again" if delivery.progress.commits else "Not sent"
        close(rt, tx, delivery, run, f"{not_sent}: socialpub {why}. The account does not show the post.", code)
    elif delivery.may_be_public or delivery.past_commit:
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
    """End it without another call. It may be public already, so the account is read back once more. If the account does
    not show the post, the delivery fails with this message."""
    shown = f"{message} The account is read back before this counts."
    record_attempt(tx, delivery, run, outcome, shown, code)
    if delivery.progress.look_first:
        assert delivery.progress.since is not None
        read_back.begin_elsewhere(rt, delivery, tx.stamp, delivery.progress.since)
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
    """End a delivery whose post may be public; `hint` says what the owner can do."""
    fail(tx, delivery, State.UNCONFIRMED, unknown_message(delivery, hint), run, outcome, code)


def record_attempt(
    tx: Tx,
    delivery: Delivery,
    run: Run,
    outcome: AttemptOutcome,
    message: str | None = None,
    code: str | None = None,
    next_at: str | None = None,
    *,
    step: int = 0,
) -> None:
    name = delivery.step_name if not step else (delivery.plan or [("start", "")])[delivery.step + step][0]
    log_entries.record_attempt(
        tx, delivery, Attempt(name, run.started_at, outcome, message, code or run.code, run.request_id, next_at)
    )


def unknown_message(delivery: Delivery, hint: str) -> str:
    elsewhere = read_back.MAYBE_SENT if delivery.progress.look_first else "the result of the call is not known"
    why = (delivery.progress.unknown or elsewhere).rstrip(".")
    return f"{OUTCOME_UNKNOWN}{why}. {hint}"


def format_hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"


# MERGED from publishing/owner_wait.py: Deliveries that wait for their owner: the account must be connected again f


def wait_for_reconnect(
    rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None
) -> None:
    """Wait for the account to be connected, or end when it was not in time."""
    until = waiting.start_deadline(rt, tx, delivery)
    if delivery.progress.stopped:
        hint = f"Stopped by the owner while the account could not be asked. {message} Look at the account."
        fail_unconfirmed(tx, delivery, hint, run, code=code)
        return
    if until <= tx.now:
        _end_unconnected(rt, tx, delivery, run, message, code)
        return
    delivery.progress.waits_for_owner, delivery.progress.reconnected_at = True, None
    delivery.state, delivery.held_by = State.QUEUED, None
    delivery.run_at = stamp(until)
    record_attempt(tx, delivery, run, AttemptOutcome.HELD, message, code, delivery.run_at)
    delivery_rows.store(tx, delivery)


def ended_unconnected(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """End a delivery whose account was connected again, and not in time. Returns whether it was ended."""
    profile, until = profile_rows.find(tx, delivery.profile_id), waiting.start_deadline(rt, tx, delivery)
    if until >= tx.now or profile is None or profile.status is not ProfileStatus.ACTIVE:
        return False
    _end_unconnected(rt, tx, delivery, Run(tx.stamp), "The account had to be connected again.")
    return True


def _end_unconnected(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str, code: str | None = None) -> None:
    hours = format_hours(rt.settings.publishing.max_lateness)
    late = f"It was not connected within {hours} of the post's time."
    if delivery.may_be_public:
        fail_unconfirmed(tx, delivery, f"{message} {late} Look at the account.", run, code=code)
    else:
        text = f"Not sent: {message[0].lower()}{message[1:]} {late} Create the post again afterwards."
        fail(tx, delivery, State.FAILED, text, run, code=code)
