"""The deadlines of a delivery, and the waits that they do not count."""

from datetime import datetime, timedelta

from socialpub.core import units
from socialpub.core.clock import after, later, parse
from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.tables import waits
from socialpub.db.tables.waits import WaitReason
from socialpub.runtime import Runtime

# --- gaps and fairness -----------------------------------------------------------------------------------------------


def was_postponed(tx: Database, delivery: Delivery) -> bool:
    """Return whether its network or an equal post has delayed this delivery. Gaps do not count here."""
    if delivery.run_at > delivery.due_at:
        return True
    since_due = waits.list_current(tx, delivery.id, delivery.due_at)
    return any(wait.reason == WaitReason.NETWORK for wait in since_due)


# --- how long --------------------------------------------------------------------------------------------------------


def start_deadline(rt: Runtime, tx: Database, delivery: Delivery) -> datetime:
    """Return the end of `max_lateness`. Waits for other posts of the same profile do not count."""
    own = waits.total_spans(tx, delivery.profile_id, parse(delivery.due_at), (WaitReason.GAP, WaitReason.STEP))
    return parse(delivery.due_at) + rt.settings.publishing.max_lateness + own


def give_up_at(rt: Runtime, tx: Database, delivery: Delivery) -> datetime:
    """Return the end of `give_up_after`, counted from the first start or from the last reconnection of the account.

    Gaps between two posts of the same profile do not count.
    """
    began = parse(max(delivery.started_at or delivery.due_at, delivery.progress.reconnected_at or ""))
    gaps = waits.total_spans(tx, delivery.profile_id, began, (WaitReason.GAP,))
    return began + rt.settings.publishing.give_up_after + gaps


def approval_deadline(rt: Runtime, due_at: str) -> datetime:
    return later(parse(due_at), rt.settings.publishing.max_lateness)


def not_approved(rt: Runtime) -> str:
    hours = format_hours(rt.settings.publishing.max_lateness)
    return f"the owner did not approve the post within {hours} of its time. To publish it, create the post again."


def too_long(until: str, reason: str) -> str:
    """Return the reason to give up at once."""
    return f"would wait until {until}, after the deadline (publishing.give_up_after): {reason.rstrip('.')}"


REFUSED_TIMES, REFUSED_FOR = 5, timedelta(hours=6)
REFUSED_FOR_HOURS = (
    "socialpub has received this response for hours and gives up. Correct what the response names, or check the proxy "
    "and the firewall between socialpub and the network. Then create the post again."
)


def is_refused_for_hours(rt: Runtime, delivery: Delivery, status: str | None) -> bool:
    """Return whether a response that is not the network's own has refused the same call before the commit for hours."""
    if delivery.phase.may_be_public or delivery.phase.reads_back or status is None:
        return False
    times, first_at = delivery.progress.refusals.get(f"{delivery.step_name} {status}", (0, ""))
    if times < REFUSED_TIMES - 1:
        return False
    return clock_jumps.age_seconds(rt.db, rt.now(), first_at) >= REFUSED_FOR.total_seconds()


def format_hours(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours:g} hours" if hours != 1 else "1 hour"


def begin_gap(rt: Runtime, tx: Database, delivery: Delivery, *, is_unknown: bool) -> None:
    """Make the profile's next post wait for `min_gap`, because this post is or may be public.

    The gap begins with the first call of unknown outcome: repetitions would extend the gap and so the deadline forever.
    """
    gap = rt.settings.publishing.min_gap
    if not (is_unknown and delivery.repeats):
        reason = f"Two posts of one profile are at least {units.duration(gap)} apart (publishing.min_gap)."
        until = after(tx.stamp, gap.total_seconds())
        waits.record_span(tx, WaitReason.GAP, delivery.profile_id, waits.COMMITS, tx.stamp, until, reason)
