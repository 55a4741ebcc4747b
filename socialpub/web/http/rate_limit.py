"""Rate limits: the requests of a key, and the failures of an address (contract 1.10).

Fixed windows, counted per web process on the monotonic clock: changing the wall clock neither blocks nor admits.
"""

from collections import OrderedDict
from math import ceil

from socialpub.core.clock import Clock
from socialpub.core.errors import RateLimited
from socialpub.core.settings.schema import RateLimitSection
from socialpub.web.http import client_address
from socialpub.web.http.answer import Header

WRONG_PASSWORDS, PASSWORD_MINUTES = 10, 15
"""This many wrong passwords from one address, or from one known browser, in this many minutes (contract 9)."""

MAX_PLACES = 10_000
"""Addresses that are counted at a time: callers can invent addresses. Beyond that, the oldest window ends early."""


class RateLimit:
    """Allows `amount` of one kind per identifier and window."""

    def __init__(
        self, amount: int, clock: Clock, detail: str, max_identifiers: int | None = None, minutes: int = 1
    ) -> None:
        self._amount = amount
        self._seconds = minutes * 60
        self._clock = clock
        self._detail = detail
        self._max_identifiers = max_identifiers
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By identifier: when the window ends, and its count. All last equally long, so the first ends first."""

    def __len__(self) -> int:
        return len(self._windows)

    def count(self, identifier: str) -> tuple[Header, ...]:
        """Count one; return the headers that show what is left. Raises RateLimited, which carries them."""
        now = self._clock.monotonic()
        ends_at, counted = self._windows.get(identifier, (now, 0))
        if ends_at <= now:
            self._windows.pop(identifier, None)
            self._make_room(now)
            ends_at, counted = now + self._seconds, 0
        counted += 1
        self._windows[identifier] = ends_at, counted
        reset_seconds = max(1, ceil(ends_at - now))
        headers = (
            (b"ratelimit-limit", b"%d" % self._amount),
            (b"ratelimit-remaining", b"%d" % max(0, self._amount - counted)),
            (b"ratelimit-reset", b"%d" % reset_seconds),
        )
        if counted > self._amount:
            wait = f"{reset_seconds} seconds" if reset_seconds < 120 else f"{ceil(reset_seconds / 60)} minutes"
            raise RateLimited(
                f"{self._detail} Try again in {wait}.",
                retry_after_seconds=reset_seconds,
                headers=tuple((name.decode(), value.decode()) for name, value in headers),
            )
        return headers

    def forget(self, identifier: str) -> None:
        self._windows.pop(identifier, None)

    def _make_room(self, now: float) -> None:
        """Remove ended windows; each window is examined once in its life."""
        while self._windows:
            ends_at, _ = next(iter(self._windows.values()))
            if ends_at > now and (self._max_identifiers is None or len(self._windows) < self._max_identifiers):
                return
            self._windows.popitem(last=False)


class RateLimits:
    def __init__(self, settings: RateLimitSection, clock: Clock) -> None:
        failures = settings.failed_keys_per_minute
        self.keys = RateLimit(settings.requests_per_minute, clock, "This key sent too many requests.")
        self.failures = RateLimit(failures, clock, "This address sent too many wrong keys.", MAX_PLACES)
        self.guesses = RateLimit(failures, clock, "This address opened too many invalid links.", MAX_PLACES)
        self.passwords = RateLimit(
            WRONG_PASSWORDS,
            clock,
            "Too many wrong passwords were entered from this address.",
            MAX_PLACES,
            PASSWORD_MINUTES,
        )
        self.known_browsers = RateLimit(
            WRONG_PASSWORDS,
            clock,
            "Too many wrong passwords were entered in this browser.",
            MAX_PLACES,
            PASSWORD_MINUTES,
        )

    def count(self, key_id: str) -> tuple[Header, ...]:
        """Count one request of this key; return the headers of its answer. Raises RateLimited, which carries them."""
        return self.keys.count(key_id)

    def count_failure(self, address: str) -> None:
        """Count one failed authentication from this address. Raises RateLimited."""
        self.failures.count(client_address.network_of(address))

    def count_guess(self, address: str) -> None:
        """Count one unexpected return from a consent page, or one invalid sign-in link. Raises RateLimited."""
        self.guesses.count(client_address.network_of(address))

    def count_password(self, address: str, browser_id: str | None) -> None:
        """Count one password as wrong until it turns out to be right. Raises RateLimited.

        A known browser (`browser_id`) has its own count, which no other client at its address can use up.
        """
        limit, identifier = self._password_limit(address, browser_id)
        limit.count(identifier)

    def forgive_passwords(self, address: str, browser_id: str | None) -> None:
        """Forget the wrong passwords of a browser, or else of an address: the right one came."""
        limit, identifier = self._password_limit(address, browser_id)
        limit.forget(identifier)

    def _password_limit(self, address: str, browser_id: str | None) -> tuple[RateLimit, str]:
        if browser_id is not None:
            return self.known_browsers, browser_id
        return self.passwords, client_address.network_of(address)
