"""Interruptions of the processes: SIGKILL every few seconds, sometimes SIGSTOP or an ordinary stop."""

import random
import threading
from collections import Counter

from tests.e2e.installation import Installation

INTERRUPTIONS = {
    "worker killed": 6,
    "worker killed with its children": 3,
    "web killed": 5,
    "web killed with its children": 2,
    "both killed": 2,
    "worker suspended": 2,
    "web suspended": 1,
    "worker stopped": 1,
    "web stopped": 1,
}
SUSPENDED_SECONDS = (0.3, 3.0)
"""On the fast clock up to a minute: its heartbeat counts as lost by then, as do the leases on its rows."""


class Interruptions(threading.Thread):
    """Interrupt one process after the other until `end`. Start a killed process again at once."""

    def __init__(self, installation: Installation, dice: random.Random, every_seconds: tuple[float, float]) -> None:
        super().__init__(daemon=True, name="interruptions")
        self.done: Counter[str] = Counter()
        self.error: BaseException | None = None
        self._installation, self._dice, self._every = installation, dice, every_seconds
        self._over = threading.Event()
        self.processes = {role: installation.start(role) for role in ("web", "worker")}

    def run(self) -> None:
        try:
            while not self._over.wait(self._dice.uniform(*self._every)):
                what = self._dice.choices(list(INTERRUPTIONS), list(INTERRUPTIONS.values()))[0]
                self._interrupt(what)
                self.done[what] += 1
        except BaseException as error:
            self.error = error
            raise

    def _interrupt(self, what: str) -> None:
        first, _, how = what.partition(" ")
        roles = ("web", "worker") if first == "both" else (first,)
        if how == "suspended":
            process = self.processes[first]
            process.suspend()
            self._over.wait(self._dice.uniform(*SUSPENDED_SECONDS))
            process.go_on()
            return
        for role in roles:
            if how == "stopped":
                assert self.processes[role].stop() == 0, self.processes[role].output[-2000:]
            else:
                self.processes[role].kill(children=how.endswith("children"))
        started = {role: self._installation.begin(role) for role in roles}
        for role, process in started.items():
            self._installation.wait_until_up(process, role)
        self.processes |= started

    def end(self) -> None:
        self._over.set()
        self.join(120)
        assert not self.is_alive(), "an interruption hangs"
        if self.error is not None:
            raise self.error
