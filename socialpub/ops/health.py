"""Whether the appliance works, and why not: what readiness, the metrics and the doctor all ask.

Green means working: the database takes a write, the disk has room, files and decoders can be made, the worker's rounds
go well and nothing is overdue. That a process answers is not enough.
"""

import asyncio
import errno
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from socialpub.core import commands, durations
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.transaction import Reader, Row, Tx
from socialpub.media import decoder_starts
from socialpub.ops import worker_report
from socialpub.ops.finding import Finding, FindingCode, problem
from socialpub.providers import registry
from socialpub.publishing import holds, scheduling
from socialpub.runtime import Runtime

HEARTBEAT_SECONDS = 10.0
"""The worker reports this often that it works."""
HEARTBEAT_LATE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A worker that has not reported for so long does not work, whatever its process does."""
HOUSEKEEPING_LATE_SECONDS = 3600.0
"""One round of housekeeping may ask networks that hang, and remove thousands of files; no round takes this long."""

WRITE_SECONDS = 4.0
LOOK_SECONDS = 5.0
"""A look that takes longer has found out enough: those who ask for readiness wait no longer than this."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Why the appliance does not work, nothing when it does; and what is worth knowing though it works."""

    reasons: list[Finding]
    paused: bool = False
    held: list[Row] = field(default_factory=list)
    clock: str | None = None


HANGING = Readiness(
    [
        problem(
            "database",
            f"The database or the disk has not answered for {LOOK_SECONDS:.0f} seconds.",
            "Check the disk, and what else uses it.",
            FindingCode.DATABASE,
        )
    ]
)


async def look(rt: Runtime) -> Readiness:
    """Whether the appliance works. What is said names no path and nobody's account: anybody may ask. A disk or database
    that hangs holds it up, and not the event loop."""
    written = await _try_write(rt)  # which also notices that the clock was set
    found = await asyncio.to_thread(look_without_writing, rt)
    return Readiness([*written, *found.reasons], found.paused, found.held, found.clock)


async def _try_write(rt: Runtime) -> list[Finding]:
    try:
        await asyncio.wait_for(rt.write_soon(_touch), WRITE_SECONDS)
    except (Unavailable, TimeoutError) as error:
        why = getattr(error, "detail", f"the database has not answered for {WRITE_SECONDS:.0f} seconds.")
        return [_no_database(f"Nothing can be stored: {why}")]
    return []


def _touch(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.READINESS, tx.stamp)


def look_without_writing(rt: Runtime) -> Readiness:
    """What can be seen without a write. Not from the event loop."""
    reader, now = rt.db.reader, rt.now()
    reasons = [*storage_problems(rt), *decoder_problems()]
    try:
        return Readiness(
            [*reasons, *worker_problems(reader, now)],
            paused=appliance_state.paused_at(reader) is not None,
            held=holds.list_all(reader),
            clock=clock_jump(reader, now),
        )
    except sqlite3.Error as error:
        return Readiness([*reasons, _no_database(f"The database cannot be read ({error_name(error)}).")])


def error_name(error: sqlite3.Error | OSError) -> str:
    """Return the fixed name of an error (`SQLITE_CORRUPT`, `EROFS`). Its text may name a path, a table or a value."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _no_database(message: str) -> Finding:
    return problem(
        "database", message, f"Run `{commands.line('doctor')}`. It reports what is wrong.", FindingCode.DATABASE
    )


def storage_problems(rt: Runtime) -> Iterator[Finding]:
    """What is wrong with the disk and the media folder."""
    try:
        floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
        if free < floor:
            left = f"The disk has {free // 1_000_000} MB left, which is below health.disk_floor_bytes."
            yield problem("disk", left, "Free some.", FindingCode.DISK)
        rt.files.try_writing()
    except OSError as error:
        message = f"No file can be created in the media folder ({error_name(error)})."
        remedy = "Give it back to the user that socialpub runs as, or see whether its disk is there and writable."
        yield problem("media", message, remedy, FindingCode.MEDIA)


def decoder_problems() -> Iterator[Finding]:
    """Whether this process can have media decoded, as far as it has tried."""
    failure = decoder_starts.failure()
    if failure is not None:
        yield _decoder(f"Media cannot be examined: {failure}")


def _decoder(message: str) -> Finding:
    remedy = "See whether the machine has memory and processes left, and what the service's limits forbid."
    return problem("decoder", message, remedy, FindingCode.DECODER)


def worker_problems(reader: Reader, now: datetime) -> Iterator[Finding]:
    """What is wrong with the worker, and with what it should have done."""
    silent = silence(reader, now)
    if silent is not None:
        yield silent
    else:
        yield from complaints(reader)
    late = lateness(reader, now)
    if late is not None:
        yield late


def _start_worker() -> str:
    return f"{commands.start('socialpub-worker')}."


def _restart_worker() -> str:
    return f"Read {commands.log('socialpub-worker')}. {commands.restart('socialpub-worker')}."


def silence(reader: Reader, now: datetime) -> Finding | None:
    """That the worker does not report; None when it does."""
    age = heartbeat_age(reader, now)
    if age is None:
        return problem("worker", "The worker has never run.", _start_worker(), FindingCode.WORKER_NEVER_RAN)
    if age < -HEARTBEAT_LATE_SECONDS:
        message = "The worker's last report is dated in the future: the clock was set back, and none has come since."
        return problem("worker", message, _restart_worker(), FindingCode.WORKER_LATE)
    if age > HEARTBEAT_LATE_SECONDS:
        message = f"The worker has not reported for {durations.in_words(age)}."
        return problem("worker", message, _restart_worker(), FindingCode.WORKER_LATE)
    return None


def lateness(reader: Reader, now: datetime) -> Finding | None:
    """That deliveries should have started by now; None when none should."""
    late = overdue(reader, now)
    if not late.count:
        return None
    were = "1 delivery is" if late.count == 1 else f"{late.count} deliveries are"
    which = f"{'' if late.count == 1 else 'the oldest, '}to {registry.LABELS[late.provider]}"
    message = f"{were} overdue by more than two minutes: {which}, by {durations.in_words(late.seconds)}."
    return problem("worker", message, _restart_worker(), FindingCode.OVERDUE)


def complaints(reader: Reader) -> Iterator[Finding]:
    """What a worker that reports says of itself."""
    report = worker_report.read(reader)
    if report is None:
        return
    if report.housekeeping_seconds > HOUSEKEEPING_LATE_SECONDS:
        message = (
            f"The worker's housekeeping has not come round for {durations.in_words(report.housekeeping_seconds)}: "
            "it renews no unused tokens, and it cleans nothing up."
        )
        yield problem("worker", message, _restart_worker(), FindingCode.HOUSEKEEPING_LATE)
    if report.decoder_failure is not None:
        yield _decoder(f"The worker cannot have media decoded: {report.decoder_failure}")


def clock_jump(reader: Reader, now: datetime) -> str | None:
    """A sentence about the clock having been set, while that is worth knowing; None when it was not."""
    jumped = clock_jumps.recent(reader, now)
    if jumped is None:
        return None
    direction = "forward" if jumped.jumped_by > 0 else "back"
    return (
        f"The clock was set {direction} by {durations.in_words(abs(jumped.jumped_by))}, noticed at {jumped.jumped_at}. "
        "Scheduled times follow the clock as it is now: posts later than publishing.max_lateness are not sent. "
        "The waits of socialpub last as long as before."
    )


def heartbeat_age(reader: Reader, now: datetime) -> float | None:
    """Seconds since the worker last reported; None when it never did."""
    heartbeat_at = appliance_state.get(reader, appliance_state.HEARTBEAT)
    return None if heartbeat_at is None else (now - parse(heartbeat_at)).total_seconds()


def overdue(reader: Reader, now: datetime) -> scheduling.Overdue:
    """Which deliveries should have started two minutes ago; none while publishing is paused."""
    if appliance_state.paused_at(reader):
        return scheduling.NOT_OVERDUE
    return scheduling.overdue(reader, stamp(now))
