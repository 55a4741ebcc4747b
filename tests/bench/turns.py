"""The order of measures: in alternation, after a pause, and in step with another checkout.

What disturbs the machine then disturbs all measures. Nothing is measured right after a flood of writes.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

QUIET_SECONDS = 0.25
BUSY_SHARE = 0.2
"""The share of one processor that all processes together use while they are idle."""
MAX_QUIET_SECONDS = 10.0


@dataclass
class Baton:
    """Two benches take turns: the one that has the baton measures, and the other waits.

    Both run the same lines in the same order, so they pass the baton equally often.
    """

    receives: int
    sends: int

    def pass_on(self) -> None:
        os.write(self.sends, b".")
        self.wait()

    def release(self) -> None:
        """Let the other bench end."""
        os.write(self.sends, b".")

    def wait(self) -> None:
        if os.read(self.receives, 1) == b"":
            raise SystemExit("The bench of the other checkout has ended.")


@dataclass
class Turns:
    """`cpu_seconds` returns the processor time of all measured processes so far."""

    rounds: int
    cpu_seconds: Callable[[], float]
    baton: Baton | None = None
    quiet_seconds: float = QUIET_SECONDS

    def take(self, *measures: Callable[[], Any], rounds: int | None = None) -> list[list[Any]]:
        """Run the measures A B A B …, each after a pause. Return the values of each measure."""
        values: list[list[Any]] = [[] for _ in measures]
        for _ in range(rounds or self.rounds):
            for found, measure in zip(values, measures, strict=True):
                self.rest()
                found.append(measure())
            if self.baton is not None:
                self.baton.pass_on()
        return values

    def once(self, measure: Callable[[], Any]) -> Any:
        return self.take(measure, rounds=1)[0][0]

    def rest(self) -> None:
        """Wait until the measured processes have been idle for a moment."""
        until = time.monotonic() + MAX_QUIET_SECONDS
        while time.monotonic() < until:
            before = self.cpu_seconds()
            time.sleep(self.quiet_seconds)
            if self.cpu_seconds() - before <= max(BUSY_SHARE * self.quiet_seconds, 0.02):
                return
