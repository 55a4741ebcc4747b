"""Wake-ups: send a delivery's id to the worker at once. A lost wake-up is harmless.

Other processes write ids to Huey's queue file and send a datagram. The worker reads the file only after the datagram.
The row is the source of truth: the reconciler repeats each lost wake-up.
"""

import contextlib
import os
import queue
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from huey.storage import SqliteStorage

from socialpub.core import logging
from socialpub.core.clock import parse_id
from socialpub.db import errors

QUEUE = "deliveries"
MAX_FETCHED = 500
"""The maximum number of wake-ups that one transaction removes. If the worker dies, the reconciler repeats them."""

log = logging.get_logger("socialpub.wakeup")


class QueueFile(SqliteStorage):  # type: ignore[misc]  # Huey has no types
    """Huey's SQLite storage. A row contains an id as text."""

    def __init__(self, path: Path) -> None:
        _replace_if_damaged(path)
        super().__init__(QUEUE, filename=str(path), cache_mb=1)

    def _create_connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection = super()._create_connection()
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def add(self, delivery_ids: list[str]) -> None:
        """Write several wake-ups in one transaction."""
        with self.db(commit=True) as cursor:
            rows = [(self.name, delivery_id.encode()) for delivery_id in delivery_ids]
            cursor.executemany("INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", rows)

    def take(self) -> tuple[list[str], bool]:
        """Remove and return some wake-ups, oldest first, and whether more remain. Drop invalid rows."""
        with self.db(commit=True) as cursor:
            rows = cursor.execute("SELECT id, data FROM task ORDER BY id LIMIT ?", (MAX_FETCHED,)).fetchall()
            cursor.executemany("DELETE FROM task WHERE id = ?", [(row[0],) for row in rows])
        found = [_read_id(data) for _, data in rows]
        if None in found:
            log.warning("an unknown entry was removed from the queue file")
        return [delivery_id for delivery_id in found if delivery_id is not None], len(rows) == MAX_FETCHED

    def clear(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.sql("DELETE FROM task", commit=True)


class HueyWakeup:
    """Wakes the worker. A failure never reaches the caller.

    In the worker, `notify` does not need a file. In other processes a thread sends, so posts of one commit share a
    wake-up.
    """

    def __init__(self, queue_file: Path, run_dir: Path) -> None:
        run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = QueueFile(queue_file)
        self._address = run_dir / "wakeup.sock"
        self._wake: Callable[[str], None] | None = None
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_forever, name="wakeup", daemon=True)
        self._sender.start()

    def notify(self, delivery_id: str) -> None:
        if self._wake is not None:
            self._wake(delivery_id)
        else:
            self._waiting.put(delivery_id)

    def listen(self, wake: Callable[[str], None]) -> None:
        """Call `wake` for each wake-up. The worker calls this, and its reconciler repeats earlier wake-ups."""
        self._file.clear()
        self._address.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with _short_name(self._address) as name:
            listener.bind(name)
        self._wake = wake
        threading.Thread(target=self._receive_forever, args=(listener, wake), name="wakeups", daemon=True).start()

    def close(self) -> None:
        self._waiting.put(None)
        self._sender.join()
        if self._wake is not None:
            self._address.unlink(missing_ok=True)
        self._file.close()

    def _send_forever(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            while (delivery_id := self._waiting.get()) is not None:
                delivery_ids = [delivery_id]
                with contextlib.suppress(queue.Empty):
                    while (more := self._waiting.get_nowait()) is not None:
                        delivery_ids.append(more)
                    self._waiting.put(None)  # stop after these wake-ups
                try:
                    self._file.add(delivery_ids)
                except sqlite3.Error as error:
                    log.warning("the worker could not be notified; the reconciler takes over", reason=str(error))
                    continue
                with contextlib.suppress(OSError), _short_name(self._address) as name:
                    sender.sendto(b"1", name)

    def _receive_forever(self, listener: socket.socket, wake: Callable[[str], None]) -> None:
        while listener.recv(1):
            more = True
            try:
                while more:
                    delivery_ids, more = self._file.take()
                    for delivery_id in delivery_ids:
                        wake(delivery_id)
            except sqlite3.Error as error:
                log.warning("the queue file cannot be read; a restart replaces it", reason=str(error))
            except Exception:
                log.error("a wake-up failed; the reconciler repeats it", exc_info=True)


@contextlib.contextmanager
def _short_name(path: Path) -> Iterator[str]:
    """Return a short name: the name of a Unix socket has about a hundred characters at most."""
    if len(str(path)) < 100:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _read_id(data: object) -> str | None:
    return parse_id(data.decode("ascii", "replace")) if isinstance(data, bytes) else None


def _replace_if_damaged(path: Path) -> None:
    """Remove a queue file that SQLite cannot read."""
    if not path.exists():
        return
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            sound = connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
    except sqlite3.DatabaseError as error:
        sound = errors.primary_code(error) == sqlite3.SQLITE_BUSY
    if not sound:
        log.warning("the queue file was damaged and is replaced")
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
