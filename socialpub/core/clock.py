"""The clock, the form of stored instants, and ids, which begin with an instant.

Code asks a `Clock` for the time. Instants are aware UTC. Stored instants have exactly one form (`stamp`), so sorting
the text sorts the time. Ids are UUIDv7 in lower case (RFC 9562).
"""

import os
import struct
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall clock's time in UTC. It may jump in either direction."""
        ...

    def monotonic(self) -> float:
        """Return seconds that setting the clock does not change, including the time of a suspended machine.

        All processes with the same `boot` share this clock.
        """
        ...

    @property
    def boot(self) -> str:
        """The run of the machine that `monotonic` belongs to, or an empty text."""
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
    """Return `2026-11-21T11:30:00.000Z`: RFC 3339 in UTC with milliseconds."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds")[:23] + "Z"


def parse(text: str) -> datetime:
    """Return the instant of a `stamp`."""
    return datetime.fromisoformat(text)


def later(instant: datetime, span: timedelta) -> datetime:
    """Return the instant after this span, at most the last instant of a stamp: a post can be scheduled for that one."""
    try:
        return instant + span
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def after(text: str, seconds: float) -> str:
    """Return the stamp `seconds` later, at most the last one."""
    return stamp(later(parse(text), timedelta(seconds=seconds)))


_last_id_lock = threading.Lock()
_last_id_head = 0


def _random_numbers() -> Iterator[int]:
    """Yield random numbers of 64 bits. A call of the system for each takes longer than the rest of an id."""
    while True:
        yield from struct.unpack("256Q", os.urandom(256 * 8))


_random = _random_numbers()


def new_id(now: datetime) -> str:
    """Return an id above all earlier ones of this process, even when the clock stops or goes back."""
    global _last_id_head
    with _last_id_lock:
        # 48 bits of milliseconds and 12 of `rand_a` are one counter: the next id is at least one above the last.
        head = max(int(now.timestamp() * 1000) << 12, _last_id_head + 1)
        _last_id_head = head
        tail = next(_random) >> 2
    value = (head >> 12) << 80 | 0x7 << 76 | (head & 0xFFF) << 64 | 0b10 << 62 | tail
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parse_id(text: str) -> str | None:
    """Return the id in lower case, or None if `text` is not a UUID in the 8-4-4-4-12 form."""
    if len(text) != 36 or text[8] != "-" or text[13] != "-" or text[18] != "-" or text[23] != "-":
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
