"""What every network is handed: the time, the ids and the journal of its world."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from socialpub.sandbox.journal import Journal

EPOCH_MS = 1288834974657
"""Ids count milliseconds since then in their upper bits, which makes them 19 digits today."""


class SandboxClock(Protocol):
    def now(self) -> datetime:
        """An aware instant."""
        ...


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


class NetworkClock:
    """One network's own time, which may differ from everybody else's."""

    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self.skew_seconds = 0.0

    def now(self) -> datetime:
        return self._clock.now() + timedelta(seconds=self.skew_seconds)


class IdSequence:
    def __init__(self, clock: SandboxClock) -> None:
        self._clock = clock
        self._last = 0

    def new(self) -> str:
        """19 digits."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        self._last = max(self._last + 1, (milliseconds - EPOCH_MS) << 22, 10**18 + 1000)
        return str(self._last)

    def reserve(self, used: str) -> None:
        """An id from before a restart; new ones come after it."""
        if used.isdecimal() and len(used) <= 19:
            self._last = max(self._last, int(used))


@dataclass(slots=True)
class SandboxContext:
    """One network's; the ids and the journal are the same for all."""

    clock: NetworkClock
    ids: IdSequence
    journal: Journal
    serving: bool = False
    """It listens on a port: what a network fetches by itself is fetched in the background, without being asked."""
