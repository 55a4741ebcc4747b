"""The clock that is passed around, and the one form in which instants are written down.

Nothing reads the system's clock directly: tests pass a clock of their own, which they set by hand. Instants are aware
UTC, and wherever they are written down they have exactly one form (`stamp`), so that sorting text sorts time.
"""

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The two clocks that everything asks."""

    def now(self) -> datetime:
        """The wall clock's time, aware, UTC. It may jump in either direction."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that nobody sets and that counts a suspended machine's time, too. All processes share it
        while `boot` is the same."""
        ...

    @property
    def boot(self) -> str:
        """Names the run of the machine that `monotonic` belongs to; empty when that is not known."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)

    @property
    def boot(self) -> str:
        return _boot()


# What was slept through is time that passed; `time.monotonic` leaves it out on Linux.
_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def stamp(instant: datetime) -> str:
    """`2026-11-21T11:30:00.000Z`: RFC 3339, UTC, milliseconds (contract 1.2); in answers and in the database."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def parse(text: str) -> datetime:
    """The instant of a `stamp`."""
    return datetime.fromisoformat(text)


def after(text: str, seconds: float) -> str:
    """The stamp `seconds` later."""
    return stamp(parse(text) + timedelta(seconds=seconds))
