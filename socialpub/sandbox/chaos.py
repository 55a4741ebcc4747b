"""Chaos: faults for a share of the calls, drawn by a seed that repeats them."""

import random
from collections.abc import Callable, Iterable

from socialpub.sandbox.faults import ErrorReplies, Fault, FaultScript

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
    """Draws a fault for a share of the calls; the same seed and the same order of calls give the same faults."""

    def __init__(
        self, network: ErrorReplies, seed: int, rate: float, kinds: Iterable[str] | None, endpoints: Iterable[str]
    ) -> None:
        self.kinds = tuple(CHAOS if kinds is None else kinds)
        unknown = [kind for kind in self.kinds if kind not in CHAOS]
        if unknown:
            raise ValueError(f"no such kind of chaos: {', '.join(unknown)} (known: {', '.join(CHAOS)})")
        self.endpoints = frozenset(endpoints)
        self._network = network
        self._rate = rate
        self._random = random.Random(seed)

    def draw(self, endpoint: str) -> Fault | None:
        if endpoint not in self.endpoints or self._random.random() >= self._rate:
            return None
        drawn: list[Fault] = []
        CHAOS[self._random.choice(self.kinds)](FaultScript(drawn, self._network))
        return drawn[0]
