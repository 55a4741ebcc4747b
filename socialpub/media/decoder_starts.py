"""Whether child processes that decode media can begin at all: what this process last met when it started one.

A machine without memory or processes left, or a service whose limits forbid too much, refuses every upload while all
else works. What is told here names no path: readiness shows it to anybody.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class _LastStart:
    failure: str | None = None
    lacks: tuple[str, ...] | None = None


_last = _LastStart()


def failure() -> str | None:
    """Why the last child could not begin; None when it could, or when none was wanted yet."""
    return _last.failure


def lacks() -> tuple[str, ...] | None:
    """What the kernel lacked to confine the last child (`decoder_confinement`); None when no child has answered."""
    return _last.lacks


def note_lacks(names: Iterable[str]) -> None:
    _last.lacks = tuple(names)


def note_failure(why: str) -> None:
    _last.failure = why


def note_success() -> None:
    _last.failure = None
