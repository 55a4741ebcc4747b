"""What all stand-ins have: a clock that differs, calls counted by account, chaos, and fates of uploads."""

import math
from collections import Counter
from datetime import datetime, timedelta

from socialpub.sandbox.faults import Fault
from socialpub.sandbox.memory import SandboxContext
from socialpub.sandbox.messages import Headers, Reply, SandboxRequest
from socialpub.sandbox.network import SandboxNetwork
from tests.stand_ins.faults import Chaos, HeldFaultScript

KEPT_CALLS = 50_000


class StandIn(SandboxNetwork):
    fault_script = HeldFaultScript
    upload_host = ""
    """The https host for uploads. Empty: the sandbox's own."""

    def __init__(self, context: SandboxContext) -> None:
        self.clock_skew_seconds = 0.0
        """The difference between the network's clock and the world's clock. Negative: the network's clock is behind."""
        self.sends_date = True
        """Responses carry a `Date`."""
        self.most_in_flight_of: dict[str, int] = {}
        """By account id."""
        self._in_flight_of: Counter[str] = Counter()
        self.calls: list[tuple[str, int]] = []
        """Endpoint and status of the latest calls, oldest first. `counts` never forgets. Status 0: the caller got no
        response."""
        self._callers: dict[int, str] = {}
        self._chaos: Chaos | None = None
        super().__init__(context)

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.clock_skew_seconds)

    def date_header(self) -> Headers:
        return super().date_header() if self.sends_date else []

    def responded(self, endpoint: str, request: SandboxRequest, reply: Reply) -> Reply:
        if self.upload_host and b'"upload_url"' in reply.body:
            reply.body = reply.body.replace(request.base_url.encode(), f"https://{self.upload_host}".encode())
        return super().responded(endpoint, request, reply)

    # --- calls ---------------------------------------------------------------------------------------------------

    def call_began(self, request: SandboxRequest) -> None:
        super().call_began(request)
        token = self.tokens.bearer(request.bearer)
        account_id = self._callers[id(request)] = token.account_id if token is not None else ""
        if account_id:
            self._in_flight_of[account_id] += 1
            most = self.most_in_flight_of.get(account_id, 0)
            self.most_in_flight_of[account_id] = max(self._in_flight_of[account_id], most)

    def call_ended(self, request: SandboxRequest, endpoint: str, status: int) -> None:
        super().call_ended(request, endpoint, status)
        self._in_flight_of[self._callers.pop(id(request))] -= 1
        self.calls.append((endpoint, status))
        if len(self.calls) > 2 * KEPT_CALLS:
            del self.calls[:-KEPT_CALLS]

    def statuses(self, endpoint: str) -> list[int]:
        return [status for name, status in self.calls if name == endpoint]

    def rate_limited_reply(self, seconds: float, endpoint: str = "", told_in: str = "window") -> Reply:
        """Return a 429. `told_in` says where its wait is: in the window's headers, in `retry-after`, or nowhere."""
        reply = self.error_reply(self.limited_code, endpoint)
        match told_in:
            case "window":
                return super().rate_limited_reply(seconds, endpoint)
            case "retry-after":
                return reply.with_headers([("retry-after", str(math.ceil(seconds)))])
            case "nothing":
                return reply
        raise ValueError(f"told_in is one of window, retry-after, nothing, not {told_in!r}")

    # --- chaos ---------------------------------------------------------------------------------------------------

    def chaos(self, seed: int, rate: float) -> None:
        """Fail a share `rate` of the calls from now on, with the random `seed`."""
        self._chaos = Chaos(self, seed, rate)

    def calm(self) -> None:
        self._chaos = None
        super().calm()

    def fault_for(self, endpoint: str) -> Fault | None:
        fault = super().fault_for(endpoint)
        return self._chaos.draw(endpoint) if fault is None and self._chaos is not None else fault
