"""Whether the appliance works, and why not: readiness, the metrics, the doctor and notifications all ask here."""

import asyncio
import errno
import json
import resource
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from socialpub.core import commands, units
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import Unavailable
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.tables import holds
from socialpub.media.decoder import client
from socialpub.providers import registry
from socialpub.publishing import retention
from socialpub.publishing.delivery import profile_queue
from socialpub.runtime import Runtime

# MERGED from ops/finding.py: What a check finds: one thing, what was found in a sentence, and what to do about it.


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Allowed, and perhaps meant; or something that could not be checked."""
    PROBLEM = "problem"
    """Must be fixed."""


class FindingCode(StrEnum):
    """What makes the appliance unready, as programs tell it apart. A code that was once given keeps its meaning."""

    DATABASE = "databaseUnavailable"
    """The database takes no write, cannot be read, or does not answer."""
    DISK = "diskFull"
    """Less is free than `health.disk_floor_bytes`."""
    MEDIA = "mediaUnwritable"
    """No file can be made in the media folder."""
    DECODER = "decoderFailing"
    """No child process can be started in which media is decoded."""
    WORKER_NEVER_RAN = "workerNeverRan"
    WORKER_LATE = "workerLate"
    """No round of the worker's has gone well for half a minute."""
    OVERDUE = "overdue"
    """Deliveries that were due two minutes ago wait still."""
    HOUSEKEEPING_LATE = "housekeepingLate"
    """The worker delivers, but renews no tokens and cleans nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`subject` is what was checked; `remedy` is None only where nothing needs doing; `code` is set for what makes the
    appliance unready."""

    level: Level
    subject: str
    message: str
    remedy: str | None = None
    code: FindingCode | None = None

    @property
    def sentences(self) -> str:
        """What was found and what to do, in one text."""
        return self.message if self.remedy is None else f"{self.message} {self.remedy}"


def ok(subject: str, message: str) -> Finding:
    return Finding(Level.OK, subject, message)


def note(subject: str, message: str, remedy: str | None = None) -> Finding:
    return Finding(Level.NOTE, subject, message, remedy)


def problem(subject: str, message: str, remedy: str, code: FindingCode | None = None) -> Finding:
    return Finding(Level.PROBLEM, subject, message, remedy, code)


# MERGED from ops/process_figures.py: What this process uses of the machine, as the kernel tells it. Where there is

_SELF = Path("/proc/self")


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """Zero where the kernel does not tell."""

    memory_bytes: int = 0
    """What of it lies in memory, with what it shares with others."""
    cpu_seconds: float = 0.0
    threads: int = 0
    open_files: int = 0
    most_files: int = 0


def read_process_figures() -> ProcessFigures:
    """Those of now."""
    return ProcessFigures(
        memory_bytes=_memory_bytes(),
        cpu_seconds=round(time.process_time(), 3),
        threads=_count_entries("task"),
        open_files=_count_entries("fd"),
        most_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _memory_bytes() -> int:
    try:
        return int((_SELF / "statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _count_entries(folder: str) -> int:
    try:
        return sum(1 for _ in (_SELF / folder).iterdir())
    except OSError:
        return 0


# MERGED from ops/worker_report.py: What the worker says of itself with every heartbeat: what only its own process


@dataclass(frozen=True, slots=True)
class WorkerReport:
    figures: ProcessFigures
    housekeeping_seconds: float = 0.0
    """How long the oldest running periodic task has run."""
    decoder_failure: str | None = None
    """Why no child process can be started in which media is decoded."""
    decoder_lacks: tuple[str, ...] | None = None
    """What the kernel lacks to confine that process. None: no such process has answered yet."""


def beat(rt: Runtime, tx: Tx) -> None:
    """Note that a worker lives and can write. Readiness looks at the age of this."""
    appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp)
    oldest, now = min(list(rt.running_tasks.values()), default=None), rt.clock.monotonic()
    report = WorkerReport(
        read_process_figures(),
        0.0 if oldest is None else round(now - oldest),
        client.start_failure(),
        client.missing_decoders(),
    )
    appliance_state.put(tx, appliance_state.WORKER, json.dumps(asdict(report)))


def read_worker_report(reader: Reader) -> WorkerReport | None:
    """The last one; None when none was ever made. It is as old as the heartbeat."""
    written = appliance_state.get(reader, appliance_state.WORKER)
    if written is None:
        return None
    values = json.loads(written)
    return WorkerReport(**values | {"figures": ProcessFigures(**values["figures"])})


# MERGED from ops/housekeeping_report.py: When housekeeping last ran, and what the settings of `[retention]` have r


@dataclass(frozen=True, slots=True)
class HousekeepingReport:
    ran_at: str | None
    """When it last came to its end, in whichever process."""
    kept: dict[str, str]
    """What is not kept for ever, and how long it is, but for usage, which is a few rows a day."""
    due_posts: int
    """How many posts the next rounds remove."""

    @property
    def sentence(self) -> str:
        """What is removed by age, and how much of it is due."""
        if not self.kept:
            return "Posts and their history are kept for ever."
        parts = [f"{name} {age}" for name, age in self.kept.items()]
        said = f"Kept are {', '.join(parts)} (retention)"
        if "posts" not in self.kept:
            return f"{said}; posts for ever."
        due = {0: "no post is due.", 1: "1 post is removed next."}
        return f"{said}; {due.get(self.due_posts, f'{self.due_posts:,} posts are removed next.')}"


def note_housekept(rt: Runtime) -> None:
    """Everything that is due hourly has run."""
    rt.write(_note_housekept)


def _note_housekept(rt: Runtime, tx: Tx) -> None:
    appliance_state.put(tx, appliance_state.HOUSEKEPT_AT, tx.stamp)


def read_housekeeping(rt: Runtime) -> HousekeepingReport:
    """What there is to say of it. Counts posts, which may take a moment: not on the event loop."""
    kept = rt.settings.retention.model_dump(exclude={"usage"})
    return HousekeepingReport(
        appliance_state.get(rt.reader, appliance_state.HOUSEKEPT_AT),
        {name: units.duration(age) for name, age in kept.items() if age is not None},
        retention.count_expired_posts(rt),
    )


def check_housekeeping(rt: Runtime) -> Iterator[Finding]:
    """What the doctor says of it."""
    report = read_housekeeping(rt)
    ran = "has not run here yet" if report.ran_at is None else f"last ran at {report.ran_at}"
    yield ok("housekeeping", f"Housekeeping {ran}. {report.sentence}")


# MERGED from ops/health.py: Whether the appliance works, and why not: what readiness, the metrics and the doctor a

HEARTBEAT_SECONDS = 10.0
"""The worker reports this often that it works."""
HEARTBEAT_LATE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A worker that has not reported for so long does not work, whatever its process does."""
HOUSEKEEPING_LATE_SECONDS = 3600.0
"""A periodic task may ask networks that hang, and remove thousands of files. None takes this long."""

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


async def check_readiness(rt: Runtime) -> Readiness:
    """Whether the appliance works. What is said names no path and nobody's account: anybody may ask. A disk or database
    that hangs holds it up, and not the event loop."""
    written = await _try_write(rt)  # which also notices that the clock was set
    found = await asyncio.to_thread(check_without_writing, rt)
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


def check_without_writing(rt: Runtime) -> Readiness:
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
    failure = client.start_failure()
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
        message = f"The worker has not reported for {units.in_words(age)}."
        return problem("worker", message, _restart_worker(), FindingCode.WORKER_LATE)
    return None


def lateness(reader: Reader, now: datetime) -> Finding | None:
    """That deliveries should have started by now; None when none should."""
    late = overdue(reader, now)
    if not late.count:
        return None
    were = "1 delivery is" if late.count == 1 else f"{late.count} deliveries are"
    which = f"{'' if late.count == 1 else 'the oldest, '}to {registry.LABELS[late.provider]}"
    message = f"{were} overdue by more than two minutes: {which}, by {units.in_words(late.seconds)}."
    return problem("worker", message, _restart_worker(), FindingCode.OVERDUE)


def complaints(reader: Reader) -> Iterator[Finding]:
    """What a worker that reports says of itself."""
    report = read_worker_report(reader)
    if report is None:
        return
    if report.housekeeping_seconds > HOUSEKEEPING_LATE_SECONDS:
        message = (
            f"The worker's housekeeping has not come round for {units.in_words(report.housekeeping_seconds)}: "
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
        f"The clock was set {direction} by {units.in_words(abs(jumped.jumped_by))}, noticed at {jumped.jumped_at}. "
        "Scheduled times follow the clock as it is now: posts later than publishing.max_lateness are not sent. "
        "The waits of socialpub last as long as before."
    )


def heartbeat_age(reader: Reader, now: datetime) -> float | None:
    """Seconds since the worker last reported; None when it never did."""
    heartbeat_at = appliance_state.get(reader, appliance_state.HEARTBEAT)
    return None if heartbeat_at is None else (now - parse(heartbeat_at)).total_seconds()


def overdue(reader: Reader, now: datetime) -> profile_queue.Overdue:
    """Which deliveries should have started two minutes ago; none while publishing is paused."""
    if appliance_state.paused_at(reader):
        return profile_queue.NOT_OVERDUE
    return profile_queue.overdue(reader, stamp(now))
