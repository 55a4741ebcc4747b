"""The queue of each profile: which delivery comes next, when, and what waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.delivery import Delivery
from socialpub.db.locks import ProcessLock
from socialpub.db.queries import profile_queue
from socialpub.db.tables import delivery_rows, waits
from socialpub.providers.errors import MAX_WAIT_SECONDS
from socialpub.publishing.delivery.waiting import COMMITS
from socialpub.runtime import Runtime

# --- what comes next -------------------------------------------------------------------------------------------------

OVERDUE_SECONDS = 120.0
"""A delivery that is due for so long shows that the worker does not work."""

MAX_STEP_SECONDS = 1800.0
"""A call that sends a file is judged by its progress alone: 150 MB over a slow line take their time."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Deliveries that wait too long, and the one of them that waits longest."""

    count: int
    seconds: float
    provider: str


NOT_OVERDUE = Overdue(0, 0.0, "")


def next_due(reader: Reader, profile_id: str, now: str, process: ProcessLock) -> Delivery | None:
    """What of this lane comes next: what nobody works on any more, else the oldest due one. None while one runs."""
    running = delivery_rows.running_in(reader, profile_id)
    if not running:
        return profile_queue.oldest_due(reader, profile_id, now)
    if process.works_on(running[0].held_by, running[0].id):
        return None
    return delivery_rows.find(reader, running[0].id)


def due_queues(reader: Reader, now: str, process: ProcessLock) -> list[str]:
    """One delivery of each profile that has something due or orphaned, the longest waiting first."""
    orphans = [row.id for row in delivery_rows.running(reader) if not process.works_on(row.held_by, row.id)]
    return orphans + profile_queue.due_per_profile(reader, now)


def next_run_at(reader: Reader, now: str) -> str | None:
    """Return when the next delivery becomes due, or the next wait of a profile with due deliveries ends."""
    return profile_queue.next_run_at(reader, now)


def overdue(reader: Reader, now: str, seconds: float = OVERDUE_SECONDS) -> Overdue:
    """The deliveries that should have been taken up that long ago and were not, or run longer than any step takes (a
    suspended worker keeps its lane). Holds are reported separately."""
    found = profile_queue.overdue(reader, after(now, -seconds), after(now, -MAX_STEP_SECONDS))
    if found is None:
        return NOT_OVERDUE
    count, since, provider = found
    return Overdue(count, (parse(now) - parse(since)).total_seconds(), provider)


def is_busy(tx: Tx, delivery: Delivery) -> bool:
    """Whether another delivery of the lane runs. One whose process died comes first, too: it may be past its commit."""
    return any(row.id != delivery.id for row in delivery_rows.running_in(tx, delivery.profile_id))


def publishes_at(
    rt: Runtime, reader: Reader, profile_id: str, at: datetime, besides: str | None
) -> tuple[datetime, int]:
    """About when a post that is due then can be published to this profile, and how many posts are queued before it.

    Counts the gap between two posts, and no other wait. `besides` is a post that does not count."""
    gap = rt.settings.publishing.min_gap
    if not gap:
        return at, 0
    resting = waits.cooldown_until(reader, profile_id, (COMMITS,), rt.stamp())
    free_at = parse(resting[0]) if resting else rt.now()
    queued = profile_queue.uncommitted_due_by(reader, profile_id, stamp(at), besides)
    for due_at in queued:
        free_at = max(free_at, parse(due_at)) + gap
    return max(free_at, at), len(queued)


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
        """How many wait neither for their time nor for the owner."""
        return self.waiting - self.held - self.scheduled

    @property
    def lost_by_disconnecting(self) -> int:
        """How many would fail; what may be public already ends as its network says."""
        return self.waiting - self.committed


def summarize(rt: Runtime, profile_id: str) -> ProfileQueue:
    """What waits for this profile now."""
    now = rt.stamp()
    # Whatever waits for something else than its time runs again within this.
    soon = stamp(rt.now() + max(MAX_WAIT, rt.settings.publishing.max_lateness))
    totals = profile_queue.totals_of(rt.reader, profile_id, now, soon)
    found = profile_queue.next_of(rt.reader, profile_id, MAX_SHOWN)
    return ProfileQueue(
        waiting=totals.waiting,
        held=totals.held,
        scheduled=totals.scheduled,
        committed=totals.committed,
        next=tuple(WaitingDelivery(row.post_id, row.body, row.due_at, _reason(row, now)) for row in found),
    )


def counts(reader: Reader) -> dict[str, int]:
    """How many deliveries wait, by profile; without those that run at the moment."""
    return dict(profile_queue.count_queued_by_profile(reader))


def _reason(row: Row, now: str) -> WaitReason:
    if row.waits_for_reconnect:
        return WaitReason.HELD
    return WaitReason.SCHEDULED if row.started_at is None and row.due_at > now else WaitReason.PENDING
