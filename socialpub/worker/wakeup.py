"""Huey as a doorbell: it carries a delivery's id to the worker at once, and may lose it without harm.

The queue lives in a file of its own that nobody backs up. Whoever rings also sends a datagram, so that no worker
polls: a post published now is taken up in milliseconds, and an idle appliance costs nothing.
"""

import contextlib
import os
import queue
import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huey import Huey
from huey.storage import SqliteStorage

from socialpub.core import logging

log = logging.get_logger("socialpub.doorbell")

_MOST_WOKEN = 16
"""Threads of the worker that one transaction of rings wakes; each takes what there is until nothing is left."""

_WAIT_SECONDS = 5.0
"""How long a worker thread waits for a ring before it looks by itself whether it should end."""


class Bell:
    """The datagram side. `listen` makes this process the one that hears it."""

    def __init__(self, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = run_dir / "doorbell.sock"
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._listener: socket.socket | None = None

    @property
    def is_here(self) -> bool:
        """Whether this process is the one that hears it."""
        return self._listener is not None

    def ring(self) -> None:
        """Wake one waiting thread of the worker, wherever it is. Nothing happens when nobody listens."""
        if self._listener is not None:
            self._rings.put(None)
            return
        # No worker, or one that has plenty to do: the sweep rings again.
        with contextlib.suppress(OSError):
            self._sender.sendto(b"1", self._address())

    def listen(self) -> None:
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(self._address())
        self._listener = listener
        threading.Thread(target=self._hear, args=(listener,), name="doorbell", daemon=True).start()

    def wait(self) -> None:
        """Until the next ring, at most a few seconds."""
        with contextlib.suppress(queue.Empty):
            self._rings.get(timeout=_WAIT_SECONDS)

    def close(self) -> None:
        if self._listener is not None:
            self._path.unlink(missing_ok=True)
        self._sender.close()

    def _hear(self, listener: socket.socket) -> None:
        while listener.recv(16):
            self._rings.put(None)

    def _address(self) -> str:
        """A Unix socket's name has about a hundred characters: a deep data folder is reached through its descriptor."""
        name = str(self._path)
        if len(name) < 100:
            return name
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        threading.Timer(1.0, os.close, (folder,)).start()
        return f"/proc/self/fd/{folder}/{self._path.name}"


class RungStorage(SqliteStorage):  # type: ignore[misc]
    """Huey's SQLite storage without its polling: a consumer thread sleeps until somebody rings.

    What the worker rings itself (the sweep does) never touches the file: a queue that is damaged, full or gone costs
    the others their moment's start, and no delivery more than a second.
    """

    blocking = True

    def __init__(self, name: str, filename: str, bell: Bell) -> None:
        self._bell = bell
        self._own: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        super().__init__(name, filename=filename, cache_mb=1)

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        if self._bell.is_here:
            self._own.put(data)
        else:
            super().enqueue(data, priority)
        self._bell.ring()

    def enqueue_all(self, rings: list[bytes]) -> None:
        """Several in one transaction."""
        with self.db(commit=True) as cursor:
            cursor.executemany(
                "INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", [(self.name, data) for data in rings]
            )
        for _ in rings[:_MOST_WOKEN]:
            self._bell.ring()

    def dequeue(self) -> bytes | None:
        data = self._take()
        if data is None:
            self._bell.wait()
            data = self._take()
        return data

    # A ring is never put off, revoked or remembered, so Huey's questions about that need no file either.

    def read_schedule(self, ts: object) -> list[bytes]:  # noqa: ARG002
        return []

    def peek_many(self, keys: object) -> dict[str, bytes]:  # noqa: ARG002
        return {}

    def delete_data(self, key: object) -> bool:  # noqa: ARG002
        return False

    def _take(self) -> bytes | None:
        with contextlib.suppress(queue.Empty):
            return self._own.get_nowait()
        try:
            data: bytes | None = super().dequeue()
        except sqlite3.Error as error:
            log.warning("the queue file cannot be read; a restart replaces it", reason=str(error))
            return None
        return data


class HueyDoorbell:
    """Rings through the queue file. Never fails its caller: the row is the truth, and the sweep rings again.

    A ring from another process than the worker goes out on a thread of its own, together with those that wait: posts
    that share a commit share a ring too, and no caller waits for it.
    """

    def __init__(self, queue_file: Path, run_dir: Path) -> None:
        self.bell = Bell(run_dir)
        replace_if_damaged(queue_file)
        self.huey = Huey(
            "socialpub", storage_class=RungStorage, results=False, store_none=False, utc=True,
            filename=str(queue_file), bell=self.bell,
        )  # fmt: skip
        self._work: Callable[[str], None] = _no_worker_here

        def deliver(delivery_id: str) -> None:
            self._work(delivery_id)

        self._deliver: Any = self.huey.task(name="deliver")(deliver)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._ringer = threading.Thread(target=self._ring_forever, name="ringer", daemon=True)
        self._ringer.start()

    def ring(self, delivery_id: str) -> None:
        if self.bell.is_here:
            self._deliver(delivery_id)
        else:
            self._waiting.put(delivery_id)

    def _ring_forever(self) -> None:
        while (delivery_id := self._waiting.get()) is not None:
            rings = [delivery_id]
            with contextlib.suppress(queue.Empty):
                while (more := self._waiting.get_nowait()) is not None:
                    rings.append(more)
                self._waiting.put(None)  # the end comes after what was rung before it
            try:
                self.huey.storage.enqueue_all([self.huey.serialize_task(self._deliver.s(ring)) for ring in rings])
            except sqlite3.Error as error:
                log.warning("the doorbell could not be rung", reason=str(error))

    def answer(self, work: Callable[[str], None]) -> None:
        """Have `work` run for every ring; only in the worker."""
        self._work = work

    def close(self) -> None:
        self._waiting.put(None)
        self._ringer.join()
        self.bell.close()
        self.huey.storage.close()


def _no_worker_here(_delivery_id: str) -> None:
    raise RuntimeError("only the worker answers the doorbell")


def replace_if_damaged(queue_file: Path) -> None:
    """Nothing in the queue is worth more than a second of the sweep: a damaged file is thrown away."""
    if not queue_file.exists():
        return
    try:
        connection = sqlite3.connect(queue_file)
        try:
            sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        sound = "locked" in str(error)
    if not sound:
        log.warning("the queue file was damaged and is replaced")
        for suffix in ("", "-wal", "-shm"):
            queue_file.with_name(queue_file.name + suffix).unlink(missing_ok=True)
