"""What comes next, and when: a lane per profile, oldest first, one delivery at a time.

What may start is decided inside the claim, so that no answer can be out of date when it is acted on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from socialpub.accounts import cooldowns
from socialpub.core import durations
from socialpub.core.clock import after, parse, stamp
from socialpub.db import delivery_rows, own_waits, profile_queues, waiting_deliveries
from socialpub.db.locks import ProcessLock
from socialpub.db.models import Delivery
from socialpub.db.own_waits import OwnWait
from socialpub.db.transaction import Reader, Tx
from socialpub.providers.content import Content
from socialpub.runtime import Runtime

OVERDUE_SECONDS = 120.0
"""A delivery that is due for so long shows that the worker does not work."""

LONG_STEP_SECONDS = 5.0
"""A step that takes so long keeps the other posts of its profile waiting noticeably."""

LONGEST_STEP_SECONDS = 1800.0
"""A call that sends a file is judged by its progress alone: 150 MB over a slow line take their time."""


@dataclass(frozen=True, slots=True)
class Overdue:
    """Deliveries that wait too long, and the one of them that waits longest."""

    count: int
    seconds: float
    provider: str


NOT_OVERDUE = Overdue(0, 0.0, "")

COMMITS = "commit"
"""As an endpoint of cooldowns: whatever call makes a post of this profile public."""


def next_due(reader: Reader, profile_id: str, now: str, process: ProcessLock) -> Delivery | None:
    """What of this lane comes next: what nobody works on any more, else the oldest due one. None while one runs."""
    running = delivery_rows.running_in(reader, profile_id)
    if not running:
        return profile_queues.oldest_due(reader, profile_id, now)
    if process.works_on(running[0]["held_by"], running[0]["id"]):
        return None
    return delivery_rows.find(reader, running[0]["id"])


def due_lanes(reader: Reader, now: str, process: ProcessLock) -> list[str]:
    """One delivery of each profile that has something due or orphaned, the longest waiting first."""
    orphans = [row["id"] for row in delivery_rows.running(reader) if not process.works_on(row["held_by"], row["id"])]
    return orphans + profile_queues.due_per_lane(reader, now)


def next_run_at(reader: Reader, now: str) -> str | None:
    """Return when the next delivery becomes due, or the next wait of a profile with due deliveries ends."""
    return profile_queues.next_run_at(reader, now)


def overdue(reader: Reader, now: str, seconds: float = OVERDUE_SECONDS) -> Overdue:
    """The deliveries that should have been taken up that long ago and were not, or run longer than any step takes (a
    suspended worker keeps its lane). Holds are reported separately."""
    found = profile_queues.overdue(reader, after(now, -seconds), after(now, -LONGEST_STEP_SECONDS))
    if found is None:
        return NOT_OVERDUE
    count, since, provider = found
    return Overdue(count, (parse(now) - parse(since)).total_seconds(), provider)


def lane_is_busy(tx: Tx, delivery: Delivery) -> bool:
    """Whether another delivery of the lane runs. One whose process died comes first, too: it may be past its commit."""
    return any(row["id"] != delivery.id for row in delivery_rows.running_in(tx, delivery.profile_id))


def cooldown_of(tx: Tx, delivery: Delivery) -> tuple[str, str] | None:
    """Until when what this delivery does next has to wait for its network, and why."""
    # What has not begun does not begin either: what it would upload now might lapse before its turn.
    commits = COMMITS if delivery.commits_next or delivery.started_at is None else cooldowns.ANY_ENDPOINT
    return cooldowns.until(tx, delivery.profile_id, (_endpoint(delivery), commits), tx.stamp)


def was_put_off(tx: Tx, delivery: Delivery) -> bool:
    """Whether its network, or an equal post, made this delivery wait since it was due. The gap between two posts of a
    profile is not such a wait (`startable_until` counts it)."""
    if delivery.run_at > delivery.due_at:
        return True
    return cooldowns.until(tx, delivery.profile_id, (_endpoint(delivery),), delivery.due_at) is not None


def _endpoint(delivery: Delivery) -> str:
    """Return what this delivery calls next."""
    planned = delivery.plan or delivery.progress.reading_back
    return (None if planned else delivery.first_endpoint) or cooldowns.endpoint_of(delivery.step_name)


def first_endpoint(rt: Runtime, provider: str, content: Content, options: Mapping[str, Any]) -> str | None:
    """Return what the first step of such a delivery calls. None: that is not known before its claim."""
    network = rt.providers[provider]
    try:
        steps = network.plan(content, network.read_options(options)[0])
    except Exception:
        # Nothing has checked the content yet. The claim does, and says what is wrong.
        return None
    return cooldowns.endpoint_of(steps[0].name)


# --- how long --------------------------------------------------------------------------------------------------------


def startable_until(rt: Runtime, tx: Tx, delivery: Delivery) -> datetime:
    """When `max_lateness` is over. It does not count the waits for other posts of the same profile."""
    own = own_waits.total(tx, delivery.profile_id, parse(delivery.due_at), tuple(OwnWait))
    return parse(delivery.due_at) + rt.settings.publishing.max_lateness + own


def patient_until(rt: Runtime, tx: Tx, delivery: Delivery) -> datetime:
    """When `give_up_after` is over: from the first start on, or from the last reconnection of the account. It does not
    count the gaps between two posts of the same profile."""
    began = parse(max(delivery.started_at or delivery.due_at, delivery.progress.reconnected_at or ""))
    gaps = own_waits.total(tx, delivery.profile_id, began, (OwnWait.GAP,))
    return began + rt.settings.publishing.give_up_after + gaps


def too_long(until: str, reason: str) -> str:
    """Why to give up at once, for `deliveries.give_up`."""
    return f"would have to wait until {until}, later than its deadline (publishing.give_up_after): {reason.rstrip('.')}"


def keep_distance(rt: Runtime, tx: Tx, delivery: Delivery) -> None:
    """Something was, or may have been, made public just now: the profile's next post waits `min_gap`."""
    gap = rt.settings.publishing.min_gap
    if gap:
        reason = f"Two posts of one profile are at least {durations.write(gap)} apart (publishing.min_gap)."
        until = after(tx.stamp, gap.total_seconds())
        cooldowns.begin(tx, delivery.profile_id, COMMITS, until, reason)
        own_waits.record(tx, delivery.profile_id, OwnWait.GAP, tx.stamp, until)


def note_step(tx: Tx, delivery: Delivery, began_at: str) -> None:
    """A step that began then has ended: a long one has kept the other posts of its profile waiting."""
    if after(began_at, LONG_STEP_SECONDS) <= tx.stamp:
        own_waits.record(tx, delivery.profile_id, OwnWait.STEP, began_at, tx.stamp)


def clean_own_waits(_: Runtime, tx: Tx) -> int:
    """Forget the waits that count for no open delivery any more; how many."""
    return own_waits.clean(tx)


def publishes_at(
    rt: Runtime, reader: Reader, profile_id: str, at: datetime, besides: str | None
) -> tuple[datetime, int]:
    """About when a post that is due then can be published to this profile, and how many posts are queued before it.

    Counts the gap between two posts, and no other wait. `besides` is a post that does not count."""
    gap = rt.settings.publishing.min_gap
    if not gap:
        return at, 0
    resting = cooldowns.until(reader, profile_id, (COMMITS,), rt.stamp())
    free_at = parse(resting[0]) if resting else rt.now()
    queued = waiting_deliveries.uncommitted_due_by(reader, profile_id, stamp(at), besides)
    for due_at in queued:
        free_at = max(free_at, parse(due_at)) + gap
    return max(free_at, at), len(queued)
