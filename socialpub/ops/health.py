"""The health of the appliance, for readiness, the metrics, `doctor` and notifications.

Green means working: the database accepts writes, the disk has space, files and decoders can be created, the worker's
tasks succeed and no delivery is overdue. With each heartbeat, the worker reports facts that only its own process knows.
"""

import asyncio
import errno
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from socialpub.core import commands, manual, units
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import OperatorError, Unavailable
from socialpub.core.machine import ProcessFigures, read_process_figures
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import StoredWaitRow
from socialpub.db.tables import waits
from socialpub.media.decoder import client
from socialpub.providers import registry
from socialpub.providers.failures import find_unusable_proxies
from socialpub.publishing import profile_queue
from socialpub.runtime import Runtime


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Allowed and perhaps intended, or impossible to check."""
    PROBLEM = "problem"


class FindingCode(StrEnum):
    """The reason why the appliance is not ready, for programs. A code never changes its meaning."""

    DATABASE = "databaseUnavailable"
    """The database cannot be written or read, or does not answer."""
    DISK = "diskFull"
    """The free space is below `health.disk_floor_bytes`."""
    MEDIA = "mediaUnwritable"
    """Files cannot be created in the media folder."""
    DECODER = "decoderFailing"
    """Decoder processes cannot be started."""
    WORKER_NEVER_RAN = "workerNeverRan"
    WORKER_LATE = "workerLate"
    """The worker has not reported for half a minute."""
    OVERDUE = "overdue"
    """Deliveries have been due for more than two minutes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy` is None if no action is needed. `code` is the reason for not being ready."""

    level: Level
    subject: str
    message: str
    remedy: str | None = None
    code: FindingCode | None = None

    @property
    def manual_place(self) -> str | None:
        """Return the place in the manual that explains this finding, or None if no action is needed."""
        return None if self.level is Level.OK else manual.finding_places().get(self.subject)

    @property
    def sentences(self) -> str:
        return self.message if self.remedy is None else f"{self.message} {self.remedy}"


def ok(subject: str, message: str) -> Finding:
    return Finding(Level.OK, subject, message)


def note(subject: str, message: str, remedy: str | None = None) -> Finding:
    return Finding(Level.NOTE, subject, message, remedy)


def problem(subject: str, message: str, remedy: str, code: FindingCode | None = None) -> Finding:
    return Finding(Level.PROBLEM, subject, message, remedy, code)


def problem_of(subject: str, error: OperatorError) -> Finding:
    return problem(subject, error.message, error.hint or "")


@dataclass(frozen=True, slots=True)
class WorkerReport:
    figures: ProcessFigures
    decoder_failure: str | None = None
    """The reason why decoder processes cannot be started."""
    decoder_lacks: tuple[str, ...] | None = None
    """The features for confining decoders that the kernel lacks. None before the first decoder has responded."""
    failing_tasks: tuple[str, ...] = ()
    """The periodic tasks that fail every time or hang."""
    unusable_proxies: tuple[str, ...] = ()
    """A sentence for each proxy variable of the worker that cannot be used."""


TASK_FAILURES = 5
"""The number of failures in a row after which a periodic task is reported."""
TASK_SECONDS = 3600.0
"""A run time that no periodic task reaches, even if networks hang and thousands of files are removed."""


def record_heartbeat(rt: Runtime, tx: Database) -> None:
    """Record that a worker is running and can write. The readiness check uses the age of this record."""
    appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp)
    now, running, failures = rt.clock.monotonic(), dict(rt.running_tasks), dict(rt.task_failures)
    failing = {name for name, count in failures.items() if count >= TASK_FAILURES}
    failing |= {name for name, began_at in running.items() if now - began_at >= TASK_SECONDS}
    report = WorkerReport(
        read_process_figures(),
        client.last_start.failure,
        client.last_start.lacks,
        tuple(sorted(failing)),
        tuple(find_unusable_proxies()),
    )
    appliance_state.put(tx, appliance_state.WORKER, json.dumps(asdict(report)))


def read_worker_report(db: Database) -> WorkerReport | None:
    """Return the last report, which is as old as the heartbeat."""
    written = appliance_state.get(db, appliance_state.WORKER)
    if written is None:
        return None
    values = json.loads(written)
    return WorkerReport(**values | {"figures": ProcessFigures(**values["figures"])})


def record_housekeeping(rt: Runtime, tx: Database) -> None:
    appliance_state.put(tx, appliance_state.HOUSEKEPT_AT, tx.stamp)


HEARTBEAT_SECONDS = 10.0
HEARTBEAT_LATE_SECONDS = 3 * HEARTBEAT_SECONDS
WRITE_SECONDS = 4.0
READINESS_SECONDS = 5.0
"""The longest time that a caller waits for readiness."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """The reasons why the appliance is not working, and further information."""

    reasons: list[Finding]
    paused: bool = False
    held: list[StoredWaitRow] = field(default_factory=list)
    clock: str | None = None
    failing_tasks: str | None = None


_NO_ANSWER = f"The database or the disk has not answered for {READINESS_SECONDS:.0f} seconds."
HANGING = Readiness(
    [problem("database", _NO_ANSWER, "Check the disk and the programs that use it.", FindingCode.DATABASE)]
)


async def check_readiness(rt: Runtime) -> Readiness:
    """Check whether the appliance works. Anyone may ask, so the findings do not contain paths or accounts.

    A disk or database that hangs does not block the event loop.
    """
    written = await _try_write(rt)  # this also notices that the clock was set
    readiness = await asyncio.to_thread(check_without_writing, rt)
    return replace(readiness, reasons=[*written, *readiness.reasons])


async def _try_write(rt: Runtime) -> list[Finding]:
    try:
        await asyncio.wait_for(
            rt.write_soon(lambda _, tx: appliance_state.put(tx, appliance_state.READINESS, tx.stamp)), WRITE_SECONDS
        )
    except Unavailable as error:
        return [_no_database(f"Nothing can be stored: {error.detail}")]
    except TimeoutError:
        return [_no_database(f"Nothing can be stored: the database has not answered for {WRITE_SECONDS:.0f} seconds.")]
    return []


def check_without_writing(rt: Runtime) -> Readiness:
    """Check everything but a write. Do not call it on the event loop."""
    db, now = rt.db, rt.now()
    reasons = list(_storage_problems(rt))
    if (failure := client.last_start.failure) is not None:
        reasons.append(_decoder(f"Media cannot be examined: {failure}"))
    try:
        return Readiness(
            [*reasons, *worker_problems(db, now)],
            paused=appliance_state.paused_at(db) is not None,
            held=waits.list_holds(db),
            clock=describe_clock_jump(db, now),
            failing_tasks=describe_failing_tasks(db, now),
        )
    except sqlite3.Error as error:
        return Readiness([*reasons, _no_database(f"The database cannot be read ({error_name(error)}).")])


def error_name(error: sqlite3.Error | OSError) -> str:
    """Return the fixed name of an error (`SQLITE_CORRUPT`, `EROFS`). The text may contain a path or a value."""
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _no_database(message: str) -> Finding:
    return problem("database", message, f"To find the cause, run `{commands.line('doctor')}`.", FindingCode.DATABASE)


def _storage_problems(rt: Runtime) -> Iterator[Finding]:
    try:
        floor, free = int(rt.settings.health.disk_floor_bytes), rt.files.free_bytes()
        if free < floor:
            left = f"The disk has {free // 1_000_000} MB left, which is below health.disk_floor_bytes."
            yield problem("disk", left, "Free some disk space.", FindingCode.DISK)
        rt.files.try_writing()
    except OSError as error:
        message = f"Files cannot be created in the media folder ({error_name(error)})."
        remedy = "Check that its disk is mounted and writable, and that the user of socialpub owns the folder."
        yield problem("media", message, remedy, FindingCode.MEDIA)


def _decoder(message: str) -> Finding:
    remedy = "Check that the machine has free memory and may start processes. Check the limits of the service."
    return problem("decoder", message, remedy, FindingCode.DECODER)


def worker_problems(db: Database, now: datetime) -> Iterator[Finding]:
    """Yield the problems of the worker and of the deliveries that it should have started."""
    age, late = heartbeat_age(db, now), find_overdue(db, now)
    if age is None:
        start = f"{commands.start('socialpub-worker')}."
        yield problem("worker", "The worker has never run.", start, FindingCode.WORKER_NEVER_RAN)
    elif abs(age) > HEARTBEAT_LATE_SECONDS:  # in the future if the clock was set back and no report followed
        yield _worker(f"The worker has not reported for {units.in_words(abs(age))}.", FindingCode.WORKER_LATE)
    elif (report := read_worker_report(db)) is not None and report.decoder_failure is not None:
        yield _decoder(f"The worker cannot decode media: {report.decoder_failure}")
    if late.count:
        were = units.count(late.count, "delivery is", "deliveries are")
        which = f"{'' if late.count == 1 else 'the oldest, '}to {registry.LABELS[late.provider]}"
        message = f"{were} overdue by more than two minutes: {which}, by {units.in_words(late.seconds)}."
        yield _worker(message, FindingCode.OVERDUE)


def _worker(message: str, code: FindingCode) -> Finding:
    read, restart = commands.log("socialpub-worker"), commands.restart("socialpub-worker")
    return problem("worker", message, f"Read {read}. {restart}.", code)


def describe_failing_tasks(db: Database, now: datetime) -> str | None:
    """Return the sentence about periodic tasks that fail or hang, or None. A worker that is late reports nothing."""
    age, report = heartbeat_age(db, now), read_worker_report(db)
    if report is None or not report.failing_tasks or age is None or age > HEARTBEAT_LATE_SECONDS:
        return None
    names = ", ".join(report.failing_tasks)
    return f"Periodic tasks of the worker have failed {TASK_FAILURES} times in a row, or hang: {names}."


def describe_clock_jump(db: Database, now: datetime) -> str | None:
    """Return the sentence about a recent change of the clock, or None."""
    jumped = clock_jumps.recent_jump(db, now)
    if jumped is None:
        return None
    direction = "forward" if jumped.jumped_by > 0 else "back"
    return (
        f"The clock was set {direction} by {units.in_words(abs(jumped.jumped_by))}, noticed at {jumped.jumped_at}. "
        "Scheduled times follow the new clock: posts later than publishing.max_lateness are not sent. "
        "The waits between attempts keep their length."
    )


def heartbeat_age(db: Database, now: datetime) -> float | None:
    heartbeat_at = appliance_state.get(db, appliance_state.HEARTBEAT)
    return None if heartbeat_at is None else (now - parse(heartbeat_at)).total_seconds()


def find_overdue(db: Database, now: datetime) -> profile_queue.Overdue:
    """Return the deliveries that should have started two minutes ago. During a pause, no delivery is overdue."""
    if appliance_state.paused_at(db):
        return profile_queue.NOT_OVERDUE
    return profile_queue.find_overdue(db, stamp(now))
