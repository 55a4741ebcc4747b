"""Scripted faults: what the next call of an endpoint meets.

A fault states whether the effect happens. "After effect" runs the real handler and then replaces its response. "Before
effect" does not touch the memory.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

from socialpub.sandbox.messages import Reply

GARBAGE = b'{"data":{"id":"19\x00\xff'


class ConnectionCut(Exception):
    """With `world.instant_faults`: the connection broke before a response."""


class Hang(Exception):
    """With `world.instant_faults`: no response comes until the caller's own deadline is over."""


@dataclass(slots=True)
class Fault:
    kind: Literal["answer", "hang", "cut", "trickle", "wait"]
    has_effect: bool = False
    make: Callable[[], Reply] | None = None
    """Makes the response of kind `answer` when it is needed: reset times count from then."""
    before: Callable[[], Awaitable[None]] | None = None
    after: Callable[[], Awaitable[None]] | None = None
    """For kind `wait`: what is awaited before or after the effect."""
    left: float = 1
    skip: int = 0


class FaultScript:
    """Queues one fault: `world.x.next("create_post").skipping(1).fails_with(503).times(2)`."""

    def __init__(self, queue: list[Fault], network: Any, endpoint: str) -> None:
        self._queue = queue
        self._network = network
        self._endpoint = endpoint
        self._skip = 0
        self._fault: Fault | None = None

    def put(self, fault: Fault) -> Self:
        """Queue a fault. Raise ValueError at once for an error response that the network does not have."""
        if fault.make is not None:
            fault.make()
        fault.skip = self._skip
        self._fault = fault
        self._queue.append(fault)
        return self

    def skipping(self, calls: int) -> Self:
        self._skip = calls
        return self

    def times(self, count: float) -> Self:
        if self._fault is None:
            raise ValueError("say first what happens, then how often: next(…).fails_with(503).times(2)")
        self._fault.left = count
        return self

    def fails_with(self, status: int, after_effect: bool = False) -> Self:
        """Respond with a plain error of the network."""
        return self.put(Fault("answer", after_effect, lambda: self._network.http_error(status, self._endpoint)))

    def times_out_before_effect(self) -> Self:
        return self.put(Fault("hang"))

    def times_out_after_effect(self) -> Self:
        return self.put(Fault("hang", has_effect=True))

    def drops_connection_before_effect(self) -> Self:
        return self.put(Fault("cut"))

    def drops_connection_after_effect(self) -> Self:
        return self.put(Fault("cut", has_effect=True))

    def answers_garbage(self, after_effect: bool = True, status: int = 200) -> Self:
        """Respond with a success whose body cannot be read."""
        return self.put(Fault("answer", after_effect, lambda: Reply(status, GARBAGE, "application/json")))

    def trickles(self, after_effect: bool = True) -> Self:
        """Send a byte every few seconds: every read succeeds, and the response never ends."""
        return self.put(Fault("trickle", after_effect))

    def rate_limited(self, seconds: float) -> Self:
        """Respond 429 with the usual headers."""
        return self.put(Fault("answer", make=lambda: self._network.rate_limited_reply(seconds, self._endpoint)))

    def refuses(self, code: str, after_effect: bool = False) -> Self:
        """Refuse with one of the network's `errors`. Raise ValueError for another code."""
        return self.put(Fault("answer", after_effect, lambda: self._network.refusal_reply(code, self._endpoint)))

    def unauthorized(self) -> Self:
        return self.refuses(self._network.unauthorized_code)


FAULTS = (
    "fails_with",
    "times_out_before_effect",
    "times_out_after_effect",
    "drops_connection_before_effect",
    "drops_connection_after_effect",
    "answers_garbage",
    "trickles",
    "rate_limited",
    "unauthorized",
    "refuses",
)
"""The faults that the control API accepts."""


def take_fault(queue: list[Fault]) -> Fault | None:
    if not queue:
        return None
    fault = queue[0]
    if fault.skip > 0:
        fault.skip -= 1
        return None
    fault.left -= 1
    if fault.left <= 0:
        queue.pop(0)
    return fault
