"""What each key and network used, day by day (UTC): requests of keys, calls to networks, ends of deliveries.

Each process counts its requests and calls in memory. It stores them about once a minute and when it stops, for the day
of the write. A killed process loses what it counted since the last write.
"""

from collections.abc import Mapping

from socialpub.db import clock_jumps
from socialpub.db.connection import Tx
from socialpub.db.tables import counters
from socialpub.db.tables.counters import CALLS
from socialpub.runtime import Runtime


def write_calls(rt: Runtime) -> None:
    """Store the calls that this process made since the last time. What cannot be stored now is kept for the next time.

    Not from the event loop.
    """
    counts = rt.http.take_calls()
    if not counts:
        return
    try:
        rt.write(_add_calls, counts)
    except Exception:
        rt.http.give_back_calls(counts)
        raise


async def write_calls_soon(rt: Runtime) -> None:
    """Store the calls from the event loop."""
    counts = rt.http.take_calls()
    if not counts:
        return
    try:
        await rt.write_soon(_add_calls, counts)
    except Exception:
        rt.http.give_back_calls(counts)
        raise


def _add_calls(rt: Runtime, tx: Tx, counts: Mapping[str, int]) -> None:
    counters.add_usage(tx, CALLS, counts)


def clean(rt: Runtime, tx: Tx) -> int:
    """Delete rows older than `retention.usage`; return how many, a few hundred at most."""
    kept = rt.settings.retention.usage
    if kept is None:
        return 0
    return counters.delete_usage_before(tx, clock_jumps.written_before(tx, tx.now, kept)[:10])
