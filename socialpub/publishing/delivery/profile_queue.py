"""The queue of each profile, as pages and health checks show it: what is overdue, and what waits."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Reader, Row
from socialpub.db.queries import profile_queue
from socialpub.providers.responses import MAX_WAIT_SECONDS
from socialpub.runtime import Runtime

# --- overdue ---------------------------------------------------------------------------------------------------------

OVERDUE_SECONDS = 120.0
"""A delivery that is due for longer shows that the worker does not work."""

MAX_STEP_SECONDS = 1800.0
"""A call that sends a file is judged by its progress: 150 MB over a slow line take long."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Deliveries that wait too long, and the one of them that waits longest."""

    count: int
    seconds: float
    provider: str


NOT_OVERDUE = Overdue(0, 0.0, "")


def find_overdue(reader: Reader, now: str, seconds: float = OVERDUE_SECONDS) -> Overdue:
    """Return the deliveries that should have started that long ago, or run longer than any step takes (a suspended
    worker keeps its profiles). Holds are reported separately."""
    found = profile_queue.find_overdue(reader, after(now, -seconds), after(now, -MAX_STEP_SECONDS))
    if found is None:
        return NOT_OVERDUE
    count, since, provider = found
    return Overdue(count, (parse(now) - parse(since)).total_seconds(), provider)


# --- what a profile waits with ---------------------------------------------------------------------------------------

MAX_SHOWN = 5
MAX_WAIT = timedelta(seconds=MAX_WAIT_SECONDS)


class WaitReason(StrEnum):
    """What a delivery without an outcome waits for."""

    HELD = "held"
    """The account must be connected again."""

    SCHEDULED = "scheduled"
    """Its time."""

    PENDING = "pending"
    """Its turn, its network, or the answer to a call that is being made."""


@dataclass(frozen=True, slots=True)
class WaitingDelivery:
    post_id: str
    body: str | None
    due_at: str
    """Its time, as a stamp."""
    reason: WaitReason


@dataclass(frozen=True, slots=True)
class ProfileQueue:
    waiting: int
    """Deliveries without an outcome."""
    held: int
    scheduled: int
    committed: int
    """Those of which something may be public already."""
    next: tuple[WaitingDelivery, ...]

    @property
    def under_way(self) -> int:
        """Return how many wait neither for their time nor for the owner."""
        return self.waiting - self.held - self.scheduled

    @property
    def lost_by_disconnecting(self) -> int:
        """Return how many would fail. What may be public ends as its network says."""
        return self.waiting - self.committed


def summarize(rt: Runtime, profile_id: str) -> ProfileQueue:
    now = rt.stamp()
    # A delivery that waits for something other than its time runs again by then.
    soon = stamp(rt.now() + max(MAX_WAIT, rt.settings.publishing.max_lateness))
    totals = profile_queue.load_totals(rt.reader, profile_id, now, soon)
    found = profile_queue.list_open(rt.reader, profile_id, MAX_SHOWN)
    return ProfileQueue(
        waiting=totals.waiting,
        held=totals.held,
        scheduled=totals.scheduled,
        committed=totals.committed,
        next=tuple(WaitingDelivery(row.post_id, row.body, row.due_at, _reason(row, now)) for row in found),
    )


def _reason(row: Row, now: str) -> WaitReason:
    if row.waits_for_reconnect:
        return WaitReason.HELD
    return WaitReason.SCHEDULED if row.started_at is None and row.due_at > now else WaitReason.PENDING
