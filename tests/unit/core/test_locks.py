"""A semaphore that is fair by key, and a memory budget for all processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socialpub.core.locks import SLOT_BYTES, FairSemaphore, LockTimeout, MemoryBudget, MemoryReservation

# --- slots by key ----------------------------------------------------------------------------------------------------


Turn = Callable[[str], "asyncio.Task[None]"]
TIMEOUT_SECONDS = 60.0


class Story:
    """Tasks that run until the test ends them. `begun` has the order of their starts."""

    def __init__(self, at_once: int) -> None:
        self.slots = FairSemaphore(at_once)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.ensure_future(self._work(name))
        await settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settle()

    async def _work(self, name: str) -> None:
        async with self.slots.slot(name[0], TIMEOUT_SECONDS):
            self.begun.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[Story], Coroutine[Any, Any, None]], at_once: int = 2) -> None:
    async def main() -> None:
        await story(Story(at_once))

    asyncio.run(main())


def test_no_more_tasks_begin_than_may_run_at_once() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        assert it.begun == ["a1", "a2"]
        await it.end("a1")
        assert it.begun == ["a1", "a2", "a3"]

    run(story)


def test_a_key_without_a_running_task_begins_while_another_key_uses_all_slots() -> None:
    async def story(it: Story) -> None:
        await it.ask(*(f"a{n}" for n in range(50)), "b1", "b2", "c1")
        assert it.begun == ["a0", "a1", "b1"], "one additional slot, not one for every key"
        await it.end("a0")
        assert it.begun[3:] == ["c1"]

    run(story)


def test_waiting_tasks_begin_alternately_by_key() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "b1", "b2", "b3", "c1")
        for _ in range(6):
            await it.end(*it.begun[-2:])
        keys = [name[0] for name in it.begun]
        assert sorted(it.begun) == ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]
        assert keys.index("c") < 5
        assert keys[:2] == ["a", "b"]

    run(story, at_once=1)


def test_a_canceled_task_delays_no_other_task() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        await it.cancel("a3")
        await it.cancel("a1")
        assert it.begun == ["a1", "a2", "a4"]
        await it.end("a2", "a4")
        await it.ask("a5", "a6")
        assert it.begun[3:] == ["a5", "a6"]

    run(story)


def test_a_slot_that_is_free_at_the_moment_of_cancellation_goes_to_the_next_task() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3")
        it._ends["a1"].set()
        await asyncio.sleep(0)  # a1 ends, and a2 is canceled before it runs
        assert it.begun == ["a1"]
        it._tasks["a2"].cancel()
        await settle()
        assert it.begun == ["a1", "a3"]

    run(story, at_once=1)


def test_a_wait_ends_with_its_timeout() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2")
        with pytest.raises(LockTimeout):
            async with it.slots.slot("a", 0):
                pass
        await it.end("a1")
        assert it.begun == ["a1", "a2"]

    run(story, at_once=1)


# --- memory ----------------------------------------------------------------------------------------------------------


SMALL, LARGE = SLOT_BYTES, 6 * SLOT_BYTES


@pytest.fixture
def memory(tmp_path: Path) -> MemoryBudget:
    """Eight slots, two of them for work that needs only one."""
    return MemoryBudget(tmp_path / "memory", 8 * SLOT_BYTES)


def try_reserve(memory: MemoryBudget, needed_bytes: int) -> MemoryReservation | None:
    reservation = memory.prepare(needed_bytes)
    if reservation.try_begin():
        return reservation
    reservation.close()
    return None


def reserve(memory: MemoryBudget, needed_bytes: int) -> MemoryReservation:
    reservation = try_reserve(memory, needed_bytes)
    assert reservation is not None
    return reservation


def test_large_work_waits_for_large_work_and_continues_when_it_ends(memory: MemoryBudget) -> None:
    with closing(reserve(memory, LARGE)):
        assert try_reserve(memory, LARGE) is None
    reserve(memory, LARGE).close()


def test_small_work_does_not_wait_behind_large_work(memory: MemoryBudget) -> None:
    with closing(reserve(memory, LARGE)), closing(reserve(memory, SMALL)), closing(reserve(memory, SMALL)):
        assert try_reserve(memory, SMALL) is None


def test_small_work_takes_all_slots_while_no_large_work_waits(memory: MemoryBudget) -> None:
    held = [reserve(memory, SMALL) for _ in range(8)]
    assert try_reserve(memory, SMALL) is None and try_reserve(memory, LARGE) is None
    for reservation in held:
        reservation.close()


def test_small_work_does_not_delay_large_work_without_end(memory: MemoryBudget) -> None:
    async def story() -> None:
        first = reserve(memory, 3 * SLOT_BYTES)
        large = asyncio.ensure_future(memory.reserve(LARGE, 60))
        await asyncio.sleep(0)
        assert try_reserve(memory, 2 * SLOT_BYTES) is None, "three are free, and they are waited for"
        first.close()
        (await large).close()

    asyncio.run(story())


def test_two_large_reservations_do_not_wait_for_each_other(memory: MemoryBudget) -> None:
    held = [reserve(memory, 3 * SLOT_BYTES), reserve(memory, 3 * SLOT_BYTES)]
    first, second = memory.prepare(LARGE), memory.prepare(LARGE)
    for reservation in held:
        assert not first.try_begin()
        reservation.close()
        assert not second.try_begin()
    assert first.try_begin()
    first.close()
    assert second.try_begin()
    second.close()


def test_work_above_the_budget_still_runs(tmp_path: Path) -> None:
    for budget in (0, SLOT_BYTES, 2 * SLOT_BYTES, 5 * SLOT_BYTES):
        memory = MemoryBudget(tmp_path / str(budget), budget)
        with closing(reserve(memory, 100 * SLOT_BYTES)):
            assert try_reserve(memory, 2 * SLOT_BYTES) is None


def test_a_canceled_reservation_keeps_no_slot(memory: MemoryBudget) -> None:
    async def story() -> None:
        with closing(reserve(memory, SLOT_BYTES * 2)):
            waiting = asyncio.ensure_future(memory.reserve(LARGE, 60))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            reserve(memory, 4 * SLOT_BYTES).close()
            with pytest.raises(LockTimeout):
                await memory.reserve(LARGE, 0)
            reserve(memory, 4 * SLOT_BYTES).close()

    asyncio.run(story())


def test_a_process_that_dies_releases_its_slots_at_once(memory: MemoryBudget) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from socialpub.core.locks import *\n"
        "reservation = asyncio.run(MemoryBudget(Path(sys.argv[1]), int(sys.argv[2])).reserve(int(sys.argv[3]), 0))\n"
        "print('reserved', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(memory.folder), str(8 * SLOT_BYTES), str(LARGE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"reserved\n"
        assert try_reserve(memory, LARGE) is None
        other.kill()
        other.wait()
        reserve(memory, LARGE).close()


def test_a_reservation_of_a_child_ends_with_the_child(memory: MemoryBudget) -> None:
    reservation = reserve(memory, LARGE)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, pass_fds=reservation.descriptors) as child:
        reservation.close()
        assert try_reserve(memory, LARGE) is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        reserve(memory, LARGE).close()
