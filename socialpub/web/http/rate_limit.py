"""Rate limits for the requests of a key and the failures of an IP address (contract 1.10).

Fixed windows per web process, on the monotonic clock: setting the system clock does not affect them.
"""

from collections import OrderedDict
from math import ceil

from socialpub.core.clock import Clock
from socialpub.core.errors import RateLimited
from socialpub.core.settings.schema import RateLimitSection
from socialpub.web.http import client_address

WRONG_PASSWORDS, PASSWORD_MINUTES = 10, 15
"""The limit for one IP address, and for one known browser (contract 9)."""

MAX_ADDRESSES = 10_000
"""A limit, because clients can have many IP addresses. Beyond this limit, the oldest window ends early."""


class RateLimit:
    def __init__(
        self, amount: int, clock: Clock, detail: str, max_identifiers: int | None = None, minutes: int = 1
    ) -> None:
        self._amount = amount
        self._seconds = minutes * 60
        self._clock = clock
        self._detail = detail
        self._max_identifiers = max_identifiers
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By identifier: the end of the window, and the count. The first window ends first."""

    def __len__(self) -> int:
        return len(self._windows)

    def count(self, identifier: str) -> tuple[tuple[bytes, bytes], ...]:
        """Count one request or failure, and return the rate limit headers. Raises RateLimited with these headers."""
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
        while self._windows:
            ends_at, _ = next(iter(self._windows.values()))
            if ends_at > now and (self._max_identifiers is None or len(self._windows) < self._max_identifiers):
                return
            self._windows.popitem(last=False)


class RateLimits:
    def __init__(self, settings: RateLimitSection, clock: Clock) -> None:
        failures = settings.failed_keys_per_minute
        self.keys = RateLimit(settings.requests_per_minute, clock, "This key sent too many requests.")
        self.failures = RateLimit(failures, clock, "This IP address sent too many wrong keys.", MAX_ADDRESSES)
        self.guesses = RateLimit(failures, clock, "This IP address opened too many invalid links.", MAX_ADDRESSES)
        from_address = "Too many wrong passwords were entered from this IP address."
        in_browser = "Too many wrong passwords were entered in this browser."
        self.passwords = RateLimit(WRONG_PASSWORDS, clock, from_address, MAX_ADDRESSES, PASSWORD_MINUTES)
        self.known_browsers = RateLimit(WRONG_PASSWORDS, clock, in_browser, MAX_ADDRESSES, PASSWORD_MINUTES)

    def count_failure(self, address: str) -> None:
        self.failures.count(client_address.client_network(address))

    def count_guess(self, address: str) -> None:
        """Count one unexpected return from a consent page, or one invalid setup link. Raises RateLimited."""
        self.guesses.count(client_address.client_network(address))

    def count_password(self, address: str, browser_id: str | None) -> None:
        """Count a password before it is checked. Raises RateLimited.

        A known browser (`browser_id`) has its own count, so other clients with the same IP address cannot lock it out.
        """
        limit, identifier = self._password_limit(address, browser_id)
        limit.count(identifier)

    def forgive_passwords(self, address: str, browser_id: str | None) -> None:
        """Reset the count of wrong passwords after a correct one."""
        limit, identifier = self._password_limit(address, browser_id)
        limit.forget(identifier)

    def _password_limit(self, address: str, browser_id: str | None) -> tuple[RateLimit, str]:
        if browser_id is not None:
            return self.known_browsers, browser_id
        return self.passwords, client_address.client_network(address)
