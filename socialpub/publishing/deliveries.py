"""One delivery: one post on its way to one profile.

The row is the only truth. A worker may die between any two lines of this file, and the next one must be able to tell
what is certain and what is not. So a commit (the call that makes something public) is announced in the row before it
is sent, and what became of it is written down, or read back from the account; it is never guessed and never repeated
blindly. Taking up is in `claims.py`, writing down in `settlement.py`; here is what both, and the owner, do to a row.
"""

import json
from datetime import datetime, timedelta
from typing import Any

from socialpub.accounts import cooldowns
from socialpub.core import durations
from socialpub.core.clock import after, parse, stamp
from socialpub.db import appliance_state
from socialpub.db.database import Reader, Tx
from socialpub.db.models import Delivery, State
from socialpub.publishing import attempts, holds, log_entries, post_status, scheduling
from socialpub.publishing.attempts import Attempt
from socialpub.publishing.attempts import Outcome as Told
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime

LOOK_AFTER_SECONDS = (5.0, 15.0, 30.0, 60.0)
"""The pauses before the looks at an account after an unknown outcome: lists lag by up to some two minutes. A post that
none of them shows is absent."""

MOST_COMMITS = 2
"""The commit and, when the account shows for certain that it did not happen, one more."""

LONGEST_STEP_SECONDS = 1800.0
"""A call that sends a file is judged by its progress alone: 150 MB over a slow line take their time."""

OUTCOME_UNKNOWN = "Outcome unknown: "
STOPPED = "Stopped by the owner."


def stop(tx: Tx, post_id: str) -> None:
    """Fail what is not past its commit; what may be public already is still read back, but never sent again."""
    rows = tx.all(
        f"SELECT {Delivery.COLUMNS} FROM delivery WHERE post_id = ? AND state IN ('queued', 'running')",
        (post_id,),
    )
    # What was due in a restored copy may have been sent by its original; that is found out when it is resumed.
    unclear = appliance_state.restored_from(tx) is not None
    for delivery in map(Delivery.of, rows):
        if delivery.past_commit or (unclear and delivery.due_at <= tx.stamp):
            delivery.progress.stopped = True
            tx.update("delivery", delivery.id, progress=_json(delivery.progress.as_dict()))
        else:
            fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))


def pause(rt: Runtime, tx: Tx) -> None:
    """From now on nothing starts; a pause that goes on already keeps its beginning."""
    appliance_state.put_if_absent(tx, appliance_state.PAUSED_AT, tx.stamp)


def resume(rt: Runtime, tx: Tx) -> int:
    """Let deliveries start again; how many posts are too late by now and will not be sent."""
    appliance_state.remove(tx, appliance_state.PAUSED_AT)
    holds.probe_all(tx)
    oldest = stamp(tx.now - rt.settings.publishing.max_lateness)
    row = tx.one(
        """SELECT count(DISTINCT post_id) FROM delivery WHERE state = 'queued' AND started_at IS NULL
            AND run_at <= due_at AND due_at < ?""",
        (oldest,),
    )
    return int(row[0]) if row else 0


def overdue(reader: Reader, now: str, seconds: float) -> int:
    """How many deliveries should have been taken up that long ago and were not, or run longer than any step takes
    (a suspended worker keeps its lane). Holds are told separately."""
    return int(
        reader.value(
            """SELECT (SELECT count(*) FROM delivery WHERE state = 'queued' AND run_at < ?
                    AND provider NOT IN (SELECT provider FROM hold))
                + (SELECT count(*) FROM delivery WHERE state = 'running' AND run_at < ?)""",
            (after(now, -seconds), after(now, -LONGEST_STEP_SECONDS)),
        )
    )


def list_for_post(reader: Reader, post_id: str) -> list[Delivery]:
    """A post's deliveries, in their order."""
    rows = reader.all(f"SELECT {Delivery.COLUMNS} FROM delivery WHERE post_id = ? ORDER BY position", (post_id,))
    return [Delivery.of(row) for row in rows]


def steps_done(delivery: Delivery) -> int:
    """How many steps of the plan lie behind."""
    return len(delivery.plan or ()) if delivery.state == State.PUBLISHED else delivery.step


# --- what claiming and settling share ---------------------------------------------------------------------------


def announce(tx: Tx, delivery: Delivery) -> None:
    if delivery.commits_next:
        delivery.committed_at = tx.stamp


def store(tx: Tx, delivery: Delivery) -> None:
    tx.update(
        "delivery",
        delivery.id,
        state=delivery.state,
        run_at=delivery.run_at,
        started_at=delivery.started_at,
        owner=delivery.held_by,
        plan=None if delivery.plan is None else _json(delivery.plan),
        step=delivery.step,
        memo=_json(delivery.memo),
        progress=_json(delivery.progress.as_dict()),
        committed_at=delivery.committed_at,
    )


def requeue(rt: Runtime, tx: Tx, delivery: Delivery, seconds: float, *, ring: bool = True) -> None:
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
    store(tx, delivery)
    if ring and not seconds:
        tx.after_commit(rt.doorbell.ring, delivery.id)


def read_back(delivery: Delivery, why: str) -> None:
    progress = delivery.progress
    progress.reading_back = True
    progress.commits += 1
    progress.looks = 0
    progress.tries = 0
    progress.unknown = why
    progress.since = progress.since or delivery.committed_at


def leave_a_gap(rt: Runtime, tx: Tx, delivery: Delivery) -> None:
    """Something was, or may have been, made public just now: the profile's next post keeps its distance."""
    gap = rt.settings.publishing.min_gap
    if gap:
        reason = f"Two posts of one profile are at least {durations.write(gap)} apart (publishing.min_gap)."
        cooldowns.begin(tx, delivery.profile_id, scheduling.COMMITS, after(tx.stamp, gap.total_seconds()), reason)


def stopped(tx: Tx, delivery: Delivery) -> bool:
    """End a stopped delivery whose commit certainly did not happen."""
    if not delivery.progress.stopped or delivery.past_commit:
        return False
    fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))
    return True


def patient_until(rt: Runtime, delivery: Delivery) -> datetime:
    """When `give_up_after` is over."""
    return parse(delivery.started_at or delivery.due_at) + rt.settings.publishing.give_up_after


def too_long(until: str, reason: str) -> str:
    """Why to give up at once, for `give_up`."""
    return f"would have to wait until {until}, longer than its patience: {reason.rstrip('.')}"


def give_up(tx: Tx, delivery: Delivery, run: Run, why: str, code: str | None = None) -> None:
    if delivery.past_commit:
        fail(tx, delivery, State.UNCONFIRMED, unknown_message(delivery, f"socialpub {why}."), run, Told.UNKNOWN, code)
    else:
        fail(tx, delivery, State.FAILED, f"Not sent: socialpub {why}.", run, code=code)


def fail(
    tx: Tx,
    delivery: Delivery,
    state: State,
    message: str,
    run: Run,
    told: Told = Told.REFUSED,
    code: str | None = None,
) -> None:
    tx.update(
        "delivery",
        delivery.id,
        state=state,
        failed_at=tx.stamp,
        error_message=message,
        owner=None,
        started_at=delivery.started_at,
        progress=_json(delivery.progress.as_dict()),
    )
    tell(tx, delivery, run, told, message, code)
    log_entries.record(tx, delivery.id, "failed")
    post_status.begin(tx, delivery.post_id)
    post_status.settle_if_resolved(tx, delivery.post_id)


def tell(
    tx: Tx,
    delivery: Delivery,
    run: Run,
    told: Told,
    message: str | None = None,
    code: str | None = None,
    next_at: str | None = None,
    *,
    step: int = 0,
) -> None:
    name = delivery.step_name if not step else (delivery.plan or [("start", "")])[delivery.step + step][0]
    attempts.record(
        tx, delivery.id, Attempt(name, run.started_at, told, message, code or run.code, run.request_id, next_at)
    )


def unknown_message(delivery: Delivery, hint: str) -> str:
    why = (delivery.progress.unknown or "what became of the call cannot be told").rstrip(".")
    return f"{OUTCOME_UNKNOWN}{why}. {hint}"


def hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
