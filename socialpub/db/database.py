"""The SQLite database: one writing connection per process (`Writer`), and one reading connection per thread.

A write returns its result after the commit, so a response never contains data that is not on the disk.
"""

import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from socialpub.core.clock import Clock
from socialpub.core.locks import WriteQueueLock
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, secret_key, upgrade
from socialpub.db.connection import Database
from socialpub.db.writer import WRITER_THREAD, Writer

JOURNAL_BYTES = 64 * 1024 * 1024
"""The write-ahead log is cut to this size after a checkpoint."""
_MAIN_CACHE_KIB, _THREAD_CACHE_KIB = 2000, 250
"""The page caches of the writer and of the main thread, which has the event loop, and of every other thread.

SQLite never gives a cache back, and every thread that read once has one. A list that a thread reads needs no cache,
because the system caches the file as well. A short list takes half as long with 1 MB or more.
"""
_PRAGMAS: dict[str, str | int] = {
    "journal_mode": "wal",
    "journal_size_limit": JOURNAL_BYTES,
    "synchronous": "full",
    "cache_size": -_MAIN_CACHE_KIB,
    "wal_autocheckpoint": 4000,
}
"""A checkpoint writes a page once, even if many commits changed the page: so every 4,000 pages (16 MB) instead of
SQLite's 1,000. With more pages, a checkpoint on a slow disk takes longer than another process waits for the lock."""
_NEW_FILE_PRAGMAS: dict[str, str | int] = {"auto_vacuum": "incremental"}
"""Settings that SQLite accepts only before the first write."""
REPLICATED_LOG_PAGES = 100_000
"""Litestream reads the log and then checkpoints it, at 1,000 pages and, by force, at 121,359. If socialpub did so
earlier, Litestream would copy the whole database. Without Litestream, socialpub does so at this number (400 MB)."""


BUSY_SECONDS = 5.0
"""How long a write waits for another process. Then the caller gets 503.

A round of the worker has two writes, and each may wait for our lock and for SQLite's lock. The watchdog of systemd
must allow four waits.
"""


def is_replicated(path: Path) -> bool:
    """Return whether Litestream reads this database: its own folder is beside the database."""
    return path.with_name(f".{path.name}-litestream").exists()


class ApplianceDatabase(Database):
    """The appliance's database. Only the writer's thread can write.

    `media_url` signs the URL of a storage key and is an SQL function. In writes, the function returns the storage key
    itself, so no signed URL is stored.
    """

    def __init__(
        self,
        path: Path,
        run_dir: Path,
        clock: Clock,
        secrets: Secrets,
        *,
        media_url: Callable[[str], str] = str,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        pragmas = dict(_PRAGMAS)
        if is_replicated(path):
            pragmas["wal_autocheckpoint"] = REPLICATED_LOG_PAGES
        super().__init__(path, timeout=BUSY_SECONDS)
        self.path = path
        self._writer_pragmas = pragmas
        self._media_url = media_url
        self._connections: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._connections_lock = threading.Lock()
        self._queue_lock = WriteQueueLock(run_dir)
        is_new = not path.exists() or path.stat().st_size == 0
        database = Database(path, pragmas=(_NEW_FILE_PRAGMAS if is_new else {}) | pragmas, timeout=BUSY_SECONDS)
        with closing(database), upgrade.exclusive(run_dir):
            secret_key.check_key(database, secrets)
            upgrade.apply_missing(database, run_dir, secrets, clock.now())
            secret_key.bind_key(database, secrets)
        self._writer = Writer(self, self._queue_lock, clock, BUSY_SECONDS)
        self.write, self.write_soon = self._writer.write, self._writer.write_soon

    # --- reading -----------------------------------------------------------------------------------------------------

    def connect(self, reuse_if_open: bool = False) -> bool:
        """Open this thread's connection, which can write only in the writer's thread."""
        opened = super().connect(reuse_if_open)
        thread = threading.current_thread()
        if thread.name == WRITER_THREAD:
            for name, value in self._writer_pragmas.items():
                self.pragma(name, value)
            self.connection().create_function("media_url", 1, _storage_key)
            return opened
        self.pragma("cache_size", -(_MAIN_CACHE_KIB if thread is threading.main_thread() else _THREAD_CACHE_KIB))
        self.pragma("query_only", 1)
        self.connection().create_function("media_url", 1, self._sign)
        with self._connections_lock:
            ended = [opened_by for opened_by in self._connections if not opened_by[0].is_alive()]
            self._connections = [opened_by for opened_by in self._connections if opened_by[0].is_alive()]
            self._connections.append((thread, self.connection()))
        for _, unused in ended:
            unused.close()
        return opened

    def _sign(self, storage_key: str | None) -> str | None:
        return None if storage_key is None else self._media_url(storage_key)

    # --- writing -----------------------------------------------------------------------------------------------------

    def follow_clock(self) -> None:
        """Shift the waits if the wall clock was set. Every write does this. A thread that only reads calls this
        method."""
        if self._writer.watch.was_set:
            self.write(lambda _: None)

    def stop(self) -> None:
        """Finish the waiting writes, then close all connections."""
        self._writer.close()
        for _, connection in self._connections:
            connection.close()
        self.close()
        self._queue_lock.close()


def _storage_key(storage_key: str | None) -> str | None:
    return storage_key


def ensure_instance_id(db: ApplianceDatabase) -> str:
    """Return the installation's id, which may be new."""
    instance_id = appliance_state.get(db, appliance_state.INSTANCE_ID)
    if instance_id is None:
        # Two processes may start at the same time: the first stored id counts.
        new = secrets.token_hex(8)
        db.write(lambda tx: appliance_state.put_if_absent(tx, appliance_state.INSTANCE_ID, new))
        instance_id = appliance_state.get(db, appliance_state.INSTANCE_ID)
    assert instance_id is not None
    return instance_id


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


def read_pages(db: Database) -> DatabasePages:
    page_bytes, pages, free = (
        int(db.execute_sql(f"PRAGMA {name}").fetchone()[0]) for name in ("page_size", "page_count", "freelist_count")
    )
    return DatabasePages(pages * page_bytes, free * page_bytes)


def release_pages(tx: Database) -> None:
    """Release `STEP_PAGES` free pages."""
    # The statement releases one page per step, and Python's sqlite3 runs only one step of a statement without columns.
    for _ in range(STEP_PAGES):
        tx.execute_sql("PRAGMA incremental_vacuum(1)")
