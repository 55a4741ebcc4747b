"""Huey's queue file. Nothing in it is worth more than a second of the reconciler: a damaged one is thrown away."""

import contextlib
import queue
import sqlite3
from pathlib import Path

from huey.storage import SqliteStorage

from socialpub.core import logging
from socialpub.worker import wakeup_message
from socialpub.worker.wakeup_socket import WakeupSocket

log = logging.get_logger("socialpub.doorbell")

_MOST_FETCHED = 500
"""Wake-ups that one transaction takes out. A worker that dies loses them, and the reconciler of the next one replaces
them."""
_MOST_WOKEN = 16
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
        for _ in tasks[:_MOST_WOKEN]:
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
                rows = cursor.execute(sql, (self.name, _MOST_FETCHED)).fetchall()
                cursor.executemany("DELETE FROM task WHERE id = ?", [(row[0],) for row in rows])
        except sqlite3.Error as error:
            log.warning("the queue file cannot be read; a restart replaces it", reason=str(error))
            return
        for _, data in rows:
            if wakeup_message.read(data) is None:
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
