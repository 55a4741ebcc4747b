"""How often a key may ask, and how often an address may fail to be one (contract 1.10).

Fixed windows of a minute, counted by a storage of the `limits` library that asks our clock and starts no thread. Each
web process counts for itself.
"""

from functools import lru_cache
from math import ceil

from limits import RateLimitItemPerMinute
from limits.storage import Storage

from socialpub.core.clock import Clock
from socialpub.core.errors import RateLimited
from socialpub.core.settings.sections import RateLimitSection
from socialpub.web.request import Header

_SECONDS = 60
_MOST_WINDOWS = 10_000
"""Beyond this many, those that are over are dropped: addresses are the caller's to invent."""


class Windows(Storage):
    """Counters that end. Time is the monotonic clock's: a wall clock that jumps lets nobody in or out."""

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._windows: dict[str, list[float]] = {}

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def hit(self, key: str, expiry: int, amount: int = 1) -> tuple[int, float]:
        """`incr` and `get_expiry` in one call: how often by now, and how many seconds are left."""
        now = self._clock.monotonic()
        window = self._windows.get(key)
        if window is None or window[0] <= now:
            if len(self._windows) >= _MOST_WINDOWS:
                self._windows = {key: window for key, window in self._windows.items() if window[0] > now}
            window = self._windows[key] = [now + expiry, 0]
        window[1] += amount
        return int(window[1]), window[0] - now

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        return self.hit(key, expiry, amount)[0]

    def get(self, key: str) -> int:
        window = self._windows.get(key)
        return 0 if window is None or window[0] <= self._clock.monotonic() else int(window[1])

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


@lru_cache(maxsize=_MOST_WINDOWS)
def _key_for(limit: RateLimitItemPerMinute, who: str) -> str:
    return limit.key_for(who)


class Rates:
    def __init__(self, settings: RateLimitSection, clock: Clock) -> None:
        self._windows = Windows(clock)
        self._keys = RateLimitItemPerMinute(settings.requests_per_minute, namespace="key")
        self._failures = RateLimitItemPerMinute(settings.failed_keys_per_minute, namespace="failure")
        self._guesses = RateLimitItemPerMinute(settings.failed_keys_per_minute, namespace="guess")

    def count(self, key_id: str) -> tuple[Header, ...]:
        """One request of this key: the headers of its answer. Raises RateLimited, which carries them itself."""
        return self._count(self._keys, key_id, "This key sends too many requests.")

    def count_failure(self, address: str) -> None:
        """One failed authentication from this address. Raises RateLimited."""
        self._count(self._failures, address, "Too many wrong keys come from this address.")

    def count_guess(self, address: str) -> None:
        """One answer to a consent that nobody here asked for. Raises RateLimited."""
        self._count(self._guesses, address, "Too many answers to unknown consents come from this address.")

    def _count(self, limit: RateLimitItemPerMinute, who: str, complaint: str) -> tuple[Header, ...]:
        used, left_seconds = self._windows.hit(_key_for(limit, who), _SECONDS)
        reset = max(1, ceil(left_seconds))
        headers = (
            (b"ratelimit-limit", b"%d" % limit.amount),
            (b"ratelimit-remaining", b"%d" % max(0, limit.amount - used)),
            (b"ratelimit-reset", b"%d" % reset),
        )
        if used > limit.amount:
            raise RateLimited(
                f"{complaint} Try again in {reset} seconds.",
                retry_after_seconds=reset,
                headers=tuple((name.decode(), value.decode()) for name, value in headers),
            )
        return headers
