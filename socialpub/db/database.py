"""The SQLite database: one writing connection per process (`Writer`), and one reading connection per thread.

A write returns its result after the commit, so a response never contains data that is not on the disk.
"""

import secrets
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from peewee import SqliteDatabase

from socialpub.core.clock import Clock
from socialpub.core.locks import WriteQueueLock
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, secret_key, upgrade
from socialpub.db.connection import Reader, Row, Tx
from socialpub.db.writer import Writer

T = TypeVar("T")
JOURNAL_BYTES = 64 * 1024 * 1024
"""The write-ahead log is cut to this size after a checkpoint."""
_MAIN_CACHE_KIB, _THREAD_CACHE_KIB = 2000, 250
"""The page caches of the writer and of the main thread, which has the event loop, and of every other thread.

SQLite never gives a cache back, and every thread that read once has one. A list that a thread reads needs no cache,
because the system caches the file as well. A short list takes half as long with 1 MB or more.
"""
_PRAGMAS = {
    "journal_mode": "wal",
    "journal_size_limit": JOURNAL_BYTES,
    "synchronous": "full",
    "foreign_keys": 0,
    "cache_size": -_MAIN_CACHE_KIB,
    "wal_autocheckpoint": 4000,
}
"""A checkpoint writes a page once, even if many commits changed the page: so every 4,000 pages (16 MB) instead of
SQLite's 1,000. With more pages, a checkpoint on a slow disk takes longer than another process waits for the lock."""
_NEW_FILE_PRAGMAS = {"auto_vacuum": "incremental"}
"""Settings that SQLite accepts only before the first write."""
REPLICATED_LOG_PAGES = 100_000
"""Litestream reads the log and then checkpoints it, at 1,000 pages and, by force, at 121,359. If socialpub did so
earlier, Litestream would copy the whole database. Without Litestream, socialpub does so at this number (400 MB)."""
REPLICATED_LOG_BYTES = REPLICATED_LOG_PAGES * 4096


class Database:
    """`media_url` signs the URL of a storage key and is an SQL function of every reader. In writes, the function
    returns the storage key itself, so no signed URL is stored."""

    def __init__(
        self,
        path: Path,
        run_dir: Path,
        clock: Clock,
        secrets: Secrets,
        *,
        busy_seconds: float = 5.0,
        media_url: Callable[[str], str] = str,
        replicated: bool = False,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.clock = clock
        self.busy_seconds = busy_seconds
        self._queue_lock = WriteQueueLock(run_dir)
        is_new = not path.exists() or path.stat().st_size == 0
        pragmas = (_NEW_FILE_PRAGMAS if is_new else {}) | _PRAGMAS
        if replicated:
            pragmas |= {"wal_autocheckpoint": REPLICATED_LOG_PAGES}
        # peewee opens the connection and runs the migrations. Its queries run on the connections of `db/connection.py`:
        # peewee has one connection per thread, but all writes share one connection.
        self._peewee = SqliteDatabase(
            str(path), pragmas=pragmas, timeout=busy_seconds, lock_type="IMMEDIATE", check_same_thread=False
        )
        self._local = threading.local()
        self._keeping = threading.Lock()
        self._media_url = media_url
        self._readers: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._peewee.connect()
        self._connection: sqlite3.Connection = self._peewee.connection()  # type: ignore[no-untyped-call]
        with upgrade.exclusive(run_dir):
            secret_key.check_key(self._connection, secrets)
            upgrade.apply_missing(self._peewee, run_dir, clock.now())
            secret_key.bind_key(self._connection, secrets)
        self._connection.row_factory = Row
        _register_media_url(self._connection, str)
        self._writer = Writer(self._connection, self._queue_lock, clock, busy_seconds)
        self.write, self.write_soon = self._writer.write, self._writer.write_soon

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def reader(self) -> Reader:
        """This thread's read-only connection."""
        reader: Reader | None = getattr(self._local, "reader", None)
        if reader is None:
            connection = sqlite3.connect(
                self.path,
                timeout=self.busy_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            connection.row_factory = Row
            in_main = threading.current_thread() is threading.main_thread()
            connection.execute(f"PRAGMA cache_size = -{_MAIN_CACHE_KIB if in_main else _THREAD_CACHE_KIB}")
            connection.execute("PRAGMA query_only = 1")
            _register_media_url(connection, self._media_url)
            self._keep(connection)
            reader = self._local.reader = Reader(connection)
        return reader

    def _keep(self, connection: sqlite3.Connection) -> None:
        """Store the connection with its thread, and close the connections of ended threads."""
        with self._keeping:
            ended = [known for known in self._readers if not known[0].is_alive()]
            self._readers = [known for known in self._readers if known[0].is_alive()]
            self._readers.append((threading.current_thread(), connection))
        for _, unused in ended:
            unused.close()

    # --- writing -----------------------------------------------------------------------------------------------------

    def follow_clock(self) -> None:
        """Shift the waits if the wall clock was set. Every write does this. A thread that only reads calls this
        method."""
        if self._writer.watch.was_set:
            self.write(lambda _: None)

    def close(self) -> None:
        """Finish the waiting writes, then close all connections."""
        self._writer.close()
        for _, connection in self._readers:
            connection.close()
        self._connection.close()
        self._peewee.close()
        self._queue_lock.close()


def _register_media_url(connection: sqlite3.Connection, media_url: Callable[[str], str]) -> None:
    connection.create_function("media_url", 1, lambda key: None if key is None else media_url(key))


def ensure_instance_id(db: Database) -> str:
    """Return the installation's id, which may be new."""
    known = appliance_state.get(db.reader, appliance_state.INSTANCE_ID)
    if known is None:
        # Two processes may start at the same time: the first stored id counts.
        new = secrets.token_hex(8)
        db.write(lambda tx: appliance_state.put_if_absent(tx, appliance_state.INSTANCE_ID, new))
        known = appliance_state.get(db.reader, appliance_state.INSTANCE_ID)
    assert known is not None
    return known


STEP_PAGES = 250
"""The number of pages that one write releases: 1 MB in about 20 ms."""
MANY_FREE_BYTES = 32 * 1024 * 1024
MANY_FREE_SHARE = 0.1
"""The limits below which free pages stay for new rows."""


@dataclass(frozen=True, slots=True)
class DatabasePages:
    size_bytes: int
    free_bytes: int

    @property
    def many_free(self) -> bool:
        return self.free_bytes >= max(MANY_FREE_BYTES, MANY_FREE_SHARE * self.size_bytes)


def read_pages(reader: Reader) -> DatabasePages:
    page_bytes, pages, free = (
        int(reader.value(f"PRAGMA {name}")) for name in ("page_size", "page_count", "freelist_count")
    )
    return DatabasePages(pages * page_bytes, free * page_bytes)


def release_pages(tx: Tx) -> None:
    """Release `STEP_PAGES` free pages."""
    # The statement releases one page per step, and Python's sqlite3 runs only one step of a statement without columns.
    for _ in range(STEP_PAGES):
        tx.execute("PRAGMA incremental_vacuum(1)")
