"""How often a key may ask, and how often an address may fail to be one (contract 1.10).

Fixed windows of a minute, counted by the `limits` library over a storage that reads our clock and starts no thread.
Each web process counts for itself.
"""

from math import ceil

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from socialpub.core.clock import Clock
from socialpub.core.errors import RateLimited
from socialpub.core.settings.sections import RateLimitSection
from socialpub.web.answer import Header

MOST_WINDOWS = 10_000
"""Beyond this many, those that have ended are dropped: callers can invent addresses."""


class RateWindows(Storage):
    """Counters that end. Time is the monotonic clock's: a wall clock that is set lets nobody in or out."""

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._windows: dict[str, tuple[float, int]] = {}
        """By key: when the window ends, and what was counted in it."""

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        now = self._clock.monotonic()
        ends_at, count = self._windows.get(key, (now, 0))
        if ends_at <= now:
            if len(self._windows) >= MOST_WINDOWS:
                self._windows = {key: window for key, window in self._windows.items() if window[0] > now}
            ends_at, count = now + expiry, 0
        self._windows[key] = ends_at, count + amount
        return count + amount

    def get(self, key: str) -> int:
        ends_at, count = self._windows.get(key, (0.0, 0))
        return count if ends_at > self._clock.monotonic() else 0

    def get_expiry(self, key: str) -> float:
        window = self._windows.get(key)
        return self._clock.monotonic() if window is None else window[0]

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        count = len(self._windows)
        self._windows.clear()
        return count

    def clear(self, key: str) -> None:
        self._windows.pop(key, None)


class PerMinute(RateLimitItemPerMinute):
    """So many hits a minute."""

    def key_for(self, *identifiers: bytes | str | float) -> str:
        # The strategy calls it three times a request. Made by the library, with amount and unit in it, the keys took 7
        # of the 57 microseconds that a read spends in the application.
        (identifier,) = identifiers
        assert isinstance(identifier, str)
        return f"{self.namespace}/{identifier}"


class RateLimits:
    def __init__(self, settings: RateLimitSection, clock: Clock) -> None:
        self._windows = RateWindows(clock)
        self._clock = clock
        self._limiter = FixedWindowRateLimiter(self._windows)
        self._keys = PerMinute(settings.requests_per_minute, namespace="key")
        self._failures = PerMinute(settings.failed_keys_per_minute, namespace="failure")
        self._guesses = PerMinute(settings.failed_keys_per_minute, namespace="guess")

    def count(self, key_id: str) -> tuple[Header, ...]:
        """Count one request of this key; returns the headers of its answer. Raises RateLimited, which carries them."""
        return self._count(self._keys, key_id, "This key sends too many requests.")

    def count_failure(self, address: str) -> None:
        """Count one failed authentication from this address. Raises RateLimited."""
        self._count(self._failures, address, "Too many wrong keys come from this address.")

    def count_guess(self, address: str) -> None:
        """Count one return from a consent page that was not asked for here. Raises RateLimited."""
        self._count(self._guesses, address, "Too many returns from unknown consent pages come from this address.")

    def _count(self, limit: PerMinute, identifier: str, detail: str) -> tuple[Header, ...]:
        allowed = self._limiter.hit(limit, identifier)
        reset_at, remaining = self._limiter.get_window_stats(limit, identifier)
        reset_seconds = max(1, ceil(reset_at - self._clock.monotonic()))
        headers = (
            (b"ratelimit-limit", b"%d" % limit.amount),
            (b"ratelimit-remaining", b"%d" % remaining),
            (b"ratelimit-reset", b"%d" % reset_seconds),
        )
        if not allowed:
            raise RateLimited(
                f"{detail} Try again in {reset_seconds} seconds.",
                retry_after_seconds=reset_seconds,
                headers=tuple((name.decode(), value.decode()) for name, value in headers),
            )
        return headers
