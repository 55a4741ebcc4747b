"""The SQLite database: one writing connection per process (`Writer`), and one reading connection per thread.

A write returns its result after the commit, so a response never contains data that is not on the disk.
"""

import asyncio
import contextlib
import math
import queue
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from peewee import SqliteDatabase

from socialpub.core import actor, logging
from socialpub.core.clock import Clock
from socialpub.core.errors import Unavailable
from socialpub.core.locks import WriteQueueLock
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, errors, secret_key, upgrade
from socialpub.db.clock_jumps import ClockWatch
from socialpub.db.connection import Reader, Row, Tx

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


# --- writing ---------------------------------------------------------------------------------------------------------

log = logging.get_logger("socialpub.store")

_MAX_PER_COMMIT = 200
_SLICE_SECONDS = 0.005
"""The approximate time for which writes may occupy the event loop without a pause."""
_LOOP_SECONDS = 0.1
"""An event loop that is stopped or busy for this time leaves its writes to the writer's thread."""


@dataclass(slots=True, eq=False)
class _Call:
    """A waiting write, and the future of its caller."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    future: "Future[Any] | asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop | None
    actor: str = field(default_factory=actor.current)
    """The caller's actor, because the writer's thread does not have an entry point."""
    result: Any = None
    error: BaseException | None = None
    tx: Tx | None = None


class _FailedAfterWriting(Exception):
    """A write failed and has changed rows, so the whole transaction must be rolled back."""


class Writer:
    """The writing connection of a process. Functions that wait together share one commit, which waits for the disk.

    If one of them fails after it changed rows, the transaction is rolled back, and all of them run again, each with a
    savepoint. So a function may run twice and must not have an effect outside of its transaction. Savepoints for every
    function would cost a third of the time, because SQLite copies each page that changes after a savepoint.
    """

    def __init__(
        self, connection: sqlite3.Connection, queue_lock: WriteQueueLock, clock: Clock, busy_seconds: float
    ) -> None:
        self._connection = connection
        self._queue_lock = queue_lock
        self._clock = clock
        self.watch = ClockWatch(clock)
        self._busy_seconds = busy_seconds
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._write_forever, name="writer", daemon=True)
        self._thread.start()

    def write(self, fn: Callable[..., T], *args: Any) -> T:
        """Run `fn(tx, *args)` in a transaction and wait until it is on the disk. Do not call this on the event loop.

        Raise the exception of `fn`, which undoes its writes, or Unavailable.
        """
        future: Future[Any] = Future()
        self._put(_Call(fn, args, future, None))
        result: T = future.result()
        return result

    def write_soon(self, fn: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Do the same for the event loop, which runs `fn` itself. `fn` must be short."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Call(fn, args, future, loop))
        return future

    def close(self) -> None:
        """Finish the waiting writes."""
        with self._closing:
            self._closed = True
            self._calls.put(None)
        self._thread.join()

    def _put(self, call: _Call) -> None:
        with self._closing:
            if self._closed:
                raise Unavailable("socialpub is stopping.")
            self._calls.put(call)

    def _write_forever(self) -> None:
        open_ = True
        while open_:
            call = self._calls.get()
            if call is None:
                return
            calls = [call]
            while len(calls) < _MAX_PER_COMMIT:
                try:
                    call = self._calls.get_nowait()
                except queue.Empty:
                    break
                if call is None:
                    open_ = False
                    break
                calls.append(call)
            self._commit(calls)
            _answer(calls)

    def _commit(self, calls: list[_Call]) -> None:
        """Run the calls in one transaction. Each call always ends with a result or an error."""
        try:
            if not self._queue_lock.acquire(self._busy_seconds):
                _fail(calls, Unavailable("Another process uses the database. Try again in a moment."))
                return
            try:
                try:
                    clock_tx = self._transact(calls, self._run)
                except _FailedAfterWriting:
                    if len(calls) == 1:
                        return
                    clock_tx = self._transact(calls, self._run_with_savepoint)
            finally:
                self._queue_lock.release()
        except BaseException as error:  # a write must never end the writer's thread
            _fail(calls, errors.as_unavailable(error) if isinstance(error, sqlite3.Error) else error)
            return
        for tx in (clock_tx, *(call.tx for call in calls if call.error is None and call.tx is not None)):
            for after, args in tx.calls_after_commit:
                try:
                    after(*args)
                except Exception:
                    # A callback cannot undo the commit and must not delay other callers.
                    log.error("a callback after a commit failed", exc_info=True)

    def _transact(self, calls: list[_Call], run: Callable[[_Call], None]) -> Tx:
        """Run the calls and commit them. Return the transaction that followed the clock."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            clock_tx = Tx(self._connection, self._clock.now())
            self.watch.follow(clock_tx)
            for loop, some in groupby(calls, key=lambda call: call.loop):
                if loop is None:
                    for call in some:
                        run(call)
                else:
                    _LoopRun(loop, some, run).finish()
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        return clock_tx

    def _run(self, call: _Call) -> None:
        before = self._connection.total_changes
        self._try(call)
        if call.error is not None and self._connection.total_changes != before:
            raise _FailedAfterWriting

    def _run_with_savepoint(self, call: _Call) -> None:
        self._connection.execute("SAVEPOINT one")
        self._try(call)
        if call.error is not None:
            self._connection.execute("ROLLBACK TO one")
        self._connection.execute("RELEASE one")

    def _try(self, call: _Call) -> None:
        tx = call.tx = Tx(self._connection, self._clock.now(), call.actor)
        call.error = None
        try:
            call.result = call.fn(tx, *call.args)
        except Exception as error:
            if not self._connection.in_transaction or errors.is_trouble(error):
                # SQLite ended the transaction or cannot continue: all writes of this commit are lost.
                raise sqlite3.OperationalError(str(error)) from error
            call.error = error


class _LoopRun:
    """Calls of an event loop inside a transaction of the writer's thread, which waits for them.

    On the loop, the calls do not compete with the requests for the interpreter lock at each statement. They run in
    slices, so that requests are answered between two slices.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, calls: Iterable[_Call], run: Callable[[_Call], None]) -> None:
        self._loop = loop
        self._waiting = deque(calls)
        self._run = run
        self._running = threading.Lock()
        self._ended = threading.Event()
        self._error: BaseException | None = None

    def finish(self) -> None:
        """Wait until the loop has run the calls, or run them here. Raise the error that ends the transaction."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._run_slice)
        while not self._ended.wait(0 if self._loop.is_closed() else _LOOP_SECONDS):
            self._run_until(math.inf)
        if self._error is not None:
            raise self._error

    def _run_slice(self) -> None:
        self._run_until(time.perf_counter() + _SLICE_SECONDS)
        if not self._ended.is_set():
            self._loop.call_soon(self._run_slice)

    def _run_until(self, deadline: float) -> None:
        with self._running:
            try:
                while self._waiting:
                    self._run(self._waiting.popleft())
                    if time.perf_counter() >= deadline:
                        break
            except BaseException as error:
                self._waiting.clear()
                self._error = error
            if not self._waiting:
                self._ended.set()


def _fail(calls: list[_Call], error: BaseException) -> None:
    for call in calls:
        call.error = call.error or error


def _answer(calls: list[_Call]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
    for call in calls:
        if call.loop is not None:
            loops.setdefault(call.loop, []).append(call)
        else:
            _settle([call])
    for loop, waiting in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, waiting)


def _settle(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():
            continue  # the caller canceled, but the write is done
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
