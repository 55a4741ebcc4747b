"""How long after its time a delivery was sent: counted when it is published, so that a scrape reads a few rows.

Its time is `scheduledAt`, or the acceptance of what is published now; sent is when the call began that made it public.
"""

from socialpub.core.clock import parse
from socialpub.db.models import Delivery
from socialpub.db.transaction import Reader, Tx

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0, float("inf"))
"""Upper bounds in seconds."""


def record(tx: Tx, delivery: Delivery) -> None:
    """One more delivery was published."""
    sent_at = delivery.committed_at or tx.stamp
    seconds = max(0.0, (parse(sent_at) - parse(delivery.due_at)).total_seconds())
    bucket = next(bound for bound in BUCKETS if seconds <= bound)
    tx.execute(
        """INSERT INTO sending_delay (provider, bucket, deliveries, seconds) VALUES (?, ?, 1, ?)
            ON CONFLICT DO UPDATE SET deliveries = deliveries + 1, seconds = seconds + excluded.seconds""",
        (delivery.provider, bucket, seconds),
    )


def read(reader: Reader, provider: str) -> tuple[list[tuple[float, int]], float]:
    """Each bucket with how many deliveries were sent within it, and the seconds of all of them."""
    rows = reader.all("SELECT bucket, deliveries, seconds FROM sending_delay WHERE provider = ?", (provider,))
    found = {row[0]: row[1] for row in rows}
    cumulated, count = [], 0
    for bound in BUCKETS:
        count += found.get(bound, 0)
        cumulated.append((bound, count))
    return cumulated, sum(row[2] for row in rows)
