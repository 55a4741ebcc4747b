"""A semaphore that is fair by key, and a memory budget that no process exceeds."""

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

# --- turns by key ----------------------------------------------------------------------------------------------------


Turn = Callable[[str], "asyncio.Task[None]"]
PATIENCE = 60.0


class Story:
    """Work that goes on until the test ends it; `begun` tells in which order it began."""

    def __init__(self, at_once: int) -> None:
        self.turns = FairSemaphore(at_once)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """`a1` is the first work of the key `a`."""
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
        async with self.turns.turn(name[0], PATIENCE):
            self.begun.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[Story], Coroutine[Any, Any, None]], at_once: int = 2) -> None:
    async def told() -> None:
        await story(Story(at_once))

    asyncio.run(told())


def test_no_more_begin_than_may_run_at_once() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        assert it.begun == ["a1", "a2"]
        await it.end("a1")
        assert it.begun == ["a1", "a2", "a3"]

    run(story)


def test_a_key_of_which_nothing_runs_begins_though_another_has_taken_all_places() -> None:
    async def story(it: Story) -> None:
        await it.ask(*(f"a{n}" for n in range(50)), "b1", "b2", "c1")
        assert it.begun == ["a0", "a1", "b1"], "one place more, and not one for every key"
        await it.end("a0")
        assert it.begun[3:] == ["c1"]

    run(story)


def test_those_who_wait_begin_in_turn_by_key() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "b1", "b2", "b3", "c1")
        for _ in range(6):
            await it.end(*it.begun[-2:])
        keys = [name[0] for name in it.begun]
        assert sorted(it.begun) == ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]
        assert keys.index("c") < 5
        assert keys[:2] == ["a", "b"]

    run(story, at_once=1)


def test_who_gives_up_waiting_holds_nobody_up() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        await it.cancel("a3")
        await it.cancel("a1")
        assert it.begun == ["a1", "a2", "a4"]
        await it.end("a2", "a4")
        await it.ask("a5", "a6")
        assert it.begun[3:] == ["a5", "a6"]

    run(story)


def test_a_turn_that_comes_at_the_moment_of_giving_up_goes_to_the_next() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3")
        it._ends["a1"].set()
        await asyncio.sleep(0)  # a1 ends and a2 is told; before it runs, it is canceled
        assert it.begun == ["a1"]
        it._tasks["a2"].cancel()
        await settle()
        assert it.begun == ["a1", "a3"]

    run(story, at_once=1)


def test_patience_ends() -> None:
    async def story(it: Story) -> None:
        await it.ask("a1", "a2")
        with pytest.raises(LockTimeout):
            async with it.turns.turn("a", 0):
                pass
        await it.end("a1")
        assert it.begun == ["a1", "a2"]

    run(story, at_once=1)


# --- memory ----------------------------------------------------------------------------------------------------------


SMALL, LARGE = SLOT_BYTES, 6 * SLOT_BYTES


@pytest.fixture
def turns(tmp_path: Path) -> MemoryBudget:
    """Eight slots, two of them kept for what needs only one."""
    return MemoryBudget(tmp_path / "turns", 8 * SLOT_BYTES)


def take(turns: MemoryBudget, needed_bytes: int) -> MemoryReservation | None:
    turn = turns.prepare(needed_bytes)
    if turn.try_begin():
        return turn
    turn.close()
    return None


def taken(turns: MemoryBudget, needed_bytes: int) -> MemoryReservation:
    turn = take(turns, needed_bytes)
    assert turn is not None
    return turn


def test_large_work_waits_for_large_work_and_goes_on_when_that_is_done(turns: MemoryBudget) -> None:
    with closing(taken(turns, LARGE)):
        assert take(turns, LARGE) is None
    taken(turns, LARGE).close()


def test_small_work_does_not_wait_behind_large_work(turns: MemoryBudget) -> None:
    with closing(taken(turns, LARGE)), closing(taken(turns, SMALL)), closing(taken(turns, SMALL)):
        assert take(turns, SMALL) is None


def test_small_work_takes_all_there_is_when_nobody_needs_more(turns: MemoryBudget) -> None:
    held = [taken(turns, SMALL) for _ in range(8)]
    assert take(turns, SMALL) is None and take(turns, LARGE) is None
    for turn in held:
        turn.close()


def test_who_needs_many_slots_is_not_overtaken_for_ever(turns: MemoryBudget) -> None:
    async def story() -> None:
        first = taken(turns, 3 * SLOT_BYTES)
        large = asyncio.ensure_future(turns.take(LARGE, 60))
        await asyncio.sleep(0)
        assert take(turns, 2 * SLOT_BYTES) is None, "three are free, and they are waited for"
        first.close()
        (await large).close()

    asyncio.run(story())


def test_two_who_need_many_do_not_wait_for_each_other(turns: MemoryBudget) -> None:
    held = [taken(turns, 3 * SLOT_BYTES), taken(turns, 3 * SLOT_BYTES)]
    first, second = turns.prepare(LARGE), turns.prepare(LARGE)
    for turn in held:
        assert not first.try_begin()
        turn.close()
        assert not second.try_begin()
    assert first.try_begin()
    first.close()
    assert second.try_begin()
    second.close()


def test_what_needs_more_than_the_budget_still_has_its_turn(tmp_path: Path) -> None:
    for budget in (0, SLOT_BYTES, 2 * SLOT_BYTES, 5 * SLOT_BYTES):
        turns = MemoryBudget(tmp_path / str(budget), budget)
        with closing(taken(turns, 100 * SLOT_BYTES)):
            assert take(turns, 2 * SLOT_BYTES) is None


def test_who_gives_up_waiting_keeps_nothing(turns: MemoryBudget) -> None:
    async def story() -> None:
        with closing(taken(turns, SLOT_BYTES * 2)):
            waiting = asyncio.ensure_future(turns.take(LARGE, 60))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            taken(turns, 4 * SLOT_BYTES).close()
            with pytest.raises(LockTimeout):
                await turns.take(LARGE, 0)
            taken(turns, 4 * SLOT_BYTES).close()

    asyncio.run(story())


def test_a_process_that_dies_gives_its_turn_back_at_once(turns: MemoryBudget) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path; from socialpub.core.locks import *\n"
        "turn = asyncio.run(MemoryBudget(Path(sys.argv[1]), int(sys.argv[2])).take(int(sys.argv[3]), 0))\n"
        "print('has it', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(turns.folder), str(8 * SLOT_BYTES), str(LARGE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"has it\n"
        assert take(turns, LARGE) is None
        other.kill()
        other.wait()
        taken(turns, LARGE).close()


def test_a_turn_handed_to_a_child_ends_with_the_child(turns: MemoryBudget) -> None:
    turn = taken(turns, LARGE)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, pass_fds=turn.descriptors) as child:
        turn.close()
        assert take(turns, LARGE) is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        taken(turns, LARGE).close()
