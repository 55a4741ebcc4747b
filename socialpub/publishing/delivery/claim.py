"""Claim a delivery: decide who may start what, in the transaction that starts it."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from socialpub.accounts import hints, profiles
from socialpub.core import logging, units
from socialpub.core.clock import after, later, parse, parse_id
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.states import CommittingAgain, PreparingAgain, ProfileStatus, State
from socialpub.db.tables import delivery_rows, holds, log_entries, post_rows, profile_rows
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.base import Content, Refused
from socialpub.publishing.delivery import approvals, read_back, reply_waits, transitions, waiting
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.publishing.delivery.results import NeedsReauth, Undecidable
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.delivery.transitions import PhaseEvent
from socialpub.publishing.posts import content as post_content
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.publisher")

# --- the plan --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preflight:
    """The result of planning, which the first claim stores: the plan, or the reason why the plan is missing."""

    content: Content
    options: Mapping[str, Any]
    plan: tuple[tuple[str, str], ...] = ()
    refused: Refused | None = None
    later: str | None = None
    """The reason why the plan could not be made now."""


def prepare(rt: Runtime, delivery: Delivery) -> Preflight:
    """Check the content as `validate` does, and make the plan. The claim stores the plan."""
    profile = profiles.get(rt.reader, delivery.profile_id)
    content = post_content.load_content(rt, rt.reader, delivery.post_id)

    def refuse(message: str, *, content_refused: bool = True) -> Preflight:
        return Preflight(content, delivery.options, refused=Refused(message, content=content_refused))

    try:
        with mark_examination(rt, delivery.id):
            problems = post_content.check_content(rt, profile, content, delivery.options)
            if problems:
                return refuse(" ".join(problem.message for problem in problems))
            provider = rt.providers[delivery.provider]
            steps = provider.plan(content, provider.read_options(delivery.options)[0])
    except Deadly:
        died = f"the worker died {MAX_EXAMINATION_DEATHS} times while it examined this post"
        return refuse(f"Not sent: {died}. Change the post or its media, then create it again.")
    except (Unavailable, sqlite3.OperationalError, OSError) as error:
        log.warning("a post cannot be examined now", delivery_id=delivery.id, reason=str(error))
        return Preflight(content, delivery.options, later="The post could not be examined. socialpub tries again.")
    except Exception:
        # The rest of its queue would wait behind it forever.
        log.error("a post could not be examined", exc_info=True, delivery_id=delivery.id)
        failed = "Not sent: socialpub failed unexpectedly while it examined this post (see its log)."
        return refuse(failed, content_refused=False)
    return Preflight(content, delivery.options, tuple((step.name, step.kind.value) for step in steps))


# --- the claim -------------------------------------------------------------------------------------------------------

EQUAL_CONTENT_SECONDS = 15.0
EXAMINED_AGAIN_SECONDS = 5.0


def claim(rt: Runtime, tx: Database, delivery_id: str, preflight: Preflight | None) -> Delivery | None:
    """Claim a delivery that is due, or whose process died.

    None: the delivery is not due, not allowed, or claimed already. The caller holds the row
    (`ProcessLock.claim_in_process`). A row that runs under the name of this process was therefore left by a thread. If
    the next step is the commit, the claim announces the commit.
    """
    delivery = delivery_rows.find(tx, delivery_id)
    if delivery is None or delivery.state.final or appliance_state.paused_at(tx):
        return None
    # An orphaned delivery of the profile comes first: it may be past its commit.
    if any(row.id != delivery_id for row in delivery_rows.running_in(tx, delivery.profile_id)):
        return None
    settlement = Settlement(rt, tx, delivery)
    if delivery.state is State.RUNNING:
        if delivery.held_by != rt.process.name and rt.process.is_alive(delivery.held_by or ""):
            return None
        if not _take_over(settlement):
            return None
    elif delivery.run_at > tx.stamp:
        return None
    for check in (approvals.check_approved, reply_waits.check_parent):
        match check(settlement):
            case Refused() as refused:
                _end_unsent(settlement, refused)
                return None
            case True:
                return None
    if _ended_by_deadline(settlement) or settlement.ended_by_stop() or _is_unusable(settlement):
        return None
    if delivery.plan is None and not delivery.phase.reads_back and not _has_plan(settlement, preflight):
        return None
    if delivery.progress.stopped and delivery.phase.may_be_public and not delivery.asks:
        settlement.close(STOPPED)
        return None
    any_hold = holds.any_hold(tx)
    if _must_wait(settlement, planned=preflight is None, any_hold=any_hold):
        return None
    if not read_back.confirm_first(rt, delivery):
        if any_hold:
            holds.claim_probe(tx, delivery)
    elif _must_wait_to_check(tx, delivery):
        return None
    if delivery.started_at is None:
        delivery.started_at = tx.stamp
        post_rows.begin(tx, delivery.post_id)
    delivery.state, delivery.held_by, delivery.run_at = State.RUNNING, rt.process.name, tx.stamp
    read_back.announce(rt, tx, delivery)
    delivery_rows.store(tx, delivery)
    return delivery


def _has_plan(settlement: Settlement, preflight: Preflight | None) -> bool:
    """Take the plan from the preflight. Return whether the delivery has a plan."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    if preflight is None or preflight.options != delivery.options:
        return False
    if preflight.content != post_content.load_content(rt, tx, delivery.post_id):
        return False  # a change has reached the disk meanwhile
    if preflight.later is not None:
        _postpone(tx, delivery, after(tx.stamp, EXAMINED_AGAIN_SECONDS), preflight.later)
        return False
    if preflight.refused is not None:
        _end_unsent(settlement, preflight.refused)
        return False
    delivery.plan = list(preflight.plan)
    transitions.enter_step(delivery)
    return True


def interpret_unusable(delivery: Delivery, profile: Profile) -> Refused | NeedsReauth | Undecidable | None:
    """Return the result for a profile that cannot be used. None: the profile can be used."""
    match profile.status:
        case ProfileStatus.DISCONNECTED if delivery.phase.may_be_public:
            return not_readable("The profile was disconnected.")
        case ProfileStatus.DISCONNECTED:
            how = hints.reconnect(profile.provider)
            return Refused(
                f"The profile was disconnected. To connect the account again, {how}. Then create the post again."
            )
        case ProfileStatus.REAUTH_REQUIRED:
            return NeedsReauth(waiting.reconnect_reason(profile))
        case _:
            return None


def not_readable(message: str) -> Undecidable:
    return Undecidable(f"The account could not be read back: {message} Look at the account.")


def _is_unusable(settlement: Settlement) -> bool:
    """Return whether the account is disconnected or must be connected again. Store the consequence."""
    delivery = settlement.delivery
    match interpret_unusable(delivery, profiles.get(settlement.tx, delivery.profile_id)):
        case NeedsReauth(message):
            settlement.wait_for_reconnect(message)
        case Refused(message):
            settlement.fail(message)
        case Undecidable(hint):
            settlement.fail_unconfirmed(hint)
        case None:
            if delivery.waits_for_reconnect:
                transitions.move(delivery, PhaseEvent.RECONNECTED)
            return False
    return True


def _ended_by_deadline(settlement: Settlement) -> bool:
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    if delivery.waits_for_reconnect and delivery.progress.reconnected_at is None:
        profile, until = profile_rows.find(tx, delivery.profile_id), waiting.start_deadline(rt, tx, delivery)
        if until >= tx.now or profile is None or profile.status is not ProfileStatus.ACTIVE:
            return False
        settlement.end_unconnected("The account had to be connected again.")
        return True
    if delivery.started_at is None:
        if message := _too_late(settlement):
            _end_unsent(settlement, Refused(f"Not sent: {message}"))
            return True
        if not waiting.was_postponed(tx, delivery):
            return False
    if waiting.give_up_at(rt, tx, delivery) >= tx.now:
        return False
    since = "the first attempt" if delivery.started_at else "the post was due"
    if (delivery.progress.reconnected_at or "") > (delivery.started_at or delivery.due_at):
        since = "the account was connected again"
    settlement.give_up(f"gave up {waiting.format_hours(rt.settings.publishing.give_up_after)} after {since}")
    return True


def _end_unsent(settlement: Settlement, refused: Refused) -> None:
    """End a delivery that this installation never sends. Another installation may have published it."""
    if settlement.delivery.phase.may_be_public:
        settlement.close(refused.message)
    else:
        settlement.fail(refused.message, content=refused.content)


def _too_late(settlement: Settlement) -> str | None:
    """Return the reason why a delivery is too late to start. None: the delivery may start."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    limit = rt.settings.publishing.max_lateness
    if tx.now <= later(parse(delivery.due_at), limit) or tx.now <= (latest := waiting.start_deadline(rt, tx, delivery)):
        return None
    jumps = clock_jumps.forward_jumps(tx, delivery.due_at)
    jumped = timedelta(seconds=sum(seconds for _, seconds in jumps))
    # A postponed delivery has the deadline of one that started, unless only a set clock made it late.
    put_off = waiting.was_postponed(tx, delivery)
    if put_off and (delivery.scheduled_at is None or jumped <= limit):
        return None
    if tx.now - jumped > latest or not jumps:
        return (
            f"the post could not start within {waiting.format_hours(limit)} of its time because socialpub was stopped, "
            "paused or held. To publish it anyway, create the post again."
        )
    at, seconds = max(jumps, key=lambda jump: jump[1])
    return (
        f"the post is more than {waiting.format_hours(limit)} late (publishing.max_lateness). The clock "
        f"was set forward by {units.in_words(seconds)} at {at}. If the clock is correct now, "
        "create the post again. Otherwise, set the clock first."
    )


def _must_wait(settlement: Settlement, *, planned: bool, any_hold: bool) -> bool:
    """Postpone a delivery that waits for its network or an equal post. `planned`: its row had a plan before."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    if cooldown := waiting.find_cooldown(tx, delivery):
        until, reason = cooldown
        if parse(until) > waiting.give_up_at(rt, tx, delivery):
            settlement.give_up(waiting.too_long(until, reason))
        elif delivery.progress.stopped or planned:
            # A stopped delivery must not block its queue. A planned one was offered because of `not_before.outlasts`.
            _postpone(tx, delivery, until, reason)
        else:
            # The queue skips a row whose plan refers to the cooldown, so `run_at` stays.
            delivery_rows.store(tx, delivery)
    elif waiting.must_wait_for_equal(tx, delivery):
        until = after(tx.stamp, EQUAL_CONTENT_SECONDS)
        _postpone(tx, delivery, until, "Another post with the same content is read back first.")
    elif _another_suspect_runs(rt, tx, delivery):
        delivery_rows.update(tx, delivery.id, run_at=after(tx.stamp, SUSPECT_SECONDS))
    elif any_hold and holds.held_until(tx, delivery):
        # The queue skips a row whose plan refers to the hold. `run_at` stays, so the release finds the row due.
        delivery_rows.store(tx, delivery)
    else:
        return False
    return True


def _must_wait_to_check(tx: Database, delivery: Delivery) -> bool:
    """Postpone a delivery whose read-back must wait, although the call after it could run."""
    wait = waiting.find_cooldown(tx, delivery) or holds.held_until(tx, delivery)
    if wait:
        _postpone(tx, delivery, *wait)
    return wait is not None


def _postpone(tx: Database, delivery: Delivery, until: str, reason: str) -> None:
    attempt = Attempt(delivery.step_name, tx.stamp, AttemptOutcome.WAITING, reason, next_at=until)
    log_entries.record_attempt(tx, delivery, attempt)
    delivery_rows.update(tx, delivery.id, run_at=until)


# --- a delivery whose process died -----------------------------------------------------------------------------------
#
# When a process dies, each of its deliveries is a suspect. Suspects run one at a time, so the next death shows which
# suspect kills the worker, and the other deliveries do not end.

MAX_DEATHS = 3
"""A delivery ends after this number of dead processes in a row in one step."""
SUSPECT_SECONDS = 2.0
"""The pause of a suspect while another suspect runs."""


def _take_over(settlement: Settlement) -> bool:
    """Take over from a process that died during a step. False: too many processes died, so the delivery ended."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    step = delivery.plan[delivery.step][0] if delivery.plan else "start"
    if delivery.held_by != rt.process.name and not rt.process.ended_in_order(delivery.held_by or ""):
        delivery.progress.deaths += 1
    committing = delivery.commits_next
    if committing:
        waiting.begin_gap(rt, tx, delivery, is_unknown=True)
        outcome, why = AttemptOutcome.UNKNOWN, "the worker ended during the call"
        if delivery.is_repeatable:
            read_back.repeat(delivery, why)
            message = f"The worker ended during the call. {read_back.CALL_REPEATED}"
        else:
            read_back.begin(rt, tx, delivery, why)
            message = "The worker ended during the call. The account is read back."
    else:
        outcome, message = AttemptOutcome.RETRYING, "The worker ended during this step. The step runs again."
    log_entries.record_attempt(tx, delivery, Attempt(step, delivery.run_at, outcome, message))
    delivery.state, delivery.held_by, delivery.run_at = State.QUEUED, None, tx.stamp
    if delivery.progress.deaths >= MAX_DEATHS and (not committing or delivery.is_repeatable):
        _end_deadly(settlement, step)
        return False
    delivery_rows.store(tx, delivery)
    return True


def _end_deadly(settlement: Settlement, step: str) -> None:
    """End a delivery that kills each worker."""
    delivery = settlement.delivery
    died = f"the worker died {delivery.progress.deaths} times in a row during the step {step} (see its log)"
    if delivery.is_repeatable and isinstance(delivery.phase, CommittingAgain | PreparingAgain):
        settlement.close(f"Not sent again: {died}. The account does not show the post.")
    elif delivery.phase.may_be_public:
        hint = f"{died[0].upper()}{died[1:]}. Look at the account."
        settlement.fail_unconfirmed(hint)
    else:
        message = f"Not sent: {died}. Change the post or its media, then create it again."
        settlement.fail(message)


def _another_suspect_runs(rt: Runtime, tx: Database, delivery: Delivery) -> bool:
    if not delivery.progress.deaths:
        return False
    others = delivery_rows.running_after_death(tx)
    return any(row.id != delivery.id and rt.process.works_on(row.held_by, row.id) for row in others)


# --- examinations that kill the worker -------------------------------------------------------------------------------

MAX_EXAMINATION_DEATHS = 3
MAX_MARKS = MAX_EXAMINATION_DEATHS - 1
"""The first death leaves no mark."""


class Deadly(Exception):
    """The examination of this post has killed too many workers."""


@contextmanager
def mark_examination(rt: Runtime, delivery_id: str) -> Iterator[None]:
    """Leave a mark that stays if this process dies. Raises `Deadly` when there are too many marks."""
    # A row that was edited by hand may have any id, even a path.
    if not rt.process.follows_a_death or parse_id(delivery_id) is None:
        yield
        return
    folder = _marks_dir(rt)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    mark = folder / delivery_id
    begun = mark.stat().st_size if mark.exists() else 0
    if begun >= MAX_MARKS:
        mark.unlink(missing_ok=True)
        raise Deadly
    with mark.open("ab") as file:
        file.write(b".")
    try:
        yield
    except Exception:
        mark.unlink(missing_ok=True)
        raise
    mark.unlink(missing_ok=True)


def clean_marks(rt: Runtime) -> None:
    """Remove the marks of deliveries that ended otherwise."""
    folder = _marks_dir(rt)
    for mark in folder.iterdir() if folder.is_dir() else ():
        if not delivery_rows.is_open(rt.reader, mark.name):
            mark.unlink(missing_ok=True)


def _marks_dir(rt: Runtime) -> Path:
    return rt.settings.run_dir / "examined"
