"""What each key and network used, day by day (UTC): requests of keys, calls to networks, ends of deliveries.

Requests and calls are counted in the memory of the process that sees them and written down about once a minute and when
it stops, for the day on which they are written; what a killed process had counted since then is lost.
"""

from collections.abc import Mapping

from socialpub.db import clock_jumps
from socialpub.db.connection import BATCH_ROWS, Tx
from socialpub.db.tables import counters
from socialpub.db.tables.counters import CALLS
from socialpub.runtime import Runtime


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
    counters.add_usage(tx, CALLS, counts)


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget what is older than `retention.usage`; how many rows, a few hundred at most."""
    kept = rt.settings.retention.usage
    if kept is None:
        return 0
    return tx.execute(
        """DELETE FROM usage WHERE (day, kind, name) IN (
            SELECT day, kind, name FROM usage WHERE day < ? LIMIT ?)""",
        (clock_jumps.written_before(tx, tx.now, kept)[:10], BATCH_ROWS),
    ).rowcount
