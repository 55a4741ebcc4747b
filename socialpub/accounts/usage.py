"""What each key and network used, day by day (UTC): requests of keys, calls to networks, ends of deliveries.

Requests and calls are counted in the memory of the process that sees them and written down about once a minute and when
it stops, for the day on which they are written; what a killed process had counted since then is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from socialpub.db import clock_jumps
from socialpub.db.transaction import AT_ONCE, Reader, Tx
from socialpub.runtime import Runtime

REQUESTS = "requests"
"""Of an API key, by its id."""
CALLS = "calls"
"""To a network: every HTTP request that was begun."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What was used on one day; what was not used is missing."""

    day: str
    """`2026-11-21`, UTC."""
    requests: dict[str, int] = field(default_factory=dict)
    """By the id of the key."""
    calls: dict[str, int] = field(default_factory=dict)
    """By network."""
    ended: dict[tuple[str, str], int] = field(default_factory=dict)
    """Deliveries, by network and outcome: published, failed, unknown, canceled."""


def add(tx: Tx, kind: str, counts: Mapping[str, int]) -> None:
    """So many more of this kind today, by name; the kind of an ended delivery is its outcome, and its name the
    network."""
    tx.many(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(tx.stamp[:10], kind, name, count) for name, count in counts.items()],
    )


def write_calls(rt: Runtime) -> None:
    """Write down the calls that this process made since the last time. Not from the event loop. What cannot be written
    now is kept for the next time."""
    counts = rt.http.take_calls()
    if not counts:
        return
    try:
        rt.write(_add_calls, counts)
    except Exception:
        rt.http.give_back_calls(counts)
        raise


async def write_calls_soon(rt: Runtime) -> None:
    """The same for the event loop."""
    counts = rt.http.take_calls()
    if not counts:
        return
    try:
        await rt.write_soon(_add_calls, counts)
    except Exception:
        rt.http.give_back_calls(counts)
        raise


def _add_calls(rt: Runtime, tx: Tx, counts: Mapping[str, int]) -> None:
    add(tx, CALLS, counts)


def read(reader: Reader, now: datetime, days: int = 1) -> list[DayUsage]:
    """Today and the days before it, so many in all, the newest first; a day without anything is there too."""
    wanted = [(now - timedelta(days=back)).strftime("%Y-%m-%d") for back in range(days)]
    found = {day: DayUsage(day) for day in wanted}
    for day, kind, name, count in reader.all(
        "SELECT day, kind, name, count FROM usage WHERE day BETWEEN ? AND ?", (wanted[-1], wanted[0])
    ):
        match kind:
            case "requests":
                found[day].requests[name] = count
            case "calls":
                found[day].calls[name] = count
            case _:
                found[day].ended[name, kind] = count
    return list(found.values())


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget what is older than `retention.usage`; how many rows, a few hundred at most."""
    kept = rt.settings.retention.usage
    if kept is None:
        return 0
    return tx.execute(
        """DELETE FROM usage WHERE (day, kind, name) IN (
            SELECT day, kind, name FROM usage WHERE day < ? LIMIT ?)""",
        (clock_jumps.written_before(tx, tx.now, kept)[:10], AT_ONCE),
    ).rowcount
