"""Rate-limit windows, counted on the world's clock: fixed ones that begin with their first call, and sliding ones."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class FixedWindow:
    limit: int
    used: int
    reset: float
    """Unix time at which the window ends."""

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)

    @property
    def over(self) -> bool:
        return self.used > self.limit


class FixedWindows:
    def __init__(self) -> None:
        self._open: dict[Hashable, FixedWindow] = {}

    def count(self, key: Hashable, limit: int, seconds: float, now: float) -> FixedWindow:
        """Count one call. A refused call does not lengthen the window."""
        window = self._open.get(key)
        if window is None or now >= window.reset or now < window.reset - seconds:
            window = self._open[key] = FixedWindow(limit, 0, now + seconds)
        window.limit = limit
        window.used += 1
        return window


class SlidingWindows:
    def __init__(self) -> None:
        self._calls: dict[Hashable, deque[float]] = {}

    def admits(self, key: Hashable, limit: int, seconds: float, now: float) -> bool:
        """Count one call, unless `limit` were made within the last `seconds`; a refused one does not count."""
        calls = self._calls.setdefault(key, deque())
        while calls and calls[0] <= now - seconds:
            calls.popleft()
        if len(calls) >= limit:
            return False
        calls.append(now)
        return True
