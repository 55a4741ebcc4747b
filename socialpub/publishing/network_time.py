"""What time it is at a network: whether a post is ours is judged by its clock, which may differ from ours by hours.

Every answer of its API carries a `Date`. It is kept as a distance to our monotonic clock, so that nobody who sets our
wall clock changes it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from socialpub.core.clock import parse, stamp
from socialpub.db import clock_jumps
from socialpub.db.models import Delivery
from socialpub.providers.responses import HttpResponse, http_date
from socialpub.runtime import Runtime

SLACK = timedelta(minutes=2)
"""The machines of one network need not agree among themselves."""
NOTED_SECONDS = 10.0
WITHOUT_A_DATE = timedelta(days=1)
"""How far from ours the clock of a network may be that has not told its time yet."""


@dataclass(slots=True)
class NetworkClocks:
    """By provider: Unix seconds of the network minus our monotonic clock, and when that was noted. By delivery: our
    monotonic clock when its first commit was announced."""

    offsets: dict[str, float] = field(default_factory=dict)
    noted: dict[str, float] = field(default_factory=dict)
    announced: dict[str, float] = field(default_factory=dict)


def note_answer(rt: Runtime, provider: str, response: HttpResponse) -> None:
    """Set the network's clock by an answer of its API, now and then."""
    clocks, now = rt.memory(NetworkClocks), rt.clock.monotonic()
    if now - clocks.noted.get(provider, -NOTED_SECONDS) < NOTED_SECONDS:
        return
    at = http_date(response.headers.get("date"))
    if at is None:
        return
    clocks.offsets[provider], clocks.noted[provider] = at.timestamp() - now, now


def now(rt: Runtime, provider: str) -> datetime | None:
    """The time at the network; None before its first answer to this process."""
    offset = rt.memory(NetworkClocks).offsets.get(provider)
    return None if offset is None else datetime.fromtimestamp(rt.clock.monotonic() + offset, UTC)


def note_announcement(rt: Runtime, delivery: Delivery) -> None:
    """A commit is about to be sent. The first of a delivery is what is read back from; nothing is stored yet."""
    if delivery.progress.commits:
        return
    there = now(rt, delivery.provider)
    delivery.progress.dated_since = None if there is None else stamp(there)
    rt.memory(NetworkClocks).announced[delivery.id] = rt.clock.monotonic()


def forget(rt: Runtime, delivery_id: str) -> None:
    rt.memory(NetworkClocks).announced.pop(delivery_id, None)


def since(rt: Runtime, delivery: Delivery) -> datetime:
    """The earliest moment, on the network's clock, at which what the first commit made can be dated."""
    if delivery.progress.dated_since is not None and not delivery.progress.restored:
        return parse(delivery.progress.dated_since) - SLACK
    there = now(rt, delivery.provider)
    announced = rt.memory(NetworkClocks).announced.get(delivery.id)
    if there is not None and announced is not None:
        return there - timedelta(seconds=rt.clock.monotonic() - announced) - SLACK
    ours = delivery.progress.since or delivery.committed_at
    assert ours is not None
    if delivery.progress.restored or delivery.progress.look_first:
        return parse(ours) - WITHOUT_A_DATE  # a time of the original's clock, whatever ours shows
    if there is not None:
        return parse(ours) + (there - rt.now()) - WITHOUT_A_DATE
    # Nobody knows whether our clock was right before it was set, or is now.
    jumped = clock_jumps.recent(rt.reader, rt.now())
    return parse(ours) - timedelta(seconds=max(jumped.jumped_by, 0.0) if jumped else 0.0) - WITHOUT_A_DATE
