"""What a check finds: one thing, what was found in a sentence, and what to do about it.

Readiness, the doctor and whoever tells the owner use the same findings, so that they cannot say different things.
"""

from dataclasses import dataclass
from enum import StrEnum


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
