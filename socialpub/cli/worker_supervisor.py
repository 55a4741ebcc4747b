"""The worker beside the web server in one `serve`: started again when it dies, and gone when `serve` is."""

import os
import subprocess
import threading
from pathlib import Path

from socialpub.cli.child_process import ChildProcess
from socialpub.core import logging

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
SETTLED_SECONDS = 60.0
"""A worker that lived this long did not die of its start: the next one is not kept waiting."""

log = logging.get_logger("socialpub.serve")


class WorkerSupervisor:
    def __init__(self, config: Path | None) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._child: ChildProcess | None = None
        self._thread = threading.Thread(target=self._supervise, name="worker supervisor", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def request_stop(self) -> None:
        """Have the worker stop; returns at once."""
        with self._lock:
            self._stopping.set()
            if self._child is not None:
                self._child.request_stop()

    def stop(self) -> None:
        """Have the worker stop and wait until it has."""
        self.request_stop()
        if self._child is not None:
            self._child.stop()
        self._thread.join()

    def _supervise(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while (child := self._start_worker()) is not None:
            try:
                code = child.process.wait(SETTLED_SECONDS)
            except subprocess.TimeoutExpired:
                pause = FIRST_PAUSE_SECONDS
                code = child.process.wait()
            if self._stopping.is_set():
                return
            child.request_stop()
            log.error("the worker ended and is started again", how=describe_exit(code), seconds=pause)
            self._stopping.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def _start_worker(self) -> ChildProcess | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._child = ChildProcess("worker", config=self._config, env=dict(os.environ))
            return self._child


def describe_exit(code: int) -> str:
    """How a process ended: `exit code 1`, `signal 9`."""
    return f"signal {-code}" if code < 0 else f"exit code {code}"
