"""Rate-limit windows: fixed ones that begin with their first call, counted on the world's clock."""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class Window:
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


class Windows:
    def __init__(self) -> None:
        self._open: dict[Hashable, Window] = {}

    def count(self, key: Hashable, limit: int, seconds: float, now: float) -> Window:
        """Count one call. A refused call does not lengthen the window."""
        window = self._open.get(key)
        if window is None or now >= window.reset or now < window.reset - seconds:
            window = self._open[key] = Window(limit, 0, now + seconds)
        window.limit = limit
        window.used += 1
        return window
