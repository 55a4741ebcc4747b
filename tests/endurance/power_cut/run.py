"""Load, with a capture every moment; some of the captures become what the appliance goes on from."""

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.accounts import ChaosAccounts
from tests.chaos.callers import ChaosCaller
from tests.chaos.promises import Promises
from tests.chaos.run import FAULTS, ChaosRun
from tests.chaos.samples import ChaosSamples
from tests.chaos.verdict import Verdict
from tests.e2e.installation import Installation
from tests.e2e.processes import Process
from tests.endurance.power_cut.image_disk import ImageDisk
from tests.endurance.power_cut.inspection import BeforeTheCut, inspect, key_of

CALLERS = 6
BETWEEN_SECONDS = (0.02, 0.35)


@dataclass
class PowerCutRun:
    """`captures` moments in each of `lives`; at the last moment of each but the last the power really fails."""

    installation: Installation
    images: Path
    seed: int
    captures: int
    lives: int
    violations: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    promises: Promises = field(default_factory=Promises)
    _processes: dict[str, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._disk = ImageDisk(self.images / "life0", self.installation.data)

    def play(self, say: Callable[[str], None]) -> Verdict:
        dice = random.Random(self.seed)
        self.installation.prepare()
        self.installation.sandbox()
        accounts = ChaosAccounts(self.installation)
        accounts.connect(more=False)
        self._start()
        samples = ChaosSamples(self.installation.folder, self.installation.fresh_caller())
        run = ChaosRun(self.installation, self.seed, 0)
        run.begin_faults(FAULTS)
        over = threading.Event()
        callers = [
            ChaosCaller(self.installation, accounts, samples, self.promises, n, self.seed, lambda: not over.wait(0.05))
            for n in range(CALLERS)
        ]
        for caller in callers:
            caller.start()
        for life in range(self.lives):
            for _ in range(self.captures):
                time.sleep(dice.uniform(*BETWEEN_SECONDS))
                self._capture()
                for caller in callers:
                    if caller.error is not None:
                        raise caller.error
            say(f"{self.done['captures']} moments, {len(self.promises.posts)} posts acknowledged")
            if life + 1 < self.lives:
                self._cut(self.images / f"life{life + 1}")
        over.set()
        for caller in callers:
            caller.join(90)
        for network in ("x", "tiktok", "pinterest"):
            self.installation.control(network).calm()
        run.wait_until_settled(accounts)
        verdict = Verdict(self.installation, self.installation.fresh_caller(), accounts.by_profile(), self.promises)
        verdict.reach()
        verdict.violations[:0] = self.violations
        return verdict

    def unmount(self) -> None:
        self._disk.unmount()

    def _start(self) -> None:
        self._processes = {role: self.installation.start(role) for role in ("web", "worker")}

    def _capture(self) -> None:
        copy = self.images / "copy"
        with self._suspended():
            before = self._before()
            captured = self._disk.capture(copy)
        if not captured:
            self.done["never quiet"] += 1
            return
        self.done["captures"] += 1
        missing = inspect(copy, self.images / "mounted", before)
        copy.unlink()
        self.violations += [f"moment {self.done['captures']}: {one}" for one in missing]

    def _cut(self, copy: Path) -> None:
        """The power fails; the machine comes up again with what its disk has."""
        with self._suspended():
            before = self._before()
            while not self._disk.capture(copy):
                time.sleep(0.01)
            for process in self._processes.values():
                process.kill(children=True)
        self._disk.unmount()
        self._disk.image.unlink()
        self.violations += inspect(copy, self.images / "mounted", before)
        self._disk = ImageDisk(copy, self.installation.data)
        self._start()
        self.done["power cuts"] += 1

    def _before(self) -> BeforeTheCut:
        return BeforeTheCut(
            frozenset(self.promises.posts), dict(self.promises.artifacts), key_of(self.installation.data)
        )

    @contextmanager
    def _suspended(self) -> Iterator[None]:
        """All of them, between two calls of the system each."""
        pids = [pid for process in self._processes.values() for pid in (process.pid, *process.children())]
        _signal(pids, signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], which: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)
