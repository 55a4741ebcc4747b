"""Scripted faults: what the next call of an endpoint will meet.

The one thing that must stay true: a fault states whether the effect happens. "After effect" runs the real handler and
then spoils its answer; "before effect" leaves the memory untouched.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from socialpub.sandbox.reply import Headers, Reply, html_reply, json_reply

FOREVER = float("inf")
NETWORK_BUSY_PAGE = (
    "<!doctype html><html><head><title>{0}</title></head><body><center><h1>{0}</h1></center></body></html>"
)


class ConnectionCut(Exception):
    """With `world.instant_faults`: the connection broke before an answer."""


class Hang(Exception):
    """With `world.instant_faults`: no answer will ever come, the caller's own deadline is over."""


FaultKind = Literal["answer", "hang", "cut", "trickle", "block"]


@dataclass(slots=True)
class Fault:
    kind: FaultKind
    after_effect: bool = False
    make: Callable[[], Reply] | None = None
    """The answer of kind `answer`, made when it is needed (reset times count from then)."""
    event: Any = None
    """For kind `block`: something with `wait()`."""
    left: float = 1
    skip: int = 0


class ErrorReplies(Protocol):
    """How a network words the errors that a script can ask for."""

    def http_error(self, status: int) -> Reply: ...

    def unauthorized_reply(self) -> Reply: ...

    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply: ...

    def credits_reply(self, shape: int) -> Reply: ...

    def refusal_reply(self, endpoint: str, code: str) -> Reply: ...


class FaultScript:
    """Queues one fault: `world.x.next("create_post").skipping(1).fails_with(503).times(2)`."""

    def __init__(self, queue: list[Fault], network: ErrorReplies, endpoint: str = "") -> None:
        self._queue = queue
        self._network = network
        self._endpoint = endpoint
        self._skip = 0
        self._fault: Fault | None = None

    def _put(self, fault: Fault) -> Self:
        fault.skip = self._skip
        self._fault = fault
        self._queue.append(fault)
        return self

    def skipping(self, calls: int) -> Self:
        """Let that many calls through first."""
        self._skip = calls
        return self

    def times(self, count: float) -> Self:
        """Meet it that often instead of once."""
        if self._fault is None:
            raise ValueError("say first what happens, then how often: next(…).fails_with(503).times(2)")
        self._fault.left = count
        return self

    def forever(self) -> Self:
        return self.times(FOREVER)

    def fails_with(
        self,
        status: int,
        body: Any = None,
        headers: dict[str, str] | None = None,
        html: bool = False,
        after_effect: bool = False,
    ) -> Self:
        """Answer `status`. `body`: JSON data, text or bytes; None: the network's own words. `html`: the edge's page."""
        extra: Headers = list((headers or {}).items())

        def make() -> Reply:
            if html:
                reply = html_reply(status, body if isinstance(body, str) else NETWORK_BUSY_PAGE.format(status))
            elif body is None:
                reply = self._network.http_error(status)
            elif isinstance(body, bytes | str):
                reply = Reply(status, body.encode() if isinstance(body, str) else body, "text/plain; charset=utf-8")
            else:
                reply = json_reply(status, body)
            reply.headers = [*reply.headers, *extra]
            return reply

        return self._put(Fault("answer", after_effect, make))

    def fails_after_effect(self, status: int) -> Self:
        return self.fails_with(status, after_effect=True)

    def times_out_before_effect(self) -> Self:
        return self._put(Fault("hang"))

    def times_out_after_effect(self) -> Self:
        return self._put(Fault("hang", after_effect=True))

    def drops_connection_before_effect(self) -> Self:
        return self._put(Fault("cut"))

    def drops_connection_after_effect(self) -> Self:
        return self._put(Fault("cut", after_effect=True))

    def answers_garbage(self, after_effect: bool = True, status: int = 200) -> Self:
        """A success that nobody can read."""
        body = b'{"data":{"id":"19\x00\xff'
        return self._put(Fault("answer", after_effect, lambda: Reply(status, body, "application/json")))

    def trickles(self, after_effect: bool = True) -> Self:
        """One byte a while, for ever: every read succeeds, the answer never ends."""
        return self._put(Fault("trickle", after_effect))

    def rate_limited(self, seconds: float, told_in: str = "window") -> Self:
        """429. `told_in`: `window` (the usual headers), `day` (X's 24-hour headers), `retry-after`, `nothing`."""
        self._network.rate_limited_reply(seconds, told_in)
        return self._put(Fault("answer", make=lambda: self._network.rate_limited_reply(seconds, told_in)))

    def credits_depleted(self, shape: int = 1) -> Self:
        self._network.credits_reply(shape)
        return self._put(Fault("answer", make=lambda: self._network.credits_reply(shape)))

    def refuses(self, code: str, after_effect: bool = False) -> Self:
        """A refusal that the network knows by name (`world.tiktok.refusals`, `world.pinterest.refusals`), in its words
        and with its status; an unknown name is ValueError."""
        self._network.refusal_reply(self._endpoint, code)
        return self._put(Fault("answer", after_effect, make=lambda: self._network.refusal_reply(self._endpoint, code)))

    def unauthorized(self) -> Self:
        return self._put(Fault("answer", make=self._network.unauthorized_reply))

    def blocks_until(self, event: Any, after_effect: bool = False) -> Self:
        """Wait for `event.wait()` (a `threading.Event`, or one of the event loop), then go on as usual."""
        return self._put(Fault("block", after_effect, event=event))


FAULTS = (
    "fails_with",
    "fails_after_effect",
    "times_out_before_effect",
    "times_out_after_effect",
    "drops_connection_before_effect",
    "drops_connection_after_effect",
    "answers_garbage",
    "trickles",
    "rate_limited",
    "credits_depleted",
    "unauthorized",
    "refuses",
)
"""What can be asked for by name, over HTTP too."""


def take_fault(queue: list[Fault]) -> Fault | None:
    """The fault for this call, if its turn has come."""
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
