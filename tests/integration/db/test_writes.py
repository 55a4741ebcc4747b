"""Writes that wait together share a commit and fail alone."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.runtime import Runtime
from tests.support.select import select_all

Write = Callable[[Database], Any]


@contextmanager
def occupied_writer(rt: Runtime) -> Iterator[None]:
    """All writes of this block wait together, because another write runs until its end."""
    begun, end = threading.Event(), threading.Event()

    def occupy(_tx: Database) -> None:
        begun.set()
        end.wait()

    with ThreadPoolExecutor(1) as other:
        done = other.submit(rt.db.write, occupy)
        begun.wait()
        try:
            yield
        finally:
            end.set()
        done.result()


def write_together(rt: Runtime, writes: list[Write]) -> list[Any]:
    """Run these writes of an event loop in one commit. Return the results and the errors."""

    async def run() -> list[Any]:
        with occupied_writer(rt):
            waiting = [asyncio.ensure_future(rt.db.write_soon(write)) for write in writes]
        return await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(run())


def put(name: str) -> Write:
    return lambda tx: appliance_state.put(tx, name, "here")


def names(rt: Runtime) -> set[str]:
    return {row[0] for row in select_all(rt.db, "SELECT name FROM appliance WHERE value = 'here'")}


def put_and_fail(tx: Database) -> None:
    appliance_state.put(tx, "half a write", "here")
    raise Conflict("Not like this.")


def fail(_tx: Database) -> None:
    raise Conflict("Not like this.")


@pytest.mark.parametrize("failing", [fail, put_and_fail])
def test_a_write_that_fails_takes_only_its_own_changes_back(rt: Runtime, failing: Write) -> None:
    first, error, last = write_together(rt, [put("first"), failing, put("last")])
    assert (first, last) == (None, None)
    assert isinstance(error, Conflict)
    assert names(rt) == {"first", "last"}


def test_every_write_runs_once_also_beside_a_write_that_fails(rt: Runtime) -> None:
    runs: list[str] = []

    def count(tx: Database) -> None:
        runs.append("run")
        appliance_state.put(tx, "counted", "here")
        tx.call_after_commit(runs.append, "callback")

    def count_and_fail(tx: Database) -> None:
        count(tx)
        raise Conflict("Not like this.")

    write_together(rt, [count, count_and_fail, count])
    assert runs == ["run", "run", "run", "callback", "callback"]


def test_a_lone_write_that_fails_runs_once(rt: Runtime) -> None:
    runs: list[None] = []

    def count_and_fail(tx: Database) -> None:
        runs.append(None)
        put_and_fail(tx)

    with pytest.raises(Conflict):
        rt.db.write(count_and_fail)
    assert len(runs) == 1
    assert names(rt) == set()
    rt.db.write(put("next"))
    assert names(rt) == {"next"}


def test_all_writes_run_on_the_writers_thread(rt: Runtime) -> None:
    def thread(_tx: Database) -> str:
        return threading.current_thread().name

    assert write_together(rt, [thread, thread]) == ["writer"] * 2
    assert rt.db.write(thread) == "writer"


def test_a_write_whose_caller_is_canceled_happens(rt: Runtime) -> None:
    async def run() -> None:
        with occupied_writer(rt):
            waiting = asyncio.ensure_future(rt.db.write_soon(put("canceled")))
            await asyncio.sleep(0)
            waiting.cancel()

    asyncio.run(run())
    rt.db.write(put("next"))
    assert names(rt) == {"canceled", "next"}


def test_a_loop_that_has_ended_does_not_stop_the_writer(rt: Runtime) -> None:
    async def leave() -> None:
        rt.db.write_soon(put("left behind"))

    with occupied_writer(rt):
        asyncio.run(leave())
    rt.db.write(put("next"))
    assert names(rt) == {"left behind", "next"}


def test_an_error_of_the_database_fails_all_writes_of_the_commit(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(tx: Database) -> None:
        tx.execute_sql("ROLLBACK")
        raise ValueError("the transaction is over")

    results = write_together(rt, [put("first"), broken, put("last")])
    assert all(isinstance(result, Exception) for result in results)
    assert names(rt) == set()
    rt.db.write(put("next"))
    assert names(rt) == {"next"}
