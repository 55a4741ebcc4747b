"""The usage of each key and network, day by day (UTC): requests of keys, calls to networks, ends of deliveries.

Each process counts its requests and calls in memory. It stores them about once a minute and when it stops, for the day
of the write. A killed process loses what it counted since the last write.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta

from socialpub.core.clock import stamp
from socialpub.db import clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import ApiKeyRow, UsageRow
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


class LastUses:
    """The last use and the requests of each key, in memory: one write a minute instead of one per request."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._uses: dict[str, datetime] = {}
        self._requests: Counter[str] = Counter()

    def note(self, key_id: str) -> None:
        self._uses[key_id] = self._rt.clock.now()
        self._requests[key_id] += 1

    async def flush(self) -> None:
        """Store the uses. Keep them if the write fails."""
        uses, self._uses = self._uses, {}
        requests, self._requests = self._requests, Counter()
        if not uses:
            return
        try:
            await self._rt.write_soon(_record_uses, uses, requests)
        except Exception:
            self._uses = {**uses, **self._uses}
            self._requests += requests
            raise


def _record_uses(rt: Runtime, tx: Database, uses: dict[str, datetime], requests: Counter[str]) -> None:
    counters.add_usage(tx, counters.REQUESTS, requests)
    for key_id, at in uses.items():
        tx.update(ApiKeyRow, key_id, last_used_at=stamp(at))


def clean(rt: Runtime, tx: Database) -> int:
    """Delete a batch of rows older than `KEPT`. Return the number of deleted rows."""
    return tx.delete_batch(UsageRow, UsageRow.day < clock_jumps.written_before(tx, tx.now, KEPT)[:10])
