"""The calls of one network: how many, how they were answered, and how many run side by side."""

from collections import Counter
from datetime import datetime
from typing import NamedTuple

from socialpub.sandbox.context import SandboxClock

KEPT_CALLS = 50_000


class CallRecord(NamedTuple):
    """A call that ended. `status` 0: the caller never got an answer."""

    endpoint: str
    status: int
    when: datetime
    """By the world's clock."""


class CallLog:
    def __init__(self, clock: SandboxClock) -> None:
        self.calls: list[CallRecord] = []
        """The latest calls, oldest first; `counts` never forgets."""
        self.counts: Counter[str] = Counter()
        self.in_flight = 0
        self.held = 0
        """How many of them met a fault that never answers, and wait for their caller to go away."""
        self.most_in_flight = 0
        self.most_in_flight_of: dict[str, int] = {}
        """By account id: how many calls of one account ever ran side by side."""
        self._clock = clock
        self._in_flight_of: Counter[str] = Counter()

    def call_began(self, account_id: str) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        if account_id:
            self._in_flight_of[account_id] += 1
            most = self.most_in_flight_of.get(account_id, 0)
            self.most_in_flight_of[account_id] = max(self._in_flight_of[account_id], most)

    def call_ended(self, account_id: str, endpoint: str, status: int) -> None:
        self.in_flight -= 1
        if account_id:
            self._in_flight_of[account_id] -= 1
        self.counts[endpoint] += 1
        self.calls.append(CallRecord(endpoint, status, self._clock.now()))
        if len(self.calls) > 2 * KEPT_CALLS:
            del self.calls[:-KEPT_CALLS]

    def statuses(self, endpoint: str) -> list[int]:
        """What the calls of one endpoint were answered, oldest first."""
        return [call.status for call in self.calls if call.endpoint == endpoint]
