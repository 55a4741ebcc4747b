"""One delivery: one post on its way to one profile.

The row is the only truth. A worker may die between any two lines of this file, and the next one must be able to tell
what is certain and what is not. So a commit (the call that makes something public) is announced in the row before it
is sent, and what became of it is written down, or read back from the account; it is never guessed and never repeated
blindly.
"""

import json
import random
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from socialpub import attempts, lanes, logbook, statuses
from socialpub.attempts import Attempt
from socialpub.attempts import Outcome as Told
from socialpub.clock import after, parse, stamp
from socialpub.providers.base import Again, Done, Held, More, Outcome, Published, Refused, Unknown, Wait
from socialpub.runtime import Runtime
from socialpub.store.database import Reader, Tx
from socialpub.store.models import Delivery, Progress, State

LOOK_AFTER_SECONDS = (5.0, 15.0, 30.0, 60.0)
"""The pauses before the looks at an account after an unknown outcome: lists lag by up to some two minutes. A post that
none of them shows is absent."""

MOST_COMMITS = 2
"""The commit and, when the account shows for certain that it did not happen, one more."""

EQUAL_CONTENT_SECONDS = 15.0
OUTCOME_UNKNOWN = "Outcome unknown: "


@dataclass(frozen=True, slots=True)
class Retry:
    """A failure that passes: ask again after a growing pause. It certainly made nothing public."""

    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Limited:
    """The network said "not before": for this profile and endpoint, in `seconds` (None: it named no time)."""

    seconds: float | None
    endpoint: str
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """One more answered look at the account, and the post is not there."""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """The network cannot tell what became of the commit. `hint` says where the owner can look."""

    hint: str


Result = Outcome | Retry | Limited | Missing | Undecidable


@dataclass(frozen=True, slots=True)
class Opening:
    """What the first claim stores: the plan, or why there is none. Made from the content by `publisher.open_`."""

    content_key: str
    plan: tuple[tuple[str, str], ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a step has to tell beside its result."""

    started_at: str
    code: str | None = None
    request_id: str | None = None


# --- claim -----------------------------------------------------------------------------------------------------------


def claim(rt: Runtime, tx: Tx, delivery_id: str, opening: Opening | None) -> Delivery | None:
    """Take a delivery that is due, or that a dead owner left behind. None: not due, not allowed, or someone else has it.

    When its next step is the commit, the row says so from here on.
    """
    row = tx.one(f"SELECT {Delivery.COLUMNS} FROM delivery WHERE id = ?", (delivery_id,))  # noqa: S608
    if row is None or lanes.paused_at(tx):
        return None
    delivery = Delivery.of(row)
    if delivery.state.final or _lane_is_busy(rt, tx, delivery):
        return None
    if delivery.state is State.RUNNING:
        if rt.owner.is_alive(delivery.owner or ""):
            return None
        _take_over(tx, delivery)
    elif delivery.run_at > tx.stamp:
        return None
    if _ended_by_patience(rt, tx, delivery):
        return None
    if delivery.plan is None:
        if opening is None or opening.content_key != delivery.content_key:
            return None
        delivery.plan = list(opening.plan)
    if _must_wait(tx, delivery):
        return None
    if delivery.started_at is None:
        delivery.started_at = tx.stamp
        statuses.begin(tx, delivery.post_id)
    if opening is not None and opening.refused is not None and delivery.plan == []:
        _fail(tx, delivery, State.FAILED, opening.refused, Run(tx.stamp))
        return None
    delivery.state = State.RUNNING
    delivery.owner = rt.owner.name
    _announce(tx, delivery)
    _store(tx, delivery)
    return delivery


def _lane_is_busy(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    others = tx.all(
        "SELECT owner FROM delivery WHERE profile_id = ? AND state = 'running' AND id <> ?",
        (delivery.profile_id, delivery.id),
    )
    # What a dead owner left comes first: it may be past its commit.
    return bool(others)


def _take_over(tx: Tx, delivery: Delivery) -> None:
    """The owner died in the middle of a step."""
    if delivery.commits_next and delivery.past_commit:
        _read_back(delivery, "the worker ended while the call was on its way")
        told, message = Told.UNKNOWN, "The worker ended while the call was on its way; the account is read back."
    else:
        told, message = Told.RETRYING, "The worker ended in the middle of this step; it runs again."
    step = delivery.plan[delivery.step][0] if delivery.plan else "start"
    attempts.record(tx, delivery.id, Attempt(step, delivery.run_at, told, message))
    delivery.state = State.QUEUED
    delivery.owner = None
    delivery.run_at = tx.stamp
    _store(tx, delivery)


def _ended_by_patience(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    publishing = rt.settings.publishing
    if delivery.started_at is None:
        if parse(delivery.due_at) + publishing.max_lateness >= tx.now:
            return False
        hours = _hours(publishing.max_lateness)
        message = f"Not sent: it could not start within {hours} of its time, because socialpub was down, paused or held."
        _fail(tx, delivery, State.FAILED, f"{message} Create the post again if it should still go out.", Run(tx.stamp))
        return True
    if parse(delivery.started_at) + publishing.give_up_after >= tx.now:
        return False
    _give_up(tx, delivery, Run(tx.stamp), f"gave up {_hours(publishing.give_up_after)} after the first start")
    return True


def _must_wait(tx: Tx, delivery: Delivery) -> bool:
    """Put a delivery off when its network or an equal one comes first; a wait of one blocks nobody else."""
    rests = lanes.rests_until(tx, delivery)
    if rests is not None:
        until, reason = rests
        _put_off(tx, delivery, until, reason)
    elif lanes.blocked_by_equal(tx, delivery):
        until = after(tx.stamp, EQUAL_CONTENT_SECONDS)
        _put_off(tx, delivery, until, "An equal post to this profile is being read back first.")
    elif not lanes.may_pass(tx, delivery.provider):
        pass  # shown from the hold itself; `run_at` stays, so that its release finds it due
    else:
        return False
    return True


def _put_off(tx: Tx, delivery: Delivery, until: str, reason: str) -> None:
    attempt = Attempt(delivery.step_name, tx.stamp, Told.WAITING, reason, next_at=until)
    attempts.record(tx, delivery.id, attempt)
    tx.update("delivery", delivery.id, run_at=until)


def _announce(tx: Tx, delivery: Delivery) -> None:
    if delivery.commits_next:
        delivery.committed_at = tx.stamp


# --- settle ----------------------------------------------------------------------------------------------------------


def settle(rt: Runtime, tx: Tx, delivery: Delivery, result: Result, run: Run) -> Delivery | None:
    """Write down what became of a step. The delivery again when it goes on at once, else None."""
    row = tx.one("SELECT state, owner, progress FROM delivery WHERE id = ?", (delivery.id,))
    if row is None or State(row["state"]).final:
        return None
    if (row["state"], row["owner"]) != (State.RUNNING, rt.owner.name) and not isinstance(result, Published):
        return None  # the row was taken meanwhile; only a post that is certainly up still counts
    delivery.progress.stopped = Progress(**json.loads(row["progress"])).stopped
    committing = delivery.commits_next
    match result:
        case Done(memo):
            _advance(delivery, memo)
            _tell(tx, delivery, run, Told.DONE, step=-1)
            return _go_on(rt, tx, delivery)
        case More(memo):
            delivery.memo, delivery.progress.tries = memo, 0
            _tell(tx, delivery, run, Told.WAITING, "Goes on.")
            _requeue(rt, tx, delivery, 0)
        case Again():
            _go_back(rt, tx, delivery, result, run)
        case Wait(seconds, reason, memo):
            delivery.memo = memo or delivery.memo
            _clear(delivery, committing)
            delivery.progress.tries = 0
            _wait(rt, tx, delivery, run, seconds, Told.WAITING, reason)
        case Limited():
            _clear(delivery, committing)
            seconds = result.seconds if result.seconds is not None else 60 * _backoff(delivery)
            until = after(tx.stamp, seconds)
            lanes.rest(tx, delivery.profile_id, result.endpoint, until, result.message)
            _wait(rt, tx, delivery, run, seconds, Told.WAITING, result.message, result.code)
        case Held(reason, code):
            _clear(delivery, committing)
            probe_at = lanes.hold(tx, delivery.provider, reason, code)
            _tell(tx, delivery, run, Told.HELD, reason, code, probe_at)
            _requeue(rt, tx, delivery, 0, ring=False)
            return None
        case Retry(message, code):
            _clear(delivery, committing)
            seconds = 5 * _backoff(delivery)
            _wait(rt, tx, delivery, run, seconds, Told.RETRYING, message, code)
        case Published():
            _publish(tx, delivery, result, run)
        case Refused():
            _refuse(tx, delivery, result, run, committing)
        case Unknown(message, code):
            _tell(tx, delivery, run, Told.UNKNOWN, f"{message} The account is read back.", code)
            _read_back(delivery, message)
            _requeue(rt, tx, delivery, LOOK_AFTER_SECONDS[0])
        case Missing():
            _look_again(rt, tx, delivery, run)
        case Undecidable(hint):
            _fail(tx, delivery, State.UNCONFIRMED, _unknown_message(delivery, hint), run, Told.UNKNOWN)
    if not isinstance(result, Retry | Limited | Missing):
        lanes.release(tx, delivery.provider)  # the network answered as usual
    return None


def _advance(delivery: Delivery, memo: Mapping[str, Any]) -> None:
    delivery.memo = dict(memo) or delivery.memo
    delivery.step += 1
    delivery.progress.tries = 0


def _go_on(rt: Runtime, tx: Tx, delivery: Delivery) -> Delivery | None:
    """The next step at once, unless something speaks against it."""
    if _stopped(tx, delivery):
        return None
    if lanes.paused_at(tx) or lanes.rests_until(tx, delivery) or lanes.blocked_by_equal(tx, delivery):
        _requeue(rt, tx, delivery, 0)
        return None
    _announce(tx, delivery)
    _store(tx, delivery)
    return delivery


def _go_back(rt: Runtime, tx: Tx, delivery: Delivery, again: Again, run: Run) -> None:
    count = delivery.progress.again.get(again.reason, 0) + 1
    if count > again.limit:
        _refuse(tx, delivery, Refused(again.reason), run, True)
        return
    _tell(tx, delivery, run, Told.RETRYING, again.reason, next_at=after(tx.stamp, again.seconds))
    delivery.progress.again[again.reason] = count
    delivery.memo = again.memo
    delivery.step = [name for name, _ in delivery.plan or ()].index(again.step)
    delivery.committed_at = None
    if not _stopped(tx, delivery):
        _requeue(rt, tx, delivery, again.seconds)


def _wait(
    rt: Runtime,
    tx: Tx,
    delivery: Delivery,
    run: Run,
    seconds: float,
    told: Told,
    message: str,
    code: str | None = None,
) -> None:
    """Ask again in `seconds`; a wait that would outlast the patience ends the delivery at once."""
    assert delivery.started_at is not None
    until = after(tx.stamp, seconds)
    if parse(until) > parse(delivery.started_at) + rt.settings.publishing.give_up_after:
        _give_up(tx, delivery, run, f"would have to wait until {until}, longer than socialpub's patience: {message}", code)
        return
    if _stopped(tx, delivery):
        return
    _tell(tx, delivery, run, told, message, code, until)
    _requeue(rt, tx, delivery, seconds)


def _publish(tx: Tx, delivery: Delivery, post: Published, run: Run) -> None:
    try:
        tx.update(
            "delivery",
            delivery.id,
            state=State.PUBLISHED,
            published_at=tx.stamp,
            provider_post_id=post.post_id,
            url=post.url,
            owner=None,
        )
    except sqlite3.IntegrityError:
        hint = f"The network answered with {post.post_id}, which is another post's. Look at the account."
        _fail(tx, delivery, State.UNCONFIRMED, OUTCOME_UNKNOWN + hint, run, Told.UNKNOWN)
        return
    _tell(tx, delivery, run, Told.PUBLISHED)
    tx.execute("UPDATE profile SET posts_count = posts_count + 1 WHERE id = ?", (delivery.profile_id,))
    logbook.record(tx, delivery.id, "published")
    statuses.settle_if_resolved(tx, delivery.post_id)


def _refuse(tx: Tx, delivery: Delivery, refused: Refused, run: Run, committing: bool) -> None:
    if refused.reauth:
        tx.execute(
            "UPDATE profile SET status = 'reauthRequired', reason = ?, updated_at = ? WHERE id = ? AND status = 'active'",
            (refused.message, tx.stamp, delivery.profile_id),
        )
    if refused.rest_seconds:
        until = after(tx.stamp, refused.rest_seconds)
        lanes.rest(tx, delivery.profile_id, lanes.ANY_ENDPOINT, until, refused.message)
    if delivery.past_commit and not committing:
        # A refused question is no verdict on the post.
        message = _unknown_message(delivery, refused.message)
        _fail(tx, delivery, State.UNCONFIRMED, message, run, Told.REFUSED, refused.code)
    else:
        _fail(tx, delivery, State.FAILED, refused.message, run, Told.REFUSED, refused.code)


def _look_again(rt: Runtime, tx: Tx, delivery: Delivery, run: Run) -> None:
    progress = delivery.progress
    progress.looks += 1
    progress.tries = 0
    if progress.looks < len(LOOK_AFTER_SECONDS):
        seconds = LOOK_AFTER_SECONDS[progress.looks]
        _wait(rt, tx, delivery, run, seconds, Told.WAITING, "The account does not show the post yet; looking again.")
        return
    # Absent: looked long enough, it is not there.
    if progress.stopped:
        _fail(tx, delivery, State.FAILED, STOPPED, run)
    elif progress.commits >= MOST_COMMITS:
        hint = "The account does not show it even after the second call. Look at the account before you post it again."
        _fail(tx, delivery, State.UNCONFIRMED, _unknown_message(delivery, hint), run, Told.UNKNOWN)
    else:
        _tell(tx, delivery, run, Told.DONE, "The account does not have the post; it is sent once more.")
        progress.reading_back = False
        progress.looks = 0
        delivery.committed_at = None
        _requeue(rt, tx, delivery, 0)


# --- stop, pause -----------------------------------------------------------------------------------------------------

STOPPED = "Stopped by the owner."


def stop(tx: Tx, post_id: str) -> None:
    """Fail what is not past its commit; what may be public already is still read back, but never sent again."""
    rows = tx.all(
        f"SELECT {Delivery.COLUMNS} FROM delivery WHERE post_id = ? AND state IN ('queued', 'running')",  # noqa: S608
        (post_id,),
    )
    for delivery in map(Delivery.of, rows):
        if delivery.past_commit:
            delivery.progress.stopped = True
            tx.update("delivery", delivery.id, progress=_json(asdict(delivery.progress)))
        else:
            _fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))


def pause(rt: Runtime, tx: Tx) -> None:
    """From now on nothing starts. Twice is once."""
    tx.execute("INSERT INTO appliance (name, value) VALUES ('paused_at', ?) ON CONFLICT DO NOTHING", (tx.stamp,))


def resume(rt: Runtime, tx: Tx) -> int:
    """Let deliveries start again; how many posts are too late by now and will not be sent."""
    tx.execute("DELETE FROM appliance WHERE name = 'paused_at'")
    oldest = stamp(tx.now - rt.settings.publishing.max_lateness)
    row = tx.one(
        "SELECT count(DISTINCT post_id) FROM delivery WHERE state = 'queued' AND started_at IS NULL AND due_at < ?",
        (oldest,),
    )
    return int(row[0]) if row else 0


def overdue(reader: Reader, now: str, seconds: float = 120.0) -> int:
    """How many deliveries should have been taken up that long ago and were not. Holds are told separately."""
    return int(
        reader.value(
            """SELECT count(*) FROM delivery WHERE state = 'queued' AND run_at < ?
                AND provider NOT IN (SELECT provider FROM hold)""",
            (after(now, -seconds),),
        )
    )


# --- inside ----------------------------------------------------------------------------------------------------------


def _stopped(tx: Tx, delivery: Delivery) -> bool:
    """End a stopped delivery whose commit certainly did not happen."""
    if not delivery.progress.stopped or delivery.past_commit:
        return False
    _fail(tx, delivery, State.FAILED, STOPPED, Run(tx.stamp))
    return True


def _clear(delivery: Delivery, committing: bool) -> None:
    """The commit was refused for now or never left: it certainly did not happen."""
    if committing:
        delivery.committed_at = None


def _read_back(delivery: Delivery, why: str) -> None:
    progress = delivery.progress
    progress.reading_back = True
    progress.commits += 1
    progress.looks = 0
    progress.tries = 0
    progress.unknown = why


def _give_up(tx: Tx, delivery: Delivery, run: Run, why: str, code: str | None = None) -> None:
    if delivery.past_commit:
        _fail(tx, delivery, State.UNCONFIRMED, _unknown_message(delivery, f"socialpub {why}."), run, Told.UNKNOWN, code)
    else:
        _fail(tx, delivery, State.FAILED, f"Not sent: socialpub {why}.", run, code=code)


def _unknown_message(delivery: Delivery, hint: str) -> str:
    why = (delivery.progress.unknown or "what became of the call cannot be told").rstrip(".")
    return f"{OUTCOME_UNKNOWN}{why}. {hint}"


def _fail(
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
        progress=_json(asdict(delivery.progress)),
    )
    _tell(tx, delivery, run, told, message, code)
    logbook.record(tx, delivery.id, "failed")
    statuses.begin(tx, delivery.post_id)
    statuses.settle_if_resolved(tx, delivery.post_id)


def _requeue(rt: Runtime, tx: Tx, delivery: Delivery, seconds: float, *, ring: bool = True) -> None:
    delivery.state = State.QUEUED
    delivery.owner = None
    delivery.run_at = after(tx.stamp, seconds) if seconds else tx.stamp
    _store(tx, delivery)
    if ring and not seconds:
        tx.after_commit(rt.doorbell.ring, delivery.id)


def _store(tx: Tx, delivery: Delivery) -> None:
    tx.update(
        "delivery",
        delivery.id,
        state=delivery.state,
        run_at=delivery.run_at,
        started_at=delivery.started_at,
        owner=delivery.owner,
        plan=None if delivery.plan is None else _json(delivery.plan),
        step=delivery.step,
        memo=_json(delivery.memo),
        progress=_json(asdict(delivery.progress)),
        committed_at=delivery.committed_at,
    )


def _tell(
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


def _backoff(delivery: Delivery) -> float:
    """1, 2, 4 … 180, with up to a quarter of jitter on top, never below."""
    delivery.progress.tries += 1
    return float(min(2 ** (delivery.progress.tries - 1), 180)) * (1 + random.random() / 4)


def _hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
