"""One delivery: one post on its way to one profile.

The row is the only truth. A worker may die between any two lines of this file, and the next one must be able to tell
what is certain and what is not. So a commit (the call that makes something public) is announced in the row before it
is sent, and what became of it is written down, or read back from the account; it is never guessed and never repeated
blindly. Taking up is in `claim.py`, writing down in `settle.py`, what the looks come to in `looks.py`; here is what
all use.
"""

from datetime import timedelta

from socialpub.accounts import cooldowns
from socialpub.core.clock import after, parse, stamp
from socialpub.db import appliance_state, delivery_rows, post_rows, trail, waiting_deliveries
from socialpub.db.models import Delivery, State
from socialpub.db.trail import TrailAction
from socialpub.db.transaction import Reader, Tx
from socialpub.publishing import attempts, holds, log_entries, network_time, post_status, read_back, scheduling
from socialpub.publishing.attempts import Attempt, AttemptOutcome
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime

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


def may_be_sent(store: Reader | Tx, delivery: Delivery, now: str) -> bool:
    """Whether an open delivery is past its commit, or another installation may have published it: it cannot be stopped
    any more, only read back."""
    unclear = delivery.due_at <= now and is_unclear(store, delivery.post_id)
    return delivery.past_commit or delivery.progress.look_first or unclear


def is_unclear(store: Reader | Tx, post_id: str) -> bool:
    """Whether this post came with a backup that was restored and not resumed yet."""
    return appliance_state.restored_from(store) is not None and post_rows.elsewhere_since(store, post_id) is not None


def pause(rt: Runtime, tx: Tx) -> None:
    """From now on nothing starts; a pause that goes on already keeps its beginning."""
    if appliance_state.paused_at(tx) is None:
        appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp)
        trail.record(tx, TrailAction.PUBLISHING_PAUSED)


def resume(rt: Runtime, tx: Tx) -> int:
    """Let deliveries start again; how many posts are too late by now and will not be sent."""
    appliance_state.remove(tx, appliance_state.PAUSED_AT)
    holds.probe_all(tx)
    return waiting_deliveries.count_posts_due_before(tx, too_late_before(rt))


def too_late_before(rt: Runtime) -> str:
    """What was due before this instant and has not started is not sent any more."""
    return stamp(rt.now() - rt.settings.publishing.max_lateness)


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
        network_time.note_announcement(rt, delivery)


def requeue(rt: Runtime, tx: Tx, delivery: Delivery, seconds: float, *, ring: bool = True) -> None:
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
    delivery_rows.store(tx, delivery)
    if ring and not seconds:
        tx.after_commit(rt.wakeup.ring, delivery.id)


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
    if parse(until) > scheduling.patient_until(rt, tx, delivery):
        give_up(rt, tx, delivery, run, scheduling.too_long(until, message), code)
        return
    if stopped(tx, delivery):
        return
    seconds = min(seconds, cooldowns.LONGEST_SECONDS)
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
        post_status.begin(tx, delivery.post_id)
    read_back.begin_closing(rt, delivery, tx.stamp, message)
    requeue(rt, tx, delivery, read_back.LOOK_AFTER_SECONDS[0])


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
    post_status.begin(tx, delivery.post_id)
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
    attempts.record(
        tx, delivery, Attempt(name, run.started_at, outcome, message, code or run.code, run.request_id, next_at)
    )


def unknown_message(delivery: Delivery, hint: str) -> str:
    elsewhere = read_back.MAYBE_SENT if delivery.progress.look_first else "the result of the call is not known"
    why = (delivery.progress.unknown or elsewhere).rstrip(".")
    return f"{OUTCOME_UNKNOWN}{why}. {hint}"


def hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"
