"""Faults that only tests script: calls that are held until the test releases them, and chaos."""

import asyncio
import inspect
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from socialpub.sandbox.faults import Fault, FaultScript
from socialpub.sandbox.messages import Headers, Reply, html_reply, json_reply

NETWORK_BUSY_PAGE = (
    "<!doctype html><html><head><title>{0}</title></head><body><center><h1>{0}</h1></center></body></html>"
)


async def wait_for(event: Any) -> None:
    """Wait for a `threading.Event` on another thread, and for one of the event loop on this."""
    if inspect.iscoroutinefunction(event.wait):
        await event.wait()
    else:
        await asyncio.get_running_loop().run_in_executor(None, event.wait)


class HeldFaultScript(FaultScript):
    def forever(self) -> "HeldFaultScript":
        return self.times(float("inf"))

    def fails_with(
        self,
        status: int,
        body: Any = None,
        headers: dict[str, str] | None = None,
        html: bool = False,
        after_effect: bool = False,
    ) -> "HeldFaultScript":
        """Respond with `status`. `body`: JSON data, text or bytes; None: the network's own. `html`: a CDN's page."""
        extra: Headers = list((headers or {}).items())

        def make() -> Reply:
            if html:
                reply = html_reply(status, body if isinstance(body, str) else NETWORK_BUSY_PAGE.format(status))
            elif body is None:
                reply = self._network.http_error(status, self._endpoint)
            elif isinstance(body, bytes | str):
                reply = Reply(status, body.encode() if isinstance(body, str) else body, "text/plain; charset=utf-8")
            else:
                reply = json_reply(status, body)
            reply.headers = [*reply.headers, *extra]
            return reply

        return self.put(Fault("answer", after_effect, make))

    def rate_limited(self, seconds: float, told_in: str = "window") -> "HeldFaultScript":
        """Respond 429. `told_in`: `window` (usual headers), `day` (X's 24-hour headers), `retry-after`, `nothing`."""
        return self.put(
            Fault("answer", make=lambda: self._network.rate_limited_reply(seconds, self._endpoint, told_in))
        )

    def blocks_until(self, event: Any, after_effect: bool = False) -> "HeldFaultScript":
        """Wait for `event.wait()` (a `threading.Event`, or one of the event loop), then continue as usual."""
        wait = partial(wait_for, event)
        return self.put(
            Fault("wait", True, before=None if after_effect else wait, after=wait if after_effect else None)
        )

    def credits_depleted(self, shape: int = 1) -> "HeldFaultScript":
        return self.put(Fault("answer", make=lambda: self._network.credits_reply(shape)))


# --- chaos -----------------------------------------------------------------------------------------------------------

CHAOS: dict[str, Callable[["HeldFaultScript"], FaultScript]] = {
    "unavailable": lambda up: up.fails_with(503),
    "unavailable_after_effect": lambda up: up.fails_with(503, after_effect=True),
    "internal_error": lambda up: up.fails_with(500, body={"errors": ["internal server error"]}),
    "bad_gateway_page": lambda up: up.fails_with(502, html=True),
    "timeout": lambda up: up.times_out_before_effect(),
    "timeout_after_effect": lambda up: up.times_out_after_effect(),
    "cut": lambda up: up.drops_connection_before_effect(),
    "cut_after_effect": lambda up: up.drops_connection_after_effect(),
    "garbage": lambda up: up.answers_garbage(),
    "rate_limited": lambda up: up.rate_limited(2),
}


class Chaos:
    """A source of random faults for a share of the calls, but never for the consent page.

    The same seed and order of calls give the same faults.
    """

    def __init__(self, network: Any, seed: int, rate: float) -> None:
        self._network = network
        self._rate = rate
        self._random = random.Random(seed)

    def draw(self, endpoint: str) -> Fault | None:
        if endpoint == "authorize" or self._random.random() >= self._rate:
            return None
        drawn: list[Fault] = []
        CHAOS[self._random.choice(tuple(CHAOS))](HeldFaultScript(drawn, self._network, endpoint))
        return drawn[0]
