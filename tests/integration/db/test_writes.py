"""Writes that wait together: they share a commit, fail alone, and run on the event loop that waits for them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from socialpub.core.errors import Conflict
from socialpub.db import appliance_state, database
from socialpub.db.connection import Tx
from socialpub.runtime import Runtime

Write = Callable[[Tx], Any]


@contextmanager
def occupied_writer(rt: Runtime) -> Iterator[None]:
    """All writes of this block wait together, because another write runs until its end."""
    begun, end = threading.Event(), threading.Event()

    def occupy(_tx: Tx) -> None:
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
    return {row[0] for row in rt.reader.all("SELECT name FROM appliance WHERE value = 'here'")}


def put_and_fail(tx: Tx) -> None:
    appliance_state.put(tx, "half a write", "here")
    raise Conflict("Not like this.")


def fail(_tx: Tx) -> None:
    raise Conflict("Not like this.")


@pytest.mark.writes_once
@pytest.mark.parametrize("failing", [fail, put_and_fail])
def test_a_write_that_fails_takes_only_its_own_changes_back(rt: Runtime, failing: Write) -> None:
    first, error, last = write_together(rt, [put("first"), failing, put("last")])
    assert (first, last) == (None, None)
    assert isinstance(error, Conflict)
    assert names(rt) == {"first", "last"}


@pytest.mark.writes_once
def test_only_a_failure_after_a_change_makes_the_writes_run_again(rt: Runtime) -> None:
    runs: list[str] = []

    def count(tx: Tx) -> None:
        runs.append("run")
        appliance_state.put(tx, "counted", "here")
        tx.after_commit(runs.append, "callback")

    write_together(rt, [count, fail])
    assert runs == ["run", "callback"]
    write_together(rt, [count, put_and_fail])
    assert runs[2:] == ["run", "run", "callback"]


@pytest.mark.writes_once
def test_a_lone_write_that_fails_runs_once(rt: Runtime) -> None:
    runs: list[None] = []

    def count_and_fail(tx: Tx) -> None:
        runs.append(None)
        put_and_fail(tx)

    with pytest.raises(Conflict):
        rt.db.write(count_and_fail)
    assert len(runs) == 1
    assert names(rt) == set()
    rt.db.write(put("next"))
    assert names(rt) == {"next"}


@pytest.fixture
def _slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer's thread leaves the writes to the loop, however slow the loop is."""
    monkeypatch.setattr(database, "_LOOP_SECONDS", 3600.0)


@pytest.mark.usefixtures("_slow_machine")
def test_a_loop_runs_its_own_writes_and_a_thread_leaves_them_to_the_writer(rt: Runtime) -> None:
    def thread(_tx: Tx) -> str:
        return threading.current_thread().name

    assert write_together(rt, [thread, thread]) == [threading.current_thread().name] * 2
    assert rt.db.write(thread) == "writer"


@pytest.mark.usefixtures("_slow_machine")
def test_a_loop_does_other_work_between_its_writes(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_SLICE_SECONDS", 0.0)
    order: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def write(_tx: Tx) -> None:
            order.append("write")
            loop.call_soon(order.append, "other work")

        with occupied_writer(rt):
            waiting = [asyncio.ensure_future(rt.db.write_soon(write)) for _ in range(3)]
        await asyncio.gather(*waiting)

    asyncio.run(run())
    seen = [one for at, one in enumerate(order) if at == 0 or order[at - 1] != one]
    assert seen[:5] == ["write", "other work", "write", "other work", "write"]


def test_a_loop_that_is_busy_leaves_its_writes_to_the_writer(rt: Runtime) -> None:
    def thread(_tx: Tx) -> str:
        return threading.current_thread().name

    async def run() -> str:
        waiting = asyncio.ensure_future(rt.db.write_soon(thread))
        with ThreadPoolExecutor(1) as other:
            other.submit(rt.db.write, put("after it")).result()  # blocks the loop
        return await waiting

    assert asyncio.run(run()) == "writer"
    assert names(rt) == {"after it"}


def test_a_loop_that_has_ended_does_not_stop_the_writer(rt: Runtime) -> None:
    async def leave() -> None:
        rt.db.write_soon(put("left behind"))

    with occupied_writer(rt):
        asyncio.run(leave())
    rt.db.write(put("next"))
    assert names(rt) == {"left behind", "next"}


@pytest.mark.writes_once
def test_an_error_of_the_database_on_the_loop_fails_all_writes_of_the_commit(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(tx: Tx) -> None:
        tx.execute("ROLLBACK")
        raise ValueError("the transaction is over")

    results = write_together(rt, [put("first"), broken, put("last")])
    assert all(isinstance(result, Exception) for result in results)
    assert names(rt) == set()
    rt.db.write(put("next"))
    assert names(rt) == {"next"}
