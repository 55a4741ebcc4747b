"""Counters for the metrics and the usage page, kept in the write of what they count."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from socialpub.core.clock import parse
from socialpub.db.connection import BATCH_ROWS, Reader, Tx
from socialpub.db.delivery import Delivery


class Event(StrEnum):
    ATTEMPT = "attempt"
    """A run of a delivery's step; `kind` is that of the step."""
    REFRESH = "refresh"
    """A network was asked for new tokens."""


def count_event(tx: Tx, event: Event, provider: str, outcome: str, kind: str = "") -> None:
    """One more."""
    tx.execute(
        """INSERT INTO event_count VALUES (?, ?, ?, ?, 1)
            ON CONFLICT DO UPDATE SET count = count + 1""",
        (event, provider, kind, outcome),
    )


def events(reader: Reader, event: Event) -> list[tuple[str, str, str, int]]:
    """Each network, kind and outcome that has been met, and how often."""
    rows = reader.all("SELECT provider, kind, outcome, count FROM event_count WHERE event = ?", (event,))
    return [(row[0], row[1], row[2], row[3]) for row in rows]


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


def add_usage(tx: Tx, kind: str, counts: Mapping[str, int]) -> None:
    """So many more of this kind today, by name; the kind of an ended delivery is its outcome, and its name the
    network."""
    tx.many(
        "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(tx.stamp[:10], kind, name, count) for name, count in counts.items()],
    )


def usage_by_day(reader: Reader, now: datetime, days: int = 1) -> list[DayUsage]:
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


def count_outcome(tx: Tx, provider: str, outcome: str) -> None:
    """One more delivery has this outcome, which is final."""
    tx.execute(
        "INSERT INTO delivery_count VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET deliveries = deliveries + 1",
        (provider, outcome),
    )
    add_usage(tx, outcome, {provider: 1})


def outcomes(reader: Reader) -> dict[tuple[str, str], int]:
    """By provider and outcome."""
    return {(row[0], row[1]): row[2] for row in reader.all("SELECT provider, outcome, deliveries FROM delivery_count")}


DELAY_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0, float("inf"))
"""Upper bounds in seconds."""


def count_sending_delay(tx: Tx, delivery: Delivery) -> None:
    """One more delivery was published."""
    sent_at = delivery.committed_at or tx.stamp
    seconds = max(0.0, (parse(sent_at) - parse(delivery.due_at)).total_seconds())
    bucket = next(bound for bound in DELAY_BUCKETS if seconds <= bound)
    tx.execute(
        """INSERT INTO sending_delay (provider, bucket, deliveries, seconds) VALUES (?, ?, 1, ?)
            ON CONFLICT DO UPDATE SET deliveries = deliveries + 1, seconds = seconds + excluded.seconds""",
        (delivery.provider, bucket, seconds),
    )


def sending_delays(reader: Reader, provider: str) -> tuple[list[tuple[float, int]], float]:
    """Each bucket with how many deliveries were sent within it, and the seconds of all of them."""
    rows = reader.all("SELECT bucket, deliveries, seconds FROM sending_delay WHERE provider = ?", (provider,))
    found = {row[0]: row[1] for row in rows}
    cumulated, count = [], 0
    for bound in DELAY_BUCKETS:
        count += found.get(bound, 0)
        cumulated.append((bound, count))
    return cumulated, sum(row[2] for row in rows)


def delete_usage_before(tx: Tx, day: str) -> int:
    """Delete a batch of older rows. Return how many."""
    return tx.execute(
        """DELETE FROM usage WHERE (day, kind, name) IN (
            SELECT day, kind, name FROM usage WHERE day < ? LIMIT ?)""",
        (day, BATCH_ROWS),
    ).rowcount
