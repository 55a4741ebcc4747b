"""Collects what a long operation reports, step by step."""

from collections.abc import Callable
from contextlib import suppress

from socialpub.core import progress


class Watched:
    """`steps` has the steps in order, `fractions` the share that is done at each report of a step with a total."""

    def __init__(self, interrupt: Callable[[int, int, str], bool] = lambda *_: False) -> None:
        """`interrupt` gets each report. Where it returns True, the owner presses Ctrl-C."""
        self.steps: list[str] = []
        self.fractions: dict[str, list[float]] = {}
        self._interrupt = interrupt

    def __call__(self, done: int, total: int, step: str) -> None:
        if step not in self.steps:
            self.steps.append(step)
        if total:
            self.fractions.setdefault(step, []).append(done / total)
        if self._interrupt(done, total, step):
            raise KeyboardInterrupt

    def run(self, work: Callable[[], object]) -> "Watched":
        with suppress(KeyboardInterrupt), progress.report_to(self):
            work()
        return self

    def check(self) -> None:
        """Every step rises from 0 and ends at its total."""
        for step, shares in self.fractions.items():
            assert shares == sorted(shares), step
            assert (shares[0], shares[-1]) == (0, 1), step
