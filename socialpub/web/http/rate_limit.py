"""How often a key may ask, and how often an address may fail to be one (contract 1.10).

Fixed windows of a minute, counted by the `limits` library over a storage that reads our clock and starts no thread.
Each web process counts for itself.
"""

from collections import OrderedDict
from math import ceil

from limits import RateLimitItemPerMinute
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from socialpub.core.clock import Clock
from socialpub.core.errors import RateLimited
from socialpub.core.settings.schema import RateLimitSection
from socialpub.web.http import client_address
from socialpub.web.http.answer import Header

WRONG_PASSWORDS, PASSWORD_MINUTES = 10, 15
"""This many wrong passwords from one address, or from one known browser, in this many minutes (contract 9)."""

MAX_PLACES = 10_000
"""Of so many the failures are counted at a time: callers can invent addresses. Whoever has more starts anew."""


class RateWindows(Storage):
    """Counters that end. Time is the monotonic clock's: a wall clock that is set lets nobody in or out."""

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock, most: int | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._most = most
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By key: when the window ends, and what was counted in it. All last equally long: the first ends first."""

    @property
    def base_exceptions(self) -> type[Exception]:
        return ValueError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        now = self._clock.monotonic()
        ends_at, count = self._windows.get(key, (now, 0))
        if ends_at <= now:
            self._windows.pop(key, None)
            self._make_room(now)
            ends_at, count = now + expiry, 0
        self._windows[key] = ends_at, count + amount
        return count + amount

    def _make_room(self, now: float) -> None:
        """Drop what has ended; each window is looked at once in its life."""
        while self._windows:
            ends_at, _ = next(iter(self._windows.values()))
            if ends_at > now and (self._most is None or len(self._windows) < self._most):
                return
            self._windows.popitem(last=False)

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
        return identifier


class RateLimit:
    """So many of one kind in a minute, or in several."""

    def __init__(self, amount: int, clock: Clock, detail: str, most: int | None = None, minutes: int = 1) -> None:
        self.item = PerMinute(amount, minutes)
        self.windows = RateWindows(clock, most)
        self._clock = clock
        self._detail = detail
        self._limiter = FixedWindowRateLimiter(self.windows)

    def count(self, identifier: str) -> tuple[Header, ...]:
        """Count one; returns the headers that say what is left. Raises RateLimited, which carries them."""
        allowed = self._limiter.hit(self.item, identifier)
        reset_at, remaining = self._limiter.get_window_stats(self.item, identifier)
        reset_seconds = max(1, ceil(reset_at - self._clock.monotonic()))
        headers = (
            (b"ratelimit-limit", b"%d" % self.item.amount),
            (b"ratelimit-remaining", b"%d" % remaining),
            (b"ratelimit-reset", b"%d" % reset_seconds),
        )
        if not allowed:
            raise RateLimited(
                f"{self._detail} Try again in {_span(reset_seconds)}.",
                retry_after_seconds=reset_seconds,
                headers=tuple((name.decode(), value.decode()) for name, value in headers),
            )
        return headers

    def forget(self, identifier: str) -> None:
        """What was counted for it counts no more."""
        self.windows.clear(self.item.key_for(identifier))


class RateLimits:
    def __init__(self, settings: RateLimitSection, clock: Clock) -> None:
        failures = settings.failed_keys_per_minute
        self.keys = RateLimit(settings.requests_per_minute, clock, "This key sends too many requests.")
        self.failures = RateLimit(failures, clock, "Too many wrong keys come from this address.", MAX_PLACES)
        self.guesses = RateLimit(
            failures, clock, "Too many links that lead to nothing come from this address.", MAX_PLACES
        )
        self.passwords = RateLimit(
            WRONG_PASSWORDS, clock, "Too many wrong passwords came from this address.", MAX_PLACES, PASSWORD_MINUTES
        )
        self.known_browsers = RateLimit(
            WRONG_PASSWORDS, clock, "Too many wrong passwords came from this browser.", MAX_PLACES, PASSWORD_MINUTES
        )

    def count(self, key_id: str) -> tuple[Header, ...]:
        """Count one request of this key; returns the headers of its answer. Raises RateLimited, which carries them."""
        return self.keys.count(key_id)

    def count_failure(self, address: str) -> None:
        """Count one failed authentication from this address. Raises RateLimited."""
        self.failures.count(client_address.network_of(address))

    def count_guess(self, address: str) -> None:
        """Count one return from a consent page that was not asked for here, or one link that lets nobody in. Raises
        RateLimited."""
        self.guesses.count(client_address.network_of(address))

    def count_password(self, address: str, browser_id: str | None) -> None:
        """Count one password as wrong until it turns out to be right. Raises RateLimited.

        A known browser (`browser_id`) has its own count, which no other client at its address can use up.
        """
        limit, identifier = self._password_count(address, browser_id)
        limit.count(identifier)

    def forgive_passwords(self, address: str, browser_id: str | None) -> None:
        """Forget the wrong passwords of a browser, or else of an address: the right one came."""
        limit, identifier = self._password_count(address, browser_id)
        limit.forget(identifier)

    def _password_count(self, address: str, browser_id: str | None) -> tuple[RateLimit, str]:
        if browser_id is not None:
            return self.known_browsers, browser_id
        return self.passwords, client_address.network_of(address)


def _span(seconds: int) -> str:
    """How long to wait, as people say it; never less than it is."""
    return f"{seconds} seconds" if seconds < 120 else f"{-(-seconds // 60)} minutes"
