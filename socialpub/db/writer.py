"""The one writer of a process: a thread with a queue. Writes that wait together share one commit.

A commit waits for the disk. Each write has its own savepoint, so a write that fails undoes only its own changes. Every
write function runs exactly once. If the commit fails, all its callers get the error.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from socialpub.core import actor, logging
from socialpub.core.clock import Clock
from socialpub.core.errors import Unavailable
from socialpub.core.locks import WriteQueueLock
from socialpub.db import sqlite_errors
from socialpub.db.clock_jumps import ClockWatch
from socialpub.db.connection import CallsAfterCommit, Database

T = TypeVar("T")

_MAX_PER_COMMIT = 200
WRITER_THREAD = "writer"

log = logging.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Call:
    """A waiting write, and the future of its caller."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    future: "Future[Any]" = field(default_factory=Future)
    actor: str = field(default_factory=actor.current)
    """The caller's actor, because the writer's thread does not have an entry point."""
    result: Any = None
    error: BaseException | None = None


class Writer:
    """The writing thread of a process."""

    def __init__(self, db: Database, queue_lock: WriteQueueLock, clock: Clock, busy_seconds: float) -> None:
        self._db = db
        self._queue_lock = queue_lock
        self._clock = clock
        self.watch = ClockWatch(clock)
        self._busy_seconds = busy_seconds
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._write_forever, name=WRITER_THREAD, daemon=True)
        self._thread.start()

    def write(self, fn: Callable[..., T], *args: Any) -> T:
        """Run `fn(tx, *args)` in a transaction and wait until it is on the disk. Do not call this on the event loop.

        Raise the exception of `fn`, which undoes its changes, or Unavailable.
        """
        result: T = self._put(fn, args).result()
        return result

    def write_soon(self, fn: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Do the same for the event loop. The write happens even if its caller is canceled."""
        return asyncio.shield(asyncio.wrap_future(self._put(fn, args)))

    def close(self) -> None:
        """Finish the waiting writes."""
        with self._closing:
            self._closed = True
            self._calls.put(None)
        self._thread.join()

    def _put(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> "Future[Any]":
        call = _Call(fn, args)
        with self._closing:
            if self._closed:
                raise Unavailable("socialpub is stopping.")
            self._calls.put(call)
        return call.future

    def _write_forever(self) -> None:
        with self._db.connection_context():
            self._write_calls()

    def _write_calls(self) -> None:
        while (call := self._calls.get()) is not None:
            calls = [call]
            while len(calls) < _MAX_PER_COMMIT and not self._calls.empty():
                following = self._calls.get()
                if following is None:
                    self._calls.put(None)  # the last call of this thread
                    break
                calls.append(following)
            try:
                after_commit = self._commit(calls)
            except BaseException as error:  # a write must never end the writer's thread
                failure = sqlite_errors.as_unavailable(error) if isinstance(error, sqlite3.Error) else error
                for call in calls:
                    call.error, after_commit = call.error or failure, []
            for act, args in after_commit:
                try:
                    act(*args)
                except Exception:
                    # A callback cannot undo the commit and must not delay other callers.
                    log.error("a callback after a commit failed", exc_info=True)
            for call in calls:
                if call.error is not None:
                    call.future.set_exception(call.error)
                else:
                    call.future.set_result(call.result)

    def _commit(self, calls: list[_Call]) -> CallsAfterCommit:
        """Run the calls in one transaction. Return the callbacks of the calls that did not fail."""
        if not self._queue_lock.acquire(self._busy_seconds):
            raise Unavailable("Another process uses the database. Try again in a moment.")
        try:
            with self._db.atomic("IMMEDIATE"):
                after_commit = self._db.begin_write(self._clock.now())
                self.watch.follow(self._db)
                for call in calls:
                    after_commit += self._run(call)
            return after_commit
        finally:
            self._queue_lock.release()

    def _run(self, call: _Call) -> CallsAfterCommit:
        after_commit = self._db.begin_write(self._clock.now(), call.actor)
        self._db.execute_sql("SAVEPOINT one")  # peewee's savepoint has a new name, and so a new statement, every time
        try:
            call.result = call.fn(self._db, *call.args)
        except Exception as error:
            if not self._db.connection().in_transaction or sqlite_errors.is_trouble(error):
                # SQLite ended the transaction or cannot continue: all writes of this commit are lost.
                raise sqlite3.OperationalError(str(error)) from error
            call.error = error
            self._db.execute_sql("ROLLBACK TO one")
            after_commit.clear()
        self._db.execute_sql("RELEASE one")
        return after_commit
