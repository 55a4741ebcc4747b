"""The wake-up: Huey carries a delivery's id to the worker at once, and may lose it without harm."""

import contextlib
import json
import os
import queue
import socket
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huey import Huey
from huey.registry import Message
from huey.storage import SqliteStorage

from socialpub.core import ids, logging

# MERGED from worker/wakeup_socket.py: The datagram that wakes the worker: no process polls, and an idle appliance

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


# MERGED from worker/wakeup_message.py: What the queue file holds: a delivery's id as JSON, and nothing else. Readi

TASK_NAME = "socialpub.wakeup.deliver"
"""The one task, as Huey names it."""


def write_message(delivery_id: str) -> bytes:
    return json.dumps({"delivery": delivery_id}).encode()


def read_message(data: bytes) -> str | None:
    """The id; None for what no socialpub wrote."""
    try:
        found = json.loads(data)
    except (TypeError, ValueError, RecursionError):  # SQLite keeps a value of any type
        return None
    if not isinstance(found, dict) or found.keys() != {"delivery"} or not isinstance(found["delivery"], str):
        return None
    return ids.parse(found["delivery"])


class WakeupSerializer:
    """In the place of Huey's own, which pickles."""

    def serialize(self, message: Message) -> bytes:
        return write_message(*message.args)

    def deserialize(self, data: bytes) -> Message:
        """Raises ValueError."""
        delivery_id = read_message(data)
        if delivery_id is None:
            raise ValueError("this is no wake-up")
        return Message(id=None, name=TASK_NAME, args=(delivery_id,), kwargs={})


# MERGED from worker/queue_storage.py: Huey's queue file. Nothing in it is worth more than a second of the reconcil

log = logging.get_logger("socialpub.doorbell")

_MAX_FETCHED = 500
"""Wake-ups that one transaction takes out. A worker that dies loses them, and the reconciler of the next one replaces
them."""
_MAX_WOKEN = 16
"""Threads of the worker that one transaction wakes; each takes what there is until nothing is left."""


class QueueStorage(SqliteStorage):  # type: ignore[misc]
    """Huey's SQLite storage without its polling: a consumer thread sleeps until it is woken.

    What the worker puts in itself (the reconciler does) never touches the file: a queue that is damaged, full or gone
    costs the others their moment's start, and no delivery more than a second.
    """

    blocking = True

    def __init__(self, name: str, filename: str, wakeup_socket: WakeupSocket) -> None:
        self._socket = wakeup_socket
        self._own: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        super().__init__(name, filename=filename, cache_mb=1)

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        if self._socket.listens_here:
            self._own.put(data)
        else:
            super().enqueue(data, priority)
        self._socket.signal()

    def enqueue_all(self, tasks: list[bytes]) -> None:
        """Several in one transaction."""
        with self.db(commit=True) as cursor:
            cursor.executemany(
                "INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", [(self.name, data) for data in tasks]
            )
        for _ in tasks[:_MAX_WOKEN]:
            self._socket.signal()

    def dequeue(self) -> bytes | None:
        data = self._take()
        if data is None:
            self._socket.wait()
            data = self._take()
        return data

    # A wake-up is never put off, revoked or remembered, so Huey's questions about that need no file either.

    def read_schedule(self, ts: object) -> list[bytes]:  # noqa: ARG002
        return []

    def peek_many(self, keys: object) -> dict[str, bytes]:  # noqa: ARG002
        return {}

    def delete_data(self, key: object) -> bool:  # noqa: ARG002
        return False

    def _take(self) -> bytes | None:
        if self._own.empty():
            self._fetch()
        with contextlib.suppress(queue.Empty):
            return self._own.get_nowait()
        return None

    def _fetch(self) -> None:
        """Take out what other processes have put in, many wake-ups in one transaction."""
        try:
            if not self.sql("SELECT 1 FROM task WHERE queue = ? LIMIT 1", (self.name,), results=True):
                return  # without the lock that a write takes
            with self.db(commit=True) as cursor:
                sql = "SELECT id, data FROM task WHERE queue = ? ORDER BY id LIMIT ?"
                rows = cursor.execute(sql, (self.name, _MAX_FETCHED)).fetchall()
                cursor.executemany("DELETE FROM task WHERE id = ?", [(row[0],) for row in rows])
        except sqlite3.Error as error:
            log.warning("the queue file cannot be read; a restart replaces it", reason=str(error))
            return
        for _, data in rows:
            if read_message(data) is None:
                log.warning("something in the queue file was no wake-up of ours and is dropped")
            else:
                self._own.put(data)


def discard_foreign(storage: QueueStorage) -> None:
    """Empty what this version never reads: what a former one pickled, results, schedules, locks."""
    with contextlib.suppress(sqlite3.Error), storage.db(commit=True) as cursor:
        cursor.execute("DELETE FROM task WHERE queue <> ?", (storage.name,))
        for table in ("kv", "schedule", "counter"):
            cursor.execute(f"DELETE FROM {table}")


def replace_if_damaged(queue_file: Path) -> None:
    """Throw the file away when SQLite cannot read it."""
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


# MERGED from worker/wakeup.py: The wake-up: Huey carries a delivery's id to the worker at once, and may lose it wi

QUEUE_NAME = "wake-ups"
"""A former version pickled what it put into the queue `socialpub`: nobody takes anything out of that one any more."""


class HueyWakeup:
    """Wakes the worker through the queue file. Never fails its caller: the row is the truth, and the reconciler wakes
    the worker again.

    From another process than the worker it goes out on a thread of its own, together with those that wait: posts that
    share a commit share a wake-up, and no caller waits for it.
    """

    def __init__(self, queue_file: Path, run_dir: Path) -> None:
        replace_if_damaged(queue_file)
        self.socket = WakeupSocket(run_dir)
        self.huey = Huey(
            QUEUE_NAME, storage_class=QueueStorage, results=False, store_none=False, utc=True,
            serializer=WakeupSerializer(), filename=str(queue_file), wakeup_socket=self.socket,
        )  # fmt: skip
        discard_foreign(self.huey.storage)
        self._work: Callable[[str], None] = _no_worker_here

        def deliver(delivery_id: str) -> None:
            self._work(delivery_id)

        # Huey names a task by its module, too.
        deliver.__module__, _, name = TASK_NAME.rpartition(".")
        self._deliver: Any = self.huey.task(name=name)(deliver)
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_forever, name="wakeup", daemon=True)
        self._sender.start()

    def ring(self, delivery_id: str) -> None:
        if self.socket.listens_here:
            self._work(delivery_id)
        else:
            self._waiting.put(delivery_id)

    def _send_forever(self) -> None:
        while (delivery_id := self._waiting.get()) is not None:
            ids = [delivery_id]
            with contextlib.suppress(queue.Empty):
                while (more := self._waiting.get_nowait()) is not None:
                    ids.append(more)
                self._waiting.put(None)  # the end comes after what was sent before it
            try:
                self.huey.storage.enqueue_all([self.huey.serialize_task(self._deliver.s(one)) for one in ids])
            except sqlite3.Error as error:
                log.warning("the worker could not be woken; the reconciler does it", reason=str(error))

    def answer(self, work: Callable[[str], None]) -> None:
        """Have `work` run for every wake-up; only in the worker."""
        self._work = work

    def close(self) -> None:
        self._waiting.put(None)
        self._sender.join()
        self.socket.close()
        self.huey.storage.close()


def _no_worker_here(_delivery_id: str) -> None:
    raise RuntimeError("only the worker answers a wake-up")
