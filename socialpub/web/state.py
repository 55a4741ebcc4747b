"""What all requests of one web process share.

It knows neither routes nor endpoints, so that everything which answers a request can know it.
"""

import asyncio
from collections import Counter

from socialpub.accounts.api_keys import LastUses
from socialpub.ops.health import Readiness
from socialpub.runtime import Runtime
from socialpub.web.client_address import TrustedProxies
from socialpub.web.long_poll import LongPoll
from socialpub.web.rate_limit import RateLimits
from socialpub.web.untrusted_forwarders import UntrustedForwarders


class WebState:
    """The parts, and what this process counts and remembers."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.long_poll = LongPoll(rt)
        self.rate_limits = RateLimits(rt.settings.rate_limit, rt.clock)
        self.trusted_proxies = TrustedProxies(rt.settings.proxies.trusted)
        self.untrusted_forwarders = UntrustedForwarders(rt, self.trusted_proxies)
        self.last_uses = LastUses(rt)
        self.answers: Counter[tuple[str, str, int]] = Counter()
        """How many answers of each route, method and status there were, for the metrics."""
        self.readiness: tuple[float, asyncio.Task[Readiness]] | None = None
        """When the last look at readiness began (monotonic), and the look, which may still go on."""
        self.metrics: tuple[float, tuple[bytes, bytes]] | None = None
        """Until when (monotonic) the metrics that were read last count, and those as text with its content type."""
        self.reading_metrics = asyncio.Lock()
        self.closed = False
        """Set when the database is closed: what still arrives is answered with 503."""
