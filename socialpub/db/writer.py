"""The one writing connection of a process: callers hand it functions, and those that wait together share a commit.

Each runs under a savepoint of its own. A commit waits for the disk, and twenty callers need not wait for it twenty
times; what a write returned reaches its caller only after that commit.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from socialpub.core import actor, logging
from socialpub.core.clock import Clock
from socialpub.core.errors import Unavailable
from socialpub.core.locks import WriteQueueLock
from socialpub.db.clock_jumps import ClockWatch
from socialpub.db.connection import Tx

log = logging.get_logger("socialpub.store")

T = TypeVar("T")

_MAX_PER_COMMIT = 200


class _Call:
    """A write that waits, and how its caller learns of its end."""

    __slots__ = ("actor", "args", "error", "fn", "future", "loop", "result", "tx")

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
        self.actor = actor.current()  # the writer's thread has no door behind it
        self.result: Any = None
        self.error: BaseException | None = None
        self.tx: Tx | None = None


class Writer:
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
        """Run `fn(tx, *args)` in a transaction and wait until it is on the disk. Not from the event loop.

        Raises what `fn` raises (then nothing of it was kept), or Unavailable.
        """
        future: Future[Any] = Future()
        self._put(_Call(fn, args, future, None))
        result: T = future.result()
        return result

    def write_soon(self, fn: Callable[..., T], *args: Any) -> Awaitable[T]:
        """The same for the event loop: an awaitable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._put(_Call(fn, args, future, loop))
        return future

    def close(self) -> None:
        """Let the waiting writes end."""
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
        """Run the calls in one transaction. Every one of them ends with a result or an error, whatever happens."""
        try:
            if not self._queue_lock.acquire(self._busy_seconds):
                _fail(calls, Unavailable("Another process keeps the database busy. Try again in a moment."))
                return
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                look = Tx(self._connection, self._clock.now())
                self.watch.look(look)
                for call in calls:
                    self._run(call)
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                self._queue_lock.release()
        except BaseException as error:  # the writer's thread outlives whatever a write does
            _fail(calls, _as_unavailable(error) if isinstance(error, sqlite3.Error) else error)
            return
        for tx in (look, *(call.tx for call in calls if call.error is None and call.tx is not None)):
            for after, args in tx.committed():
                _attempt(after, args)

    def _run(self, call: _Call) -> None:
        tx = call.tx = Tx(self._connection, self._clock.now(), call.actor)
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
    """Return the caller's error. Its cause has the code of SQLite's."""
    codes = (getattr(one, "sqlite_errorcode", None) for one in (error, error.__cause__))
    match next((code & 0xFF for code in codes if code is not None), None):
        case sqlite3.SQLITE_FULL:
            unavailable = Unavailable("The disk is full. Make room and send the request again.", retry_after_seconds=60)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            unavailable = Unavailable("Another process keeps the database locked. Try again in a moment.")
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
            unavailable = Unavailable("The database cannot be written. Check the disk.", retry_after_seconds=60)
        case _:
            return error
    unavailable.__cause__ = error
    return unavailable


def _attempt(after: Callable[..., object], args: tuple[Any, ...]) -> None:
    """What follows a commit cannot undo it, nor keep the others waiting."""
    try:
        after(*args)
    except Exception:
        log.error("a callback after a commit failed", exc_info=True)


def _fail(calls: list[_Call], error: BaseException) -> None:
    for call in calls:
        call.error = call.error or error


def _answer(calls: list[_Call]) -> None:
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
