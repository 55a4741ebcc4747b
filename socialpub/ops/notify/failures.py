"""Deliveries that failed since the owner was last told of some: together they are one cause.

How far they were told is a place in the log of deliveries, which no clock moves. What was tried again meanwhile, or
what the owner stopped, is none of them.
"""

from dataclasses import dataclass
from datetime import timedelta

from socialpub.core.cause_kinds import CauseKind
from socialpub.core.clock import stamp
from socialpub.db import appliance_state, failed_deliveries
from socialpub.db.failed_deliveries import FailedDeliveries, FailedDelivery
from socialpub.db.transaction import Tx
from socialpub.ops.causes import Cause
from socialpub.providers.registry import LABELS
from socialpub.publishing.deliveries import STOPPED
from socialpub.runtime import Runtime

NOT_OLDER_THAN = timedelta(days=7)
MOST_NAMED = 5
TEXT_CHARACTERS = 60
"""Of a post, in a message that may pass through somebody else's service."""
ERROR_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Failures:
    through: int
    """The entry of the log up to which these are all."""
    cause: Cause | None


def begin(rt: Runtime, tx: Tx) -> None:
    """From here on failures are told, unless they are already."""
    newest = failed_deliveries.newest_entry(tx.reader)
    appliance_state.put_if_absent(tx, appliance_state.FAILURES_TOLD, str(newest))


def note_told(tx: Tx, through: int) -> None:
    appliance_state.put(tx, appliance_state.FAILURES_TOLD, str(through))


def find(rt: Runtime) -> Failures:
    """What the owner has not been told of."""
    told = int(appliance_state.get(rt.reader, appliance_state.FAILURES_TOLD) or 0)
    through = failed_deliveries.newest_entry(rt.reader)
    if through <= told:
        return Failures(told, None)
    since = stamp(rt.now() - NOT_OLDER_THAN)
    failed = failed_deliveries.logged_after(rt.reader, told, since, STOPPED, MOST_NAMED)
    return Failures(through, _cause(failed, told) if failed.newest else None)


def _cause(found: FailedDeliveries, told: int) -> Cause:
    count = found.failed + found.unknown
    first = found.newest[0]
    lines = [_line(one) for one in found.newest]
    if count > len(lines):
        lines.append(f"and {count - len(lines):,} more")
    remedy = "Look at each, and post it again where it should go out."
    if found.unknown:
        remedy = "Look at the account first where the outcome is unknown: the post may be out. Then post it again."
    return Cause(
        CauseKind.DELIVERY,
        f"delivery:{told}",
        _sentence(found),
        remedy,
        f"/posts/{first.post_id}" if count == 1 else "/",
        passes=True,
        details=tuple(lines),
    )


def _sentence(found: FailedDeliveries) -> str:
    many = failed_deliveries.MOST_COUNTED
    at_least = "At least " if found.failed + found.unknown >= many else ""
    parts = []
    if found.failed:
        parts.append("1 delivery failed" if found.failed == 1 else f"{found.failed:,} deliveries failed")
    if found.unknown:
        parts.append(f"the outcome of {found.unknown:,} is unknown")
    sentence = ", and ".join(parts)
    if not found.failed:
        sentence = "The outcome of 1 delivery is unknown"
        if found.unknown > 1:
            sentence = f"The outcome of {found.unknown:,} deliveries is unknown"
    return f"{at_least}{sentence}."


def _line(one: FailedDelivery) -> str:
    text = cut(" ".join((one.text or "").split()), TEXT_CHARACTERS)
    post = f"“{text}”" if text else "A post without text"
    return (
        f"{post} to {one.profile_name} ({LABELS.get(one.provider, one.provider)}): {cut(one.error, ERROR_CHARACTERS)}"
    )


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
