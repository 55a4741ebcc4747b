"""The datagram that wakes the worker: no process polls, and an idle appliance costs nothing."""

import contextlib
import os
import queue
import socket
import threading
from pathlib import Path

_WAIT_SECONDS = 5.0
"""How long a worker thread waits for a signal before it checks by itself whether it should end."""


class WakeupSocket:
    """`listen` makes this process the one that is woken."""

    def __init__(self, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = run_dir / "wakeup.sock"
        self._signals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._listener: socket.socket | None = None

    @property
    def listens_here(self) -> bool:
        """Whether this process is the one that is woken."""
        return self._listener is not None

    def signal(self) -> None:
        """Wake one waiting thread of the worker, wherever it is. Nothing happens when nobody listens."""
        if self._listener is not None:
            self._signals.put(None)
            return
        # No worker, or one that has plenty to do: the reconciler wakes it again.
        with contextlib.suppress(OSError):
            self._sender.sendto(b"1", self._address())

    def listen(self) -> None:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(self._address())
        self._listener = listener
        threading.Thread(target=self._receive, args=(listener,), name="wakeup", daemon=True).start()

    def wait(self) -> None:
        """Return at the next signal, or after a few seconds."""
        with contextlib.suppress(queue.Empty):
            self._signals.get(timeout=_WAIT_SECONDS)

    def close(self) -> None:
        if self._listener is not None:
            self._path.unlink(missing_ok=True)
        self._sender.close()

    def _receive(self, listener: socket.socket) -> None:
        while listener.recv(16):
            self._signals.put(None)

    def _address(self) -> str:
        """A Unix socket's name has about a hundred characters: a deep data folder is reached through its descriptor."""
        name = str(self._path)
        if len(name) < 100:
            return name
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        threading.Timer(1.0, os.close, (folder,)).start()
        return f"/proc/self/fd/{folder}/{self._path.name}"
