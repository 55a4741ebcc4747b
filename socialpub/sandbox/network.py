"""What every network has: its calls, its scripted faults, its share of the world's time, ids and journal."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from socialpub.sandbox.call_log import CallLog
from socialpub.sandbox.chaos import Chaos
from socialpub.sandbox.context import SandboxContext
from socialpub.sandbox.faults import Fault, FaultScript, take_fault
from socialpub.sandbox.reply import Reply
from socialpub.sandbox.tokens import TokenStore


class SandboxNetwork(CallLog, ABC):
    name: ClassVar[str]
    endpoints: ClassVar[tuple[str, ...]]

    def __init__(self, context: SandboxContext) -> None:
        super().__init__(context.clock)
        self.context = context
        self.tokens = TokenStore(context.clock, self.write)
        self._faults: dict[str, list[Fault]] = {endpoint: [] for endpoint in self.endpoints}
        self._chaos: Chaos | None = None
        self.sends_date = True
        """Answers carry a `Date`."""

    # --- the world's ---------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        return self.context.clock.now()

    @property
    def clock_skew_seconds(self) -> float:
        """How far the network's clock is ahead of everybody else's; below zero: behind."""
        return self.context.clock.skew_seconds

    @clock_skew_seconds.setter
    def clock_skew_seconds(self, seconds: float) -> None:
        self.context.clock.skew_seconds = seconds

    def timestamp(self) -> float:
        """Now, in Unix seconds."""
        return self.now().timestamp()

    def seconds_since(self, at: datetime) -> float:
        return (self.now() - at).total_seconds()

    def new_id(self) -> str:
        return self.context.ids.new()

    def reserve_id(self, used: str) -> None:
        """An id from before a restart."""
        self.context.ids.reserve(used)

    def write(self, kind: str, **facts: Any) -> None:
        """One line of the journal."""
        self.context.journal.write(self.name, kind, **facts)

    def replay(self, kind: str, facts: dict[str, Any]) -> None:
        """One line of the journal, read after a restart; `replay_<kind>` takes it. Unknown kinds are skipped."""
        replay = getattr(self, f"replay_{kind}", None) or getattr(self.tokens, f"replay_{kind}", None)
        if replay is not None:
            replay(**facts)

    # --- faults --------------------------------------------------------------------------------------------------

    def next(self, endpoint: str) -> FaultScript:
        """Script what the next call of `endpoint` meets; several scripts wait their turn in order."""
        self._refuse_unknown([endpoint])
        return FaultScript(self._faults[endpoint], self, endpoint)

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
        self._refuse_unknown(chosen)
        self._chaos = Chaos(self, seed, rate, kinds, chosen)

    def calm(self) -> None:
        """No chaos and no scripted fault any more."""
        self._chaos = None
        for queue in self._faults.values():
            queue.clear()

    def fault_for(self, endpoint: str) -> Fault | None:
        fault = take_fault(self._faults[endpoint])
        if fault is None and self._chaos is not None:
            fault = self._chaos.draw(endpoint)
        return fault

    def _refuse_unknown(self, endpoints: list[str]) -> None:
        unknown = [repr(one) for one in endpoints if one not in self._faults]
        if unknown:
            raise ValueError(f"{self.name} has no endpoint {', '.join(unknown)} (known: {', '.join(self.endpoints)})")

    # --- what each network words in its own way ------------------------------------------------------------------

    @abstractmethod
    def totals(self) -> dict[str, int]:
        """How many posts, pins and the like there are."""

    @abstractmethod
    def http_error(self, status: int) -> Reply: ...

    @abstractmethod
    def unauthorized_reply(self) -> Reply: ...

    @abstractmethod
    def rate_limited_reply(self, seconds: float, told_in: str) -> Reply: ...

    def credits_reply(self, shape: int) -> Reply:  # noqa: ARG002
        raise ValueError(f"{self.name} sells no credits")

    def refusal_reply(self, endpoint: str, code: str) -> Reply:  # noqa: ARG002
        raise ValueError(f"{self.name} has no refusal named {code!r}")
