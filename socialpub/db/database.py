"""One SQLite file: one writing connection per process, and a reading one for every thread that asks.

A write is one function that runs on the writer's thread. Those that wait together share one commit, each under a
savepoint of its own: a commit waits for the disk, and twenty callers need not wait for it twenty times. What a write
returned reaches its caller only after that commit, so an answer never speaks of something that is not on the disk.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from peewee import SqliteDatabase

from socialpub.core import logging
from socialpub.core.clock import Clock, stamp
from socialpub.core.errors import Unavailable
from socialpub.db import migrate
from socialpub.db.locks import Turnstile

log = logging.get_logger("socialpub.store")

T = TypeVar("T")
Row = sqlite3.Row
Value = str | int | float | bytes | None

_PRAGMAS = {"journal_mode": "wal", "synchronous": "full", "foreign_keys": 0, "cache_size": -4000}
_MOST_PER_COMMIT = 200


class Tx:
    """One write in progress. `now` is the instant it began; everything it writes carries that one."""

    __slots__ = ("_after", "_connection", "now", "stamp")

    def __init__(self, connection: sqlite3.Connection, now: datetime) -> None:
        self._connection = connection
        self._after: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.now = now
        self.stamp = stamp(now)

    def execute(self, sql: str, params: Sequence[Value] = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, params)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        self._connection.executemany(sql, rows)

    def one(self, sql: str, params: Sequence[Value] = ()) -> Row | None:
        row: Row | None = self._connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Value] = ()) -> list[Row]:
        return self._connection.execute(sql, params).fetchall()

    def insert(self, table: str, **values: Value) -> None:
        self._connection.execute(_insert_sql(table, tuple(values)), tuple(values.values()))

    def update(self, table: str, row_id: str, **values: Value) -> None:
        """Set columns of the row with this `id`."""
        columns = ", ".join(f"{name} = ?" for name in values)
        self._connection.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), row_id))

    @property
    def reader(self) -> "Reader":
        """What this write has made so far, for those that only read."""
        return Reader(self._connection)

    def after_commit(self, call: Callable[..., object], *args: Any) -> None:
        """Have `call(*args)` run once this write is on the disk; never when it was undone."""
        self._after.append((call, args))


_inserts: dict[tuple[str, tuple[str, ...]], str] = {}


def _insert_sql(table: str, names: tuple[str, ...]) -> str:
    sql = _inserts.get((table, names))
    if sql is None:
        marks = ", ".join("?" * len(names))
        sql = _inserts[table, names] = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
    return sql


class Reader:
    """A read-only connection. Only for the thread that asked for it."""

    __slots__ = ("connection",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def one(self, sql: str, params: Sequence[Value] = ()) -> Row | None:
        row: Row | None = self.connection.execute(sql, params).fetchone()
        return row

    def all(self, sql: str, params: Sequence[Value] = ()) -> list[Row]:
        return self.connection.execute(sql, params).fetchall()

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.connection.execute(sql, params).fetchone()
        return None if row is None else row[0]

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])


class _Call:
    """A write that waits, and how its caller wants to hear of it."""

    __slots__ = ("args", "error", "fn", "future", "loop", "result", "tx")

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        future: "Future[Any] | asyncio.Future[Any]",
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self.fn = fn
        self.args = args
        self.future = future
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None
        self.tx: Tx | None = None


class Database:
    """`media_url` signs the address of a storage key; statements of every reader know it under that name. Inside a
    write it is the storage key itself: nothing signed is ever stored."""

    def __init__(
        self,
        path: Path,
        run_dir: Path,
        clock: Clock,
        *,
        busy_seconds: float = 5.0,
        media_url: Callable[[str], str] = str,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.clock = clock
        self.busy_seconds = busy_seconds
        self._turnstile = Turnstile(run_dir)
        # peewee opens the connection and runs the migrations; its models serve no rows. They were tried on `appliance`
        # and `artifact`: building a statement takes 60 to 170 µs of processor time where a prepared one takes 1 to 5,
        # neither file got shorter, and a model's connection is one per thread, while writes here share one.
        self._peewee = SqliteDatabase(
            str(path), pragmas=_PRAGMAS, timeout=busy_seconds, lock_type="IMMEDIATE", check_same_thread=False
        )
        self._local = threading.local()
        self._media_url = media_url
        self._readers: list[sqlite3.Connection] = []
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        with migrate.exclusive(run_dir):
            migrate.apply(self._peewee)
        self._connection: sqlite3.Connection = self._peewee.connection()  # type: ignore[no-untyped-call]
        self._connection.row_factory = sqlite3.Row
        _register_media_url(self._connection, str)
        self._writer = threading.Thread(target=self._write_forever, name="writer", daemon=True)
        self._writer.start()

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
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA cache_size = -4000")
            connection.execute("PRAGMA query_only = 1")
            _register_media_url(connection, self._media_url)
            self._readers.append(connection)
            reader = self._local.reader = Reader(connection)
        return reader

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, fn: Callable[..., T], *args: Any) -> T:
        """Run `fn(tx, *args)` in a transaction and wait until it is on the disk. Not from the event loop.

        Raises what `fn` raises (then nothing of it was kept), or Unavailable.
        """
        future: Future[Any] = Future()
        self._ask(_Call(fn, args, future, None))
        result: T = future.result()
        return result

    def write_soon(self, fn: Callable[..., T], *args: Any) -> Awaitable[T]:
        """The same for the event loop: an awaitable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._ask(_Call(fn, args, future, loop))
        return future

    def _ask(self, call: _Call) -> None:
        with self._closing:
            if self._closed:
                raise Unavailable("socialpub is stopping.")
            self._calls.put(call)

    def close(self) -> None:
        """Let the waiting writes end, then close everything."""
        with self._closing:
            self._closed = True
            self._calls.put(None)
        self._writer.join()
        for connection in self._readers:
            connection.close()
        self._connection.close()
        self._peewee.close()
        self._turnstile.close()

    def _write_forever(self) -> None:
        open_ = True
        while open_:
            call = self._calls.get()
            if call is None:
                return
            calls = [call]
            while len(calls) < _MOST_PER_COMMIT:
                try:
                    call = self._calls.get_nowait()
                except queue.Empty:
                    break
                if call is None:
                    open_ = False
                    break
                calls.append(call)
            self._commit(calls)
            _tell(calls)

    def _commit(self, calls: list[_Call]) -> None:
        """Run the calls in one transaction. Every one of them ends with a result or an error, whatever happens."""
        try:
            if not self._turnstile.enter(self.busy_seconds):
                _fail(calls, Unavailable("Another process keeps the database busy. Try again in a moment."))
                return
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                for call in calls:
                    self._run(call)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._turnstile.leave()
        except BaseException as error:  # the writer's thread outlives whatever a write does
            _fail(calls, _as_unavailable(error) if isinstance(error, sqlite3.Error) else error)
            return
        for call in calls:
            if call.error is None and call.tx is not None:
                for after, args in call.tx._after:
                    _attempt(after, args)

    def _run(self, call: _Call) -> None:
        tx = call.tx = Tx(self._connection, self.clock.now())
        self._connection.execute("SAVEPOINT one")
        try:
            call.result = call.fn(tx, *call.args)
        except Exception as error:
            if not self._connection.in_transaction or is_trouble(error):
                # SQLite gave up the whole transaction, or cannot go on in it: nothing of this commit can be kept.
                raise sqlite3.OperationalError(str(error)) from error
            self._connection.execute("ROLLBACK TO one")
            call.error = error
        self._connection.execute("RELEASE one")


def _register_media_url(connection: sqlite3.Connection, media_url: Callable[[str], str]) -> None:
    connection.create_function("media_url", 1, lambda key: None if key is None else media_url(key))


def is_trouble(error: BaseException) -> bool:
    """Whether this is the disk's or the lock's fault rather than the statement's."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, sqlite3.Error) and code is not None and (code & 0xFF) in _TROUBLE


_TROUBLE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
}


def _as_unavailable(error: sqlite3.Error) -> Exception:
    text = str(error)
    if "full" in text:
        return Unavailable("The disk is full. Make room and send the request again.", retry_after_seconds=60)
    if "locked" in text or "busy" in text:
        return Unavailable("Another process keeps the database locked. Try again in a moment.")
    if "disk I/O" in text or "readonly" in text or "unable to open" in text:
        return Unavailable("The database cannot be written. Check the disk.", retry_after_seconds=60)
    return error


def _attempt(after: Callable[..., object], args: tuple[Any, ...]) -> None:
    """What follows a commit cannot undo it, nor keep the others waiting."""
    try:
        after(*args)
    except Exception:
        log.error("what should follow a write failed", exc_info=True)


def _fail(calls: list[_Call], error: BaseException) -> None:
    for call in calls:
        call.error = call.error or error


def _tell(calls: list[_Call]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Call]] = {}
    for call in calls:
        if call.loop is not None:
            loops.setdefault(call.loop, []).append(call)
        elif call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
    for loop, waiting in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, waiting)


def _settle(calls: list[_Call]) -> None:
    for call in calls:
        if call.future.done():
            continue  # the caller went away; what it asked for is done all the same
        if call.error is not None:
            call.future.set_exception(call.error)
        else:
            call.future.set_result(call.result)
