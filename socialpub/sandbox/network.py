"""What the three stand-ins share: the count of calls, the script of faults, the calls in flight."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from socialpub.sandbox.call import Answer
from socialpub.sandbox.faults import Chaos, Fault, Upcoming, take
from socialpub.sandbox.tokens import TokenBook

if TYPE_CHECKING:
    from socialpub.sandbox.world import World

KEPT_CALLS = 50_000


class Seen(NamedTuple):
    """A call that ended. `status` 0: the caller never got an answer."""

    endpoint: str
    status: int
    when: datetime
    """By the world's clock."""


class Network:
    name = ""
    endpoints: tuple[str, ...] = ()

    def __init__(self, world: "World") -> None:
        self.world = world
        self.calls: list[Seen] = []
        """The latest calls, oldest first; `counts` never forgets."""
        self.counts: Counter[str] = Counter()
        self.in_flight = 0
        self.held = 0
        """How many of them met a fault that never answers, and wait for their caller to go away."""
        self.most_in_flight = 0
        self.most_in_flight_of: dict[str, int] = {}
        """By account id: how many calls of one account ever ran side by side."""
        self._busy: dict[str, int] = {}
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}
        self._chaos: Chaos | None = None
        self.tokens = TokenBook(self.name, world)

    def next(self, endpoint: str) -> Upcoming:
        """Script what the next call of `endpoint` meets; several scripts wait their turn in order."""
        if endpoint not in self._faults:
            raise ValueError(f"{self.name} has no endpoint {endpoint!r} (known: {', '.join(self.endpoints)})")
        return Upcoming(self._faults[endpoint], self, endpoint)

    def chaos(
        self,
        seed: int,
        rate: float,
        *,
        kinds: Iterable[str] | None = None,
        endpoints: Iterable[str] | None = None,
    ) -> None:
        """From now on a share `rate` of the calls fails, drawn by `seed`. The consent page is left out unless named."""
        chosen = [one for one in self.endpoints if one != "authorize"] if endpoints is None else list(endpoints)
        unknown = [one for one in chosen if one not in self._faults]
        if unknown:
            raise ValueError(f"{self.name} has no endpoint {', '.join(unknown)} (known: {', '.join(self.endpoints)})")
        self._chaos = Chaos(self, seed, rate, kinds, chosen)

    def calm(self) -> None:
        """No chaos and no scripted fault any more."""
        self._chaos = None
        for queue in self._faults.values():
            queue.clear()

    def fault_for(self, endpoint: str) -> Fault | None:
        fault = take(self._faults[endpoint])
        if fault is None and self._chaos is not None:
            fault = self._chaos.draw(endpoint)
        return fault

    def began(self, account_id: str) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if account_id:
            busy = self._busy[account_id] = self._busy.get(account_id, 0) + 1
            self.most_in_flight_of[account_id] = max(busy, self.most_in_flight_of.get(account_id, 0))

    def ended(self, account_id: str, endpoint: str, status: int) -> None:
        self.in_flight -= 1
        if account_id:
            self._busy[account_id] -= 1
        self.counts[endpoint] += 1
        self.calls.append(Seen(endpoint, status, self.world.now()))
        if len(self.calls) > 2 * KEPT_CALLS:
            del self.calls[:-KEPT_CALLS]

    def statuses(self, endpoint: str) -> list[int]:
        """What the calls of one endpoint were answered, oldest first."""
        return [seen.status for seen in self.calls if seen.endpoint == endpoint]

    def shown(self) -> dict[str, Any]:
        """What the control room tells of its memory, as JSON data."""
        return {}

    def effects(self) -> dict[str, int]:
        """How many posts, pins and the like there are."""
        return {}

    # How the network words what a script asks for; each overrides what it does otherwise.

    def http_error(self, status: int) -> Answer:
        raise NotImplementedError

    def unauthorized_answer(self) -> Answer:
        raise NotImplementedError

    def rate_limited_answer(self, seconds: float, told_in: str) -> Answer:
        raise NotImplementedError

    def credits_answer(self, shape: int) -> Answer:  # noqa: ARG002
        raise ValueError(f"{self.name} sells no credits")

    def refusal_answer(self, endpoint: str, code: str) -> Answer:  # noqa: ARG002
        raise ValueError(f"{self.name} has no refusal named {code!r}")
