"""Huey's queues in `queue.db`: one for each network, and one for background work.

A task is a wake-up, which may be lost or repeated: the rows state what is due, and the reconciler enqueues it again. So
the file is never backed up, and a damaged file is replaced.
"""

import contextlib
import json
import os
import queue
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from huey import Huey
from huey.registry import Message
from huey.storage import SqliteStorage

from socialpub.core import logging
from socialpub.db import sqlite_errors

BACKGROUND = "background"
FALLBACK_SECONDS = 5
"""Each thread reads its queue after this time even without a datagram, because a socket file can be deleted."""

log = logging.get_logger(__name__)


class WaitingStorage(SqliteStorage):  # type: ignore[misc]  # Huey has no types
    """Huey's SQLite storage, whose `dequeue` waits for a datagram instead of polling.

    All threads of a queue read one socket, so the kernel wakes one thread for each task. `folder` is the descriptor of
    the folder of the sockets: the name of a socket has about a hundred characters at most.
    """

    blocking = True

    def __init__(self, name: str, filename: Path, folder: int) -> None:
        super().__init__(name, filename=str(filename), cache_mb=1)
        self.sql("PRAGMA synchronous = NORMAL")
        self._address = Path(f"/proc/self/fd/{folder}/{name}.sock")
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._receivers: list[socket.socket] = []
        """The last one is in use. Threads may still wait at the others."""
        self._inode = 0

    def listen(self) -> None:
        """Become the process that runs the tasks. Drop the tasks of earlier processes."""
        self.flush_queue()
        self._address.unlink(missing_ok=True)
        self._bind()

    def _bind(self) -> None:
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        receiver.bind(str(self._address))
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, FALLBACK_SECONDS.to_bytes(8, "little") + bytes(8))
        self._receivers.append(receiver)
        self._inode = self._address.stat().st_ino

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        """Add a task, unless an equal task waits: tasks with one id and equal arguments have equal bytes."""
        self.sql(
            """INSERT INTO task (queue, data, priority) SELECT :queue, :data, :priority WHERE NOT EXISTS (
                SELECT 1 FROM task WHERE queue = :queue AND data = :data)""",
            {"queue": self.name, "data": data, "priority": priority or 0},
            commit=True,
        )
        with contextlib.suppress(OSError):  # no worker runs, or a full socket already wakes every thread
            self._sender.sendto(b"1", str(self._address))

    def dequeue(self) -> bytes | None:
        data: bytes | None = super().dequeue()
        if data is None and self._receivers:
            try:
                self._receivers[-1].recv(1)
            except BlockingIOError:
                with self.lock:
                    if not self._address.exists():  # a second worker had replaced the socket, and has stopped
                        self._bind()
        return data  # after None, the thread asks again, unless the worker stops

    def wake_all(self) -> None:
        """End every wait, now and later."""
        for receiver in self._receivers:
            receiver.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        if self._receivers:
            with contextlib.suppress(FileNotFoundError):
                if self._address.stat().st_ino == self._inode:  # another worker may listen now
                    self._address.unlink()
        for end in (self._sender, *self._receivers):
            end.close()
        super().close()


class JsonSerializer:
    """Huey pickles tasks by default. A file in the data folder must not run code."""

    def serialize(self, message: Message) -> bytes:
        return json.dumps(message, separators=(",", ":")).encode()

    def deserialize(self, data: bytes) -> Message:
        return Message(*json.loads(data))


class Queues:
    """The queues and their two tasks: `deliver` a profile's due posts, and `run` a named background task.

    Every process enqueues. Only the worker has `actions`, which run the tasks.
    """

    def __init__(self, queue_file: Path, run_dir: Path, networks: Iterable[str]) -> None:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        _replace_if_damaged(queue_file)
        self._folder = os.open(run_dir, os.O_RDONLY | os.O_CLOEXEC)
        self._file = queue_file
        self._actions: dict[str, Callable[..., object]] = {}
        self.background = self._open(BACKGROUND)
        self.networks = {name: self._open(name) for name in networks}
        self._all = (self.background, *self.networks.values())
        self._run = self._declare(self.background, "run")
        self._deliver = {name: self._declare(huey, "deliver", name) for name, huey in self.networks.items()}
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_forever, name="wake-ups", daemon=True)
        self._sender.start()

    def notify(self, network: str, profile_id: str) -> None:
        """Enqueue a profile soon, on another thread. A failure never reaches the caller."""
        self._waiting.put(partial(self.deliver, network, profile_id))

    def run_soon(self, task: str) -> None:
        """Enqueue a background task soon, as `notify` does."""
        self._waiting.put(partial(self.run, task))

    def deliver(self, network: str, profile_id: str) -> None:
        """Enqueue a profile, unless it waits in its queue already. Raise sqlite3.Error."""
        self._deliver[network](profile_id, id=profile_id)

    def run(self, task: str) -> None:
        """Enqueue a background task, unless it waits already. Raise sqlite3.Error."""
        self._run(task, id=task)

    def listen(self, **actions: Callable[..., object]) -> None:
        """Run the tasks in this process: `deliver(network, profile_id)` and `run(task)`."""
        self._actions = actions
        for huey in self._all:
            huey.storage.listen()

    def act(self, name: str, *subject: str) -> None:
        self._actions[name](*subject)

    def wake_all(self) -> None:
        """End the wait of every thread, because the worker stops."""
        for huey in self._all:
            huey.storage.wake_all()

    def close(self) -> None:
        self._waiting.put(None)
        self._sender.join()
        for huey in self._all:
            huey.storage.close()
        os.close(self._folder)

    def _open(self, name: str) -> Huey:
        return Huey(
            name,
            results=False,
            serializer=JsonSerializer(),
            storage_class=WaitingStorage,
            filename=self._file,
            folder=self._folder,
        )

    def _declare(self, huey: Huey, name: str, *leading: str) -> Callable[..., Any]:
        def act(subject: str) -> None:
            self.act(name, *leading, subject)

        declared: Callable[..., Any] = huey.task(name=name)(act)
        return declared

    def _send_forever(self) -> None:
        while (enqueue := self._waiting.get()) is not None:
            try:
                enqueue()
            except sqlite3.Error as error:
                log.warning("the worker could not be notified; the reconciler takes over", reason=str(error))


def _replace_if_damaged(path: Path) -> None:
    """Remove a queue file that SQLite cannot read."""
    if not path.exists():
        return
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
    except sqlite3.DatabaseError as error:
        sound = sqlite_errors.primary_code(error) == sqlite3.SQLITE_BUSY
    if not sound:
        log.warning("the queue file was damaged and is replaced")
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
