"""A clock that moves only when a test says so."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 10, 12, 9, 0, tzinfo=UTC)


class HandClock:
    boot = "hand"

    def __init__(self, at: datetime = START) -> None:
        self._now = at
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def forward(self, seconds: float) -> None:
        """Time passes."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock; no time passes."""
        self._now += timedelta(seconds=seconds)
