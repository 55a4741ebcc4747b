"""What waits for one profile: for its owner to see, and to know what disconnecting it would cost."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from socialpub.accounts.cooldowns import LONGEST_SECONDS
from socialpub.core.clock import stamp
from socialpub.db import waiting_deliveries
from socialpub.db.transaction import Reader, Row
from socialpub.runtime import Runtime

MOST_SHOWN = 5
LONGEST_WAIT = timedelta(seconds=LONGEST_SECONDS)


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


def look(rt: Runtime, profile_id: str) -> ProfileQueue:
    """What waits for this profile now."""
    now = rt.stamp()
    # Whatever waits for something else than its time runs again within this.
    soon = stamp(rt.now() + max(LONGEST_WAIT, rt.settings.publishing.max_lateness))
    totals = waiting_deliveries.totals_of(rt.reader, profile_id, now, soon)
    found = waiting_deliveries.next_of(rt.reader, profile_id, MOST_SHOWN)
    return ProfileQueue(
        waiting=totals["waiting"],
        held=totals["held"],
        scheduled=totals["scheduled"],
        committed=totals["committed"],
        next=tuple(WaitingDelivery(row["post_id"], row["body"], row["due_at"], _reason(row, now)) for row in found),
    )


def counts(reader: Reader) -> dict[str, int]:
    """How many deliveries wait, by profile; without those that run at the moment."""
    return dict(waiting_deliveries.count_queued_by_profile(reader))


def _reason(row: Row, now: str) -> WaitReason:
    if row["waits_for_owner"]:
        return WaitReason.HELD
    return WaitReason.SCHEDULED if row["started_at"] is None and row["due_at"] > now else WaitReason.PENDING
