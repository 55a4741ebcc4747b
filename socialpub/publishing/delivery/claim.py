"""Claim a delivery: decide who may start what, in the transaction that starts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from socialpub.core import units
from socialpub.core.clock import after, parse
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Tx
from socialpub.db.delivery import Delivery
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows, holds, log_entries, profile_rows
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.providers.base import Content, Refused
from socialpub.publishing.delivery import deliveries, profile_queue, read_back, step, transitions, waiting
from socialpub.publishing.delivery.deliveries import Run
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.publishing.delivery.step import NeedsReauth, Undecidable
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.publishing.posts import content, post_status
from socialpub.runtime import Runtime

EQUAL_CONTENT_SECONDS = 15.0
EXAMINED_AGAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Preflight:
    """What the first claim stores: the plan, or why there is none. Made from the content by `engine.prepare`."""

    content: Content
    options: Mapping[str, Any]
    plan: tuple[tuple[str, str], ...] = ()
    refused: Refused | None = None
    later: str | None = None
    """Why it could not be made just now."""


def claim(rt: Runtime, tx: Tx, delivery_id: str, preflight: Preflight | None) -> Delivery | None:
    """Claim a delivery that is due, or whose process died. None: it is not due, not allowed, or claimed already.

    The caller holds it in this process (`ProcessLock.take`), so a row that runs under the name of this process was left
    by a thread. If the next step is the commit, the row announces it from here on.
    """
    delivery = delivery_rows.find(tx, delivery_id)
    if delivery is None or delivery.state.final or appliance_state.paused_at(tx):
        return None
    if profile_queue.is_busy(tx, delivery):
        return None
    if delivery.state is State.RUNNING:
        if delivery.held_by != rt.process.name and rt.process.is_alive(delivery.held_by or ""):
            return None
        if not _take_over(rt, tx, delivery):
            return None
    elif delivery.run_at > tx.stamp:
        return None
    if _ended_by_deadline(rt, tx, delivery) or deliveries.stopped(tx, delivery) or _is_unusable(rt, tx, delivery):
        return None
    if delivery.plan is None and not delivery.phase.reads_back:
        if preflight is None or not _still_fits(rt, tx, delivery, preflight):
            return None
        if preflight.later is not None:
            _put_off(tx, delivery, after(tx.stamp, EXAMINED_AGAIN_SECONDS), preflight.later)
            return None
        if preflight.refused is not None:
            _end_unsent(rt, tx, delivery, preflight.refused)
            return None
        delivery.plan = list(preflight.plan)
        transitions.enter_step(delivery)
    if delivery.progress.stopped and delivery.phase.may_be_public and not delivery.asks:
        deliveries.close(rt, tx, delivery, Run(tx.stamp), STOPPED)
        return None
    if _must_wait(rt, tx, delivery, planned=preflight is None):
        return None
    if not read_back.confirm_first(rt, delivery):
        if holds.any_hold(tx):
            holds.claim_probe(tx, delivery)
    elif _must_wait_to_check(rt, tx, delivery):
        return None
    if delivery.started_at is None:
        delivery.started_at = tx.stamp
        post_status.begin_post(tx, delivery.post_id)
    delivery.state = State.RUNNING
    delivery.held_by = rt.process.name
    delivery.run_at = tx.stamp
    deliveries.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _still_fits(rt: Runtime, tx: Tx, delivery: Delivery, preflight: Preflight) -> bool:
    """Return whether the plan was made from the present content: a change may have reached the disk meanwhile."""
    return preflight.options == delivery.options and preflight.content == content.load_content(rt, tx, delivery.post_id)


def _is_unusable(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """Return whether the account was disconnected, or must be connected again first. Then nothing can be sent."""
    profile = profile_rows.find(tx, delivery.profile_id)
    assert profile is not None
    match step.interpret_unusable(delivery, profile):
        case NeedsReauth(message):
            deliveries.wait_for_reconnect(rt, tx, delivery, Run(tx.stamp), message)
        case Refused(message):
            deliveries.fail(tx, delivery, State.FAILED, message, Run(tx.stamp))
        case Undecidable(hint):
            deliveries.fail_unconfirmed(tx, delivery, hint, Run(tx.stamp))
        case _:
            if delivery.waits_for_reconnect:
                transitions.move(delivery, PhaseEvent.RECONNECTED)
            return False
    return True


def _ended_by_deadline(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    if delivery.waits_for_reconnect and delivery.progress.reconnected_at is None:
        return deliveries.ended_unconnected(rt, tx, delivery)
    if delivery.started_at is None:
        if message := _too_late(rt, tx, delivery):
            _end_unsent(rt, tx, delivery, Refused(f"Not sent: {message}"))
            return True
        if not waiting.was_put_off(tx, delivery):
            return False
    if waiting.give_up_at(rt, tx, delivery) >= tx.now:
        return False
    since = "the first start" if delivery.started_at else "its time"
    if (delivery.progress.reconnected_at or "") > (delivery.started_at or delivery.due_at):
        since = "its account was connected again"
    hours = deliveries.format_hours(rt.settings.publishing.give_up_after)
    deliveries.give_up(rt, tx, delivery, Run(tx.stamp), f"gave up {hours} after {since}")
    return True


def _end_unsent(rt: Runtime, tx: Tx, delivery: Delivery, refused: Refused) -> None:
    """End a delivery of which this installation sends nothing. Another installation may have published it."""
    if delivery.phase.may_be_public:
        deliveries.close(rt, tx, delivery, Run(tx.stamp), refused.message)
    else:
        deliveries.fail(tx, delivery, State.FAILED, refused.message, Run(tx.stamp), content=refused.content)


def _too_late(rt: Runtime, tx: Tx, delivery: Delivery) -> str | None:
    """Return why a delivery that has not started is too late to start. None: it may start."""
    latest, limit = waiting.start_deadline(rt, tx, delivery), rt.settings.publishing.max_lateness
    if tx.now <= latest:
        return None
    jumps = clock_jumps.forward_since(tx, delivery.due_at)
    jumped = timedelta(seconds=sum(seconds for _, seconds in jumps))
    # A delivery that its network, or an equal post, put off has the deadline of one that started. A clock that was
    # set is no such wait.
    put_off = waiting.was_put_off(tx, delivery)
    if put_off and (delivery.scheduled_at is None or jumped <= limit):
        return None
    if tx.now - jumped > latest or not jumps:
        return (
            f"it could not start within {deliveries.format_hours(limit)} of its time, because socialpub was down, "
            "paused or held. Create the post again if it should still go out."
        )
    at, seconds = max(jumps, key=lambda jump: jump[1])
    return (
        f"it is more than {deliveries.format_hours(limit)} later than its time (publishing.max_lateness). The clock "
        f"was set forward by {units.in_words(seconds)} at {at}. If the clock is correct now, "
        "create the post again. Otherwise, set the clock first."
    )


def _must_wait(rt: Runtime, tx: Tx, delivery: Delivery, *, planned: bool) -> bool:
    """Postpone a delivery that waits for its network, or for an equal post. `planned`: its row had a plan before."""
    rests = waiting.find_cooldown(tx, delivery)
    if rests is not None:
        until, reason = rests
        if parse(until) > waiting.give_up_at(rt, tx, delivery):
            deliveries.give_up(rt, tx, delivery, Run(tx.stamp), waiting.too_long(until, reason))
        elif delivery.progress.stopped or planned:
            # The queue does not wait for a call that it may never make. What the queue offers although its row says
            # what it waits on would wait too long by `not_before.outlasts`, and not by its own deadline.
            _put_off(tx, delivery, until, reason)
        else:
            # Shown from the wait itself; `run_at` stays. With its plan the row says what it waits on, and the queue
            # skips it.
            delivery_rows.store(tx, delivery)
    elif waiting.equal_comes_first(tx, delivery):
        until = after(tx.stamp, EQUAL_CONTENT_SECONDS)
        _put_off(tx, delivery, until, "An equal post to this profile is being read back first.")
    elif _another_suspect_runs(rt, tx, delivery):
        delivery_rows.update(tx, delivery.id, run_at=after(tx.stamp, SUSPECT_SECONDS))
    elif holds.closed_until(tx, delivery):
        # Shown from the hold itself; `run_at` stays, so that its release finds it due. With its plan the row says what
        # it waits for, and the queue skips it.
        delivery_rows.store(tx, delivery)
    else:
        return False
    return True


def _must_wait_to_check(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """Postpone a delivery whose read-back before a call has to wait, like any question. The call itself might go."""
    rests = waiting.find_cooldown(tx, delivery)
    until, reason = rests or holds.closed_until(tx, delivery) or (None, "")
    if until is not None:
        _put_off(tx, delivery, until, reason)
    return until is not None


def _put_off(tx: Tx, delivery: Delivery, until: str, reason: str) -> None:
    attempt = Attempt(delivery.step_name, tx.stamp, AttemptOutcome.WAITING, reason, next_at=until)
    log_entries.record_attempt(tx, delivery, attempt)
    delivery_rows.update(tx, delivery.id, run_at=until)


# --- a delivery whose process died -----------------------------------------------------------------------------------
#
# All that ran in a process is suspected when it dies. Suspects run again one at a time, so that the next death shows
# which of them it was. A delivery that only ran at the same time never ends for it.

MAX_DEATHS = 3
"""This many processes in a row may die in one step of a delivery."""
SUSPECT_SECONDS = 2.0
"""The pause of a suspect while another one runs."""


def _take_over(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """Take over from a process that died in the middle of a step. False: it died too often, so the delivery ended."""
    step = delivery.plan[delivery.step][0] if delivery.plan else "start"
    if delivery.held_by != rt.process.name and not rt.process.ended_in_order(delivery.held_by or ""):
        delivery.progress.deaths += 1
    committing = delivery.commits_next
    if committing:
        waiting.keep_distance(rt, tx, delivery)
        read_back.begin(rt, delivery, "the worker ended while the call was on its way")
        outcome = AttemptOutcome.UNKNOWN
        message = "The worker ended while the call was on its way; the account is read back."
    else:
        outcome, message = AttemptOutcome.RETRYING, "The worker ended in the middle of this step; it runs again."
    log_entries.record_attempt(tx, delivery, Attempt(step, delivery.run_at, outcome, message))
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = tx.stamp
    if delivery.progress.deaths >= MAX_DEATHS and not committing:
        _end_deadly(tx, delivery, step)
        return False
    delivery_rows.store(tx, delivery)
    return True


def _end_deadly(tx: Tx, delivery: Delivery, step: str) -> None:
    """End a delivery whose next run would stop everything else again."""
    died = f"the worker died {delivery.progress.deaths} times in a row in its step {step}; its log may say why"
    if delivery.phase.may_be_public:
        hint = f"{died[0].upper()}{died[1:]}. Look at the account."
        deliveries.fail_unconfirmed(tx, delivery, hint, Run(tx.stamp))
    else:
        message = f"Not sent: {died}. Change the post or its media and create it again."
        deliveries.fail(tx, delivery, State.FAILED, message, Run(tx.stamp))


def _another_suspect_runs(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """Return whether another suspect runs. Then this one waits."""
    if not delivery.progress.deaths:
        return False
    others = delivery_rows.running_after_death(tx)
    return any(row.id != delivery.id and rt.process.works_on(row.held_by, row.id) for row in others)
