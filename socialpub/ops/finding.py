"""What the doctor finds: one thing checked, what was found in a sentence, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Allowed, and perhaps meant; or something that could not be checked."""
    PROBLEM = "problem"
    """Must be fixed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`subject` is what was checked; `remedy` is None only where nothing needs doing."""

    level: Level
    subject: str
    message: str
    remedy: str | None = None


def ok(subject: str, message: str) -> Finding:
    return Finding(Level.OK, subject, message)


def note(subject: str, message: str, remedy: str | None = None) -> Finding:
    return Finding(Level.NOTE, subject, message, remedy)


def problem(subject: str, message: str, remedy: str) -> Finding:
    return Finding(Level.PROBLEM, subject, message, remedy)
