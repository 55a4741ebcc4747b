"""The clock, and the one form in which instants are stored.

Code asks a `Clock` for the time. Tests pass a clock that they set by hand. Instants are aware UTC. Stored instants have
exactly one form (`stamp`), so sorting the text sorts the time.
"""

import time
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    """The wall clock and the monotonic clock."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware, UTC. It may jump in either direction."""
        ...

    def monotonic(self) -> float:
        """Return seconds that no setting of the clock changes. They include the time of a suspended machine.

        All processes share this clock while `boot` is the same.
        """
        ...

    @property
    def boot(self) -> str:
        """The run of the machine that `monotonic` belongs to. Empty if it is not known."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)

    @property
    def boot(self) -> str:
        return _boot()


# On Linux, `time.monotonic` omits the time of a suspended machine.
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
    """Return the instant of a `stamp`."""
    return datetime.fromisoformat(text)


def after(text: str, seconds: float) -> str:
    """Return the stamp `seconds` later."""
    return stamp(parse(text) + timedelta(seconds=seconds))
