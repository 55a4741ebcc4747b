"""The usage of each key and network, day by day (UTC): requests of keys, calls to networks, ends of deliveries.

Each process counts its requests (`api_keys.LastUses`) and calls in memory. It stores them about once a minute and when
it stops, for the day of the write. A killed process loses what it counted since the last write.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import UsageRow
from socialpub.db.tables import counters
from socialpub.runtime import Runtime

KEPT = timedelta(days=400)
"""A month can be compared with the same month of the year before. A key or network has one row a day."""


def write_calls(rt: Runtime) -> None:
    """Store the calls of this process. Keep them if the write fails. Do not call on the event loop."""
    with _taken_calls(rt) as counts:
        if counts:
            rt.write(_add_calls, counts)


async def write_calls_soon(rt: Runtime) -> None:
    """Store the calls from the event loop."""
    with _taken_calls(rt) as counts:
        if counts:
            await rt.write_soon(_add_calls, counts)


@contextmanager
def _taken_calls(rt: Runtime) -> Iterator[Mapping[str, int]]:
    counts = rt.http.pop_call_counts()
    try:
        yield counts
    except Exception:
        rt.http.restore_call_counts(counts)
        raise


def _add_calls(rt: Runtime, tx: Database, counts: Mapping[str, int]) -> None:
    counters.add_usage(tx, counters.CALLS, counts)


def clean(rt: Runtime, tx: Database) -> int:
    """Delete a batch of rows older than `KEPT`. Return the number of deleted rows."""
    return tx.delete_batch(UsageRow, UsageRow.day < clock_jumps.written_before(tx, tx.now, KEPT)[:10])
