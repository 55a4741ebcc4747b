"""The worker beside the web server, in one `serve`: started anew when it dies, and gone when `serve` is."""

import os
import subprocess
import threading
from pathlib import Path

from socialpub.cli.child_process import Leashed
from socialpub.core import logging

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
SETTLED_SECONDS = 60.0
"""A worker that lived this long did not die of its start: the next one is not kept waiting."""

log = logging.get_logger("socialpub.serve")


class Companion:
    def __init__(self, config: Path | None) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._child: Leashed | None = None
        self._thread = threading.Thread(target=self._keep, name="companion", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def let_go(self) -> None:
        """Have the worker stop; returns at once."""
        with self._lock:
            self._stopping.set()
            if self._child is not None:
                self._child.let_go()

    def end(self) -> None:
        """Have the worker stop and wait until it has."""
        self.let_go()
        if self._child is not None:
            self._child.end()
        self._thread.join()

    def _keep(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while (child := self._begin()) is not None:
            try:
                code = child.process.wait(SETTLED_SECONDS)
            except subprocess.TimeoutExpired:
                pause = FIRST_PAUSE_SECONDS
                code = child.process.wait()
            if self._stopping.is_set():
                return
            child.let_go()
            log.error("the worker ended and is started again", how=describe(code), seconds=pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _begin(self) -> Leashed | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._child = Leashed("worker", config=self._config, env=dict(os.environ))
            return self._child


def describe(code: int) -> str:
    """How a process ended: `exit code 1`, `signal 9`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
