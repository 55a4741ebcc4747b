"""Faults that only tests script: calls that are held until the test releases them, and chaos."""

import asyncio
import inspect
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from socialpub.sandbox.faults import Fault, FaultScript


async def wait_for(event: Any) -> None:
    """Wait for a `threading.Event` on another thread, and for one of the event loop on this."""
    if inspect.iscoroutinefunction(event.wait):
        await event.wait()
    else:
        await asyncio.get_running_loop().run_in_executor(None, event.wait)


class HeldFaultScript(FaultScript):
    def blocks_until(self, event: Any, after_effect: bool = False) -> "HeldFaultScript":
        """Wait for `event.wait()` (a `threading.Event`, or one of the event loop), then continue as usual."""
        wait = partial(wait_for, event)
        return self.put(
            Fault("wait", True, before=None if after_effect else wait, after=wait if after_effect else None)
        )

    def credits_depleted(self, shape: int = 1) -> "HeldFaultScript":
        return self.put(Fault("answer", make=lambda: self._network.credits_reply(shape)))


# --- chaos -----------------------------------------------------------------------------------------------------------

CHAOS: dict[str, Callable[[FaultScript], FaultScript]] = {
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
        CHAOS[self._random.choice(tuple(CHAOS))](FaultScript(drawn, self._network, endpoint))
        return drawn[0]
