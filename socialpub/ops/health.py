"""Whether the appliance works, and why not: what readiness, the metrics and the doctor all ask.

Green means working: the database takes a write, the disk has room, the worker reports and nothing is overdue. That
a process answers is not enough.
"""

import asyncio
from collections.abc import Iterator
from datetime import datetime

from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.transaction import Reader, Tx
from socialpub.ops.finding import Finding, problem
from socialpub.publishing import scheduling
from socialpub.runtime import Runtime

HEARTBEAT_SECONDS = 10.0
"""The worker reports this often that it lives."""
HEARTBEAT_LATE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A worker that has not reported for so long does not work, whatever its process does."""

WRITE_SECONDS = 6.0

START_WORKER = "Start it: `socialpub serve` runs the web server and the worker, `socialpub worker` the worker alone."


async def reasons(rt: Runtime) -> list[str]:
    """Why the appliance does not work, as sentences; none when it does. They name no path: anybody may ask."""
    found = []
    now = rt.now()
    try:
        await asyncio.wait_for(rt.write_soon(_touch), WRITE_SECONDS)
    except (Unavailable, TimeoutError) as error:
        found.append(f"Nothing can be stored: {getattr(error, 'detail', 'the database does not answer.')}")
    floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
    if free < floor:
        found.append(f"The disk has {free // 1_000_000} MB left, which is below health.disk_floor_bytes. Free some.")
    return found + [f"{finding.message} {finding.remedy}" for finding in worker_problems(rt.reader, now)]


def _touch(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.READINESS, tx.stamp)


def worker_problems(reader: Reader, now: datetime) -> Iterator[Finding]:
    """What is wrong with the worker, and with what it should have done."""
    for found in (silence(reader, now), lateness(reader, now)):
        if found is not None:
            yield found


def silence(reader: Reader, now: datetime) -> Finding | None:
    """That the worker does not report; None when it does."""
    age = heartbeat_age(reader, now)
    if age is None:
        return problem("worker", "The worker has never run.", START_WORKER)
    if age < -HEARTBEAT_LATE_SECONDS:
        message = "The worker's last report is dated in the future: the clock was set back, and none has come since."
        return problem("worker", message, f"Check its log. {START_WORKER}")
    if age > HEARTBEAT_LATE_SECONDS:
        message = f"The worker has not reported for {age:.0f} seconds."
        return problem("worker", message, f"Check its log. {START_WORKER}")
    return None


def lateness(reader: Reader, now: datetime) -> Finding | None:
    """That deliveries should have started by now; None when none should."""
    late = overdue(reader, now)
    if not late:
        return None
    were = "1 delivery is" if late == 1 else f"{late} deliveries are"
    message = f"{were} overdue by more than two minutes."
    return problem("worker", message, "Check the worker's log, and restart it.")


def clock_jump(reader: Reader, now: datetime) -> str | None:
    """A sentence about the clock having been set, while that is worth knowing; None when it was not."""
    jumped = clock_jumps.recent(reader, now)
    if jumped is None:
        return None
    direction = "forward" if jumped.jumped_by > 0 else "back"
    return (
        f"The clock was set {direction} by {_span(abs(jumped.jumped_by))}, noticed at {jumped.jumped_at}. Scheduled "
        "times follow the clock as it is now; what socialpub waits for goes on as if it had not been set."
    )


def _span(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 7200 else f"{seconds:.0f} seconds"


def heartbeat_age(reader: Reader, now: datetime) -> float | None:
    """Seconds since the worker last reported; None when it never did."""
    heartbeat_at = appliance_state.get(reader, appliance_state.HEARTBEAT)
    return None if heartbeat_at is None else (now - parse(heartbeat_at)).total_seconds()


def overdue(reader: Reader, now: datetime) -> int:
    """How many deliveries should have started two minutes ago; none while publishing is paused."""
    if appliance_state.paused_at(reader):
        return 0
    return scheduling.overdue(reader, stamp(now))
