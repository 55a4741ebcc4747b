"""A child process that ends with its parent, however the parent ends.

The parent holds one end of a pipe and never writes. When the parent closes it or is killed, the child reads the end of
its standard input and stops as after SIGTERM.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

import click

STOP_SECONDS = 10.0
"""How long a child may take to stop cleanly. `serve` promises fifteen seconds in all. Recovery handles a call to a
network that takes longer."""

OPTION = "--end-with-parent"

end_with_parent_option = click.option(
    OPTION, "stop_seconds", type=float, hidden=True, help="End within SECONDS when standard input ends."
)


class ChildProcess:
    """`socialpub ARGUMENTS` as a child, in a session of its own: Ctrl-C reaches the parent alone."""

    def __init__(
        self,
        *arguments: str,
        config: Path | None = None,
        seconds: float = STOP_SECONDS,
        log: IO[bytes] | int | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self._seconds = seconds
        before = ["--config", str(config)] if config else []
        self.process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "socialpub", *before, *arguments, OPTION, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )

    def request_stop(self) -> None:
        """Ask it to stop, and return at once."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def stop(self) -> int:
        """Stop it, wait for its end and return its exit code."""
        self.request_stop()
        try:
            return self.process.wait(self._seconds + 2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def end_with_parent(stop_seconds: float | None) -> None:
    """End this child with its parent, after at most `stop_seconds`. None: there is no parent."""
    if stop_seconds is None:
        return
    threading.Thread(target=_watch_parent, args=(stop_seconds,), name="parent watch", daemon=True).start()


def _watch_parent(stop_seconds: float) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(stop_seconds)
    os._exit(0)
