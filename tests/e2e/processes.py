"""Real processes: started as an owner starts them, and ended in every way a process can end.

Only what was started here is ever signalled, by its own id.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

GLANCE_SECONDS = 0.02

PROGRAM = (sys.executable, "-m", "socialpub")
_ROOT = str(Path(__file__).parents[2])
_RUN = f"import runpy, sys; sys.path.insert(0, {_ROOT!r}); runpy.run_module('tests.stand_ins', run_name='__main__')"
STAND_INS = (sys.executable, "-c", _RUN)
"""This works in every folder, also in another namespace."""
"""`socialpub` whose sandbox has the strict and changeable networks of the tests."""

DEFAULT_SIGNALS = ("/usr/bin/env", "--default-signal=HUP,INT,QUIT,TERM")
"""Makes a process heed these signals. `nohup` and scripts ignore some of them, and every child inherits that."""


class Process:
    """`socialpub ARGUMENTS`, in a session of its own. What it says goes to `log`.

    `within` is a command that becomes it; `program` is another installation's. With `terminal`, it is run in that one.
    `handed` are descriptors that it gets under the numbers that they have here.
    """

    def __init__(
        self,
        *arguments: str,
        log: Path,
        env: Mapping[str, str],
        within: Sequence[str] = (),
        program: Sequence[str] = PROGRAM,
        cwd: Path | None = None,
        terminal: int | None = None,
        handed: Sequence[int] = (),
    ) -> None:
        self.log = log
        self._begins_at = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*DEFAULT_SIGNALS, *within, *program, *arguments],
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=output if terminal is None else terminal,
                stderr=output if terminal is None else terminal,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                pass_fds=handed,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """Its output so far."""
        return self.log.read_bytes()[self._begins_at :].decode("utf-8", "replace")

    def children(self) -> list[int]:
        """The ids of the processes that it started. A child belongs to the thread that started it."""
        found: list[int] = []
        for task in Path(f"/proc/{self.pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
        return found

    def read_bytes(self) -> int:
        """The bytes that it has read so far, from files and connections."""
        (line,) = (one for one in Path(f"/proc/{self.pid}/io").read_text().splitlines() if one.startswith("rchar:"))
        return int(line.split()[1])

    def limit_memory(self, more_bytes: int) -> None:
        """Refuse the process more private memory than it has now and these bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmData:"))
        limit = int(line.split()[1]) * 1024 + more_bytes
        resource.prlimit(self.pid, resource.RLIMIT_DATA, (limit, limit))

    def kill(self, *, children: bool = False) -> None:
        """SIGKILL; nothing it would still do is done. With `children`, all of them in the same moment."""
        pids = [self.pid, *(self.children() if children else [])]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        until(lambda: not any(lives(pid) for pid in pids), f"{self.log.stem} and its children are gone")

    def stop(self, seconds: float = 90.0) -> int:
        """SIGTERM; its exit code once it has ended."""
        self.tell_to_stop()
        return self.wait(seconds)

    def tell_to_stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self, seconds: float = 90.0) -> int:
        """Its exit code. Raise AssertionError if it still runs after this number of seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.log.stem} still runs after {seconds:g} s:\n{self.output}") from None

    def suspend(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """However it is, have it gone: at the end of a test."""
        if self.running:
            self.kill(children=True)


def until(true: Callable[[], object], what: str, seconds: float = 120.0) -> None:
    """Poll until the condition is true. AssertionError when it does not become true at all."""
    give_up_at = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up_at, f"did not happen within {seconds:g} s: {what}"
        time.sleep(GLANCE_SECONDS)


def lives(pid: int) -> bool:
    """Whether it still runs; a child that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
