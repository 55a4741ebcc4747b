"""The queue of each profile for pages and health checks: overdue and waiting deliveries."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Database
from socialpub.db.queries import profile_queue
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.responses import MAX_WAIT_SECONDS
from socialpub.runtime import Runtime

# --- overdue ---------------------------------------------------------------------------------------------------------

OVERDUE_SECONDS = 120.0
"""A longer delay means that the worker is not working."""

MAX_STEP_SECONDS = 1800.0
"""A slow upload of 150 MB takes a long time."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """The number of overdue deliveries, and the longest delay."""

    count: int
    seconds: float
    provider: str


NOT_OVERDUE = Overdue(0, 0.0, "")


def find_overdue(db: Database, now: str, seconds: float = OVERDUE_SECONDS) -> Overdue:
    """Return the deliveries that are overdue by `seconds`, or that have been running longer than any step can.

    Holds are reported separately.
    """
    overdue = profile_queue.find_overdue(db, after(now, -seconds), after(now, -MAX_STEP_SECONDS))
    if overdue is None:
        return NOT_OVERDUE
    count, since, provider = overdue
    return Overdue(count, (parse(now) - parse(since)).total_seconds(), provider)


# --- waiting deliveries ----------------------------------------------------------------------------------------------

MAX_SHOWN = 5
MAX_WAIT = timedelta(seconds=MAX_WAIT_SECONDS)


class QueuePlace(StrEnum):
    """What a waiting delivery waits for, in the queue of a profile's page."""

    HELD = "held"
    """The account must be connected again."""

    APPROVAL = "approval"
    """The owner must approve the post."""

    SCHEDULED = "scheduled"
    """The scheduled time has not come."""

    PENDING = "pending"
    """The delivery waits for earlier posts, for the network, or for the response to a call."""


@dataclass(frozen=True, slots=True)
class WaitingDelivery:
    post_id: str
    body: str | None
    due_at: str
    reason: QueuePlace


@dataclass(frozen=True, slots=True)
class ProfileQueue:
    waiting: int
    """Deliveries without an outcome."""
    held: int
    scheduled: int
    committed: int
    """Deliveries that may be public."""
    next: tuple[WaitingDelivery, ...]

    @property
    def under_way(self) -> int:
        """Return the number of waiting deliveries that are neither scheduled for later nor held for a reconnection."""
        return self.waiting - self.held - self.scheduled

    @property
    def lost_by_disconnecting(self) -> int:
        """Return the number of deliveries that would fail if the profile were disconnected."""
        return self.waiting - self.committed


def summarize(rt: Runtime, profile_id: str) -> ProfileQueue:
    now = rt.stamp()
    # A delivery without a scheduled time runs again by then.
    soon = stamp(rt.now() + max(MAX_WAIT, rt.settings.publishing.max_lateness))
    totals = profile_queue.load_totals(rt.db, profile_id, now, soon)
    rows = profile_queue.list_open(rt.db, profile_id, now, MAX_SHOWN)
    return ProfileQueue(
        waiting=totals.waiting,
        held=totals.held,
        scheduled=totals.scheduled,
        committed=totals.committed,
        next=tuple(WaitingDelivery(row.post_id, row.body, row.due_at, _reason(row, now)) for row in rows),
    )


def _reason(row: Any, now: str) -> QueuePlace:
    match row.waits_for:
        case WaitReason.RECONNECT:
            return QueuePlace.HELD
        case WaitReason.APPROVAL:
            return QueuePlace.APPROVAL
    return QueuePlace.SCHEDULED if row.started_at is None and row.due_at > now else QueuePlace.PENDING
