"""Claim a delivery: decide who may start what, in the transaction that starts it."""

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from socialpub.accounts import remedies
from socialpub.core import logging, units
from socialpub.core.clock import after, parse
from socialpub.core.errors import Unavailable
from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery, Progress
from socialpub.db.models import DeliveryRow, ProfileRow
from socialpub.db.states import CommittingAgain, PreparingAgain, ProfileStatus, State
from socialpub.db.tables import delivery_rows, log_entries, post_rows, profile_rows, waits
from socialpub.db.tables.log_entries import Attempt, AttemptOutcome
from socialpub.db.tables.waits import REASONS, WaitReason
from socialpub.providers.base import Content, Refused
from socialpub.publishing.delivery import read_back, transitions, waiting
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.publishing.delivery.results import NeedsReauth, Undecidable
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.posts import content as post_content
from socialpub.publishing.posts import replies
from socialpub.runtime import Runtime

log = logging.get_logger(__name__)

# --- the plan --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Preflight:
    """The result of planning, which the first claim stores: the plan, or the reason why the plan is missing."""

    content: Content
    options: Mapping[str, Any]
    plan: list[tuple[str, str]] | None = None
    refused: Refused | None = None
    later: str | None = None
    """The reason why the plan could not be made now."""


def prepare(rt: Runtime, delivery: Delivery, profile: ProfileRow) -> Preflight:
    """Check the content as `validate` does, and make the plan. The claim stores the plan."""
    content = post_content.load_content(rt, rt.db, delivery.post_id)
    preflight = Preflight(content, delivery.options)
    try:
        options, problems = post_content.check_content(rt, profile, content, delivery.options)
        if problems:
            preflight.refused = Refused(" ".join(problem.message for problem in problems), content=True)
        else:
            steps = rt.providers[delivery.provider].plan(content, options)
            preflight.plan = [(step.name, step.kind.value) for step in steps]
    except (Unavailable, sqlite3.OperationalError, OSError) as error:
        log.warning("a post cannot be examined now", delivery_id=delivery.id, reason=str(error))
        preflight.later = "The post could not be examined. socialpub tries again."
    except Exception:
        # The rest of its queue would wait behind it forever.
        log.error("a post could not be examined", exc_info=True, delivery_id=delivery.id)
        failed = "Not sent: socialpub failed unexpectedly while it examined this post (see its log)."
        preflight.refused = Refused(failed)
    return preflight


# --- the claim -------------------------------------------------------------------------------------------------------

EXAMINED_AGAIN_SECONDS = 5.0


def claim(
    rt: Runtime, tx: Database, delivery_id: str, preflight: Preflight | None, profile: ProfileRow
) -> Delivery | None:
    """Claim a delivery that is due, or whose process died.

    None: the delivery is not due, waits, has ended, or is claimed already. The caller holds the row
    (`ProcessLock.claim_in_process`). A row that runs under the name of this process was therefore left by a thread. If
    the next step is the commit, the claim announces the commit.
    """
    delivery = delivery_rows.find(tx, delivery_id)
    if delivery is None or delivery.state.final:
        return None
    # An orphaned delivery of the profile comes first: it may be past its commit.
    if any(row.id != delivery_id for row in delivery_rows.list_running(tx, delivery.profile_id)):
        return None
    if delivery.state is State.RUNNING and delivery.held_by != rt.process.name:
        if rt.process.is_alive(delivery.held_by or ""):
            return None
    elif delivery.state is State.QUEUED and delivery.run_at > tx.stamp:
        return None
    present = waits.list_current(tx, delivery_id, tx.stamp)
    if any(wait.reason == WaitReason.PAUSE for wait in present):
        return None
    settlement = Settlement(rt, tx, delivery)
    if delivery.state is State.RUNNING:
        if not _take_over(settlement):
            return None
        present = waits.list_current(tx, delivery_id, tx.stamp)
    # Nothing ends a delivery that waits for nothing, is in time, and whose account is connected.
    may_end = present or delivery.reply_to or _is_late_or_stopped(settlement)
    if (may_end or profile.status != ProfileStatus.ACTIVE) and (_ends(settlement, present) or present):
        return None
    if delivery.reply_to is not None and delivery.started_at is None and delivery.due_at > tx.stamp:
        tx.update(DeliveryRow, delivery.id, run_at=delivery.due_at)  # a retry has replaced the failed parent
        return None
    if delivery.plan is None and not delivery.phase.reads_back and not _has_plan(settlement, preflight):
        return None
    if delivery.progress.deaths and _another_suspect_runs(rt, tx, delivery):
        tx.update(DeliveryRow, delivery.id, run_at=after(tx.stamp, SUSPECT_SECONDS))
        return None
    if preflight is not None or settlement.confirm_first():
        # The next call is another one than before, and may wait.
        delivery_rows.store(tx, delivery)
        if present := waits.list_current(tx, delivery_id, tx.stamp):
            _ended_by_wait(settlement, present)
            return None
    if waits.any_hold(tx):
        waits.claim_probe(tx, delivery)
    if delivery.started_at is None:
        delivery.started_at = tx.stamp
        post_rows.begin(tx, delivery.post_id)
    delivery.state, delivery.held_by, delivery.run_at = State.RUNNING, rt.process.name, tx.stamp
    if delivery.commits_next:
        settlement.announce()
    delivery_rows.store(tx, delivery)
    return delivery


def _is_late_or_stopped(settlement: Settlement) -> bool:
    """Return whether a deadline, a reconnection or a stop can end the delivery."""
    delivery, limits = settlement.delivery, settlement.rt.settings.publishing
    in_time = parse(delivery.started_at or delivery.due_at) + min(limits.max_lateness, limits.give_up_after)
    return delivery.progress.stopped or delivery.progress.reconnected_at is not None or in_time < settlement.tx.now


def _ends(settlement: Settlement, present: Sequence[Any]) -> bool:
    """End a delivery that must no longer be sent or read back. Return whether it ended or closes."""
    delivery, reasons = settlement.delivery, {wait.reason for wait in present}
    if not delivery.progress.stopped:
        refused = None
        if WaitReason.APPROVAL in reasons:
            if waiting.approval_deadline(settlement.rt, delivery.due_at) < settlement.tx.now:
                refused = Refused(f"Not sent: {waiting.not_approved(settlement.rt)}")
        elif WaitReason.PARENT not in reasons:
            refused = replies.check_parent(settlement.tx, delivery)
        if refused is not None:
            _end_unsent(settlement, refused)
            return True
        if reasons & {WaitReason.APPROVAL, WaitReason.PARENT}:
            return False
    if _ended_by_deadline(settlement, reasons) or settlement.ended_by_stop() or _is_unusable(settlement, reasons):
        return True
    if delivery.progress.stopped and (delivery.phase.is_uncalled or not delivery.asks) and delivery.phase.may_be_public:
        settlement.close(STOPPED)
        return True
    return _ended_by_wait(settlement, present)


def _ended_by_wait(settlement: Settlement, present: Sequence[Any]) -> bool:
    """End a delivery whose wait outlasts its deadline."""
    give_up_at = waiting.give_up_at(settlement.rt, settlement.tx, settlement.delivery)
    for wait in present:
        reason = REASONS[wait.reason]
        if wait.until and reason.delays_end and not reason.is_probed and parse(wait.until) > give_up_at:
            settlement.give_up(waiting.too_long(wait.until, wait.message))
            return True
    return False


def _has_plan(settlement: Settlement, preflight: Preflight | None) -> bool:
    """Take the plan from the preflight. Return whether the delivery has a plan."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    if preflight is None or preflight.options != delivery.options:
        return False
    if preflight.content != post_content.load_content(rt, tx, delivery.post_id):
        return False  # the post was changed meanwhile
    if preflight.later is not None:
        next_at = after(tx.stamp, EXAMINED_AGAIN_SECONDS)
        settlement.record_attempt(AttemptOutcome.WAITING, preflight.later, next_at=next_at)
        tx.update(DeliveryRow, delivery.id, run_at=next_at)
        return False
    if preflight.refused is not None:
        _end_unsent(settlement, preflight.refused)
        return False
    delivery.plan = preflight.plan
    transitions.enter_step(delivery)
    return True


def interpret_unusable(delivery: Delivery, profile: ProfileRow) -> Refused | NeedsReauth | Undecidable | None:
    """Return the result for a profile that cannot be used. None: the profile can be used."""
    match profile.status:
        case ProfileStatus.DISCONNECTED if delivery.phase.may_be_public:
            return not_readable("The profile was disconnected.")
        case ProfileStatus.DISCONNECTED:
            how = remedies.reconnect(profile.provider)
            return Refused(
                f"The profile was disconnected. To connect the account again, {how}. Then create the post again."
            )
        case ProfileStatus.REAUTH_REQUIRED:
            return NeedsReauth(remedies.reconnect_message(profile.provider, profile.reason))
        case _:
            return None


def not_readable(message: str) -> Undecidable:
    return Undecidable(f"The account could not be read back: {message} Look at the account.")


def _is_unusable(settlement: Settlement, reasons: Collection[str]) -> bool:
    """Return whether the delivery ends because of its account."""
    delivery = settlement.delivery
    profile = profile_rows.get(settlement.tx, delivery.profile_id)
    if WaitReason.RECONNECT in reasons:
        return settlement.ended_unconnected(remedies.reconnect_message(profile.provider, profile.reason))
    match interpret_unusable(delivery, profile):
        case Refused(message):
            settlement.fail(message)
        case Undecidable(hint):
            settlement.fail_unconfirmed(hint)
        case _:
            return False
    return True


def _ended_by_deadline(settlement: Settlement, reasons: Collection[str]) -> bool:
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    if WaitReason.RECONNECT in reasons:
        return False  # that wait has a deadline of its own
    reconnected_at = delivery.progress.reconnected_at
    if reconnected_at is not None and parse(reconnected_at) > waiting.start_deadline(rt, tx, delivery):
        settlement.end_unconnected("The account had to be connected again.")
        return True
    limited = WaitReason.NETWORK in reasons or WaitReason.EQUAL in reasons
    postponed = limited or waiting.was_postponed(tx, delivery)
    if delivery.started_at is None:
        if message := _too_late(settlement, postponed=postponed):
            _end_unsent(settlement, Refused(f"Not sent: {message}"))
            return True
        if not postponed:
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


def _too_late(settlement: Settlement, *, postponed: bool) -> str | None:
    """Return the reason why a delivery is too late to start. None: the delivery may start."""
    rt, tx, delivery = settlement.rt, settlement.tx, settlement.delivery
    limit = rt.settings.publishing.max_lateness
    if tx.now <= (latest := waiting.start_deadline(rt, tx, delivery)):
        return None
    jumps = clock_jumps.forward_jumps(tx, delivery.due_at)
    jumped = timedelta(seconds=sum(seconds for _, seconds in jumps))
    # A postponed delivery has the deadline of one that started, unless only a set clock made it late.
    if postponed and (delivery.scheduled_at is None or jumped <= limit):
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
        message = f"The worker ended during the call. {read_back.begin(rt, tx, delivery, why)}"
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
    others = [row for row in delivery_rows.list_running(tx) if Progress.from_json(row.progress).deaths]
    return any(row.id != delivery.id and rt.process.works_on(row.owner or "", row.id) for row in others)
