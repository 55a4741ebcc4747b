"""The state that all requests of the web process share: `app.state`."""

import asyncio
from collections import Counter
from typing import Any

from socialpub.accounts.api_keys import LastUses
from socialpub.ops.health import Readiness
from socialpub.runtime import Runtime
from socialpub.web.http.client_address import TrustedProxies, UntrustedForwarders
from socialpub.web.http.limits import BodyMemory
from socialpub.web.http.long_poll import LongPoll
from socialpub.web.http.rate_limit import RateLimits


class WebState:
    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.long_poll = LongPoll(rt)
        self.rate_limits = RateLimits(rt.settings.rate_limit, rt.clock)
        self.trusted_proxies = TrustedProxies(rt.settings.proxies.trusted)
        self.untrusted_forwarders = UntrustedForwarders(rt, self.trusted_proxies)
        self.last_uses = LastUses(rt)
        self.body_memory = BodyMemory()
        self.responses: Counter[tuple[str, str, int]] = Counter()
        """The number of responses by documented path, method and status, for the metrics."""
        self.readiness: tuple[float, asyncio.Task[Readiness]] | None = None
        """The start of the last readiness check (monotonic), and the check."""
        self.metrics: tuple[float, tuple[bytes, str]] | None = None
        """The cached metrics: when they expire (monotonic), and their text with its content type."""
        self.reading_metrics = asyncio.Lock()
        self.password_lock, self.passwords_waiting = asyncio.Lock(), 0
        """The dashboard hashes one password at a time."""
        self.live_checks = asyncio.Semaphore(2)
        """Limits the checks of drafts in the dashboard: a text of 100,000 characters occupies a thread for a second."""
        self.running_keys: set[tuple[str, str]] = set()
        """The Idempotency-Keys of running requests, each with its API key."""
        self.long_work: set[asyncio.Future[Any]] = set()
        """Work of requests that a stop of the process cancels."""
        self.closed = False
        """The database is closed, and new requests get 503."""
