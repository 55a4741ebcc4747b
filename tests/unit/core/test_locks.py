"""A semaphore that is fair by key."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from socialpub.core.locks import FairSemaphore, LockTimeout

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


def test_no_more_tasks_begin_than_may_run_at_once():
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        assert it.begun == ["a1", "a2"]
        await it.end("a1")
        assert it.begun == ["a1", "a2", "a3"]

    run(story)


def test_a_key_without_a_running_task_begins_while_another_key_uses_all_slots():
    async def story(it: Story) -> None:
        await it.ask(*(f"a{n}" for n in range(50)), "b1", "b2", "c1")
        assert it.begun == ["a0", "a1", "b1"], "one additional slot, not one for every key"
        await it.end("a0")
        assert it.begun[3:] == ["c1"]

    run(story)


def test_waiting_tasks_begin_alternately_by_key():
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "b1", "b2", "b3", "c1")
        for _ in range(6):
            await it.end(*it.begun[-2:])
        keys = [name[0] for name in it.begun]
        assert sorted(it.begun) == ["a1", "a2", "a3", "b1", "b2", "b3", "c1"]
        assert keys.index("c") < 5
        assert keys[:2] == ["a", "b"]

    run(story, at_once=1)


def test_a_canceled_task_delays_no_other_task():
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3", "a4")
        await it.cancel("a3")
        await it.cancel("a1")
        assert it.begun == ["a1", "a2", "a4"]
        await it.end("a2", "a4")
        await it.ask("a5", "a6")
        assert it.begun[3:] == ["a5", "a6"]

    run(story)


def test_a_slot_that_is_free_at_the_moment_of_cancellation_goes_to_the_next_task():
    async def story(it: Story) -> None:
        await it.ask("a1", "a2", "a3")
        it._ends["a1"].set()
        await asyncio.sleep(0)  # a1 ends, and a2 is canceled before it runs
        assert it.begun == ["a1"]
        it._tasks["a2"].cancel()
        await settle()
        assert it.begun == ["a1", "a3"]

    run(story, at_once=1)


def test_a_wait_ends_with_its_timeout():
    async def story(it: Story) -> None:
        await it.ask("a1", "a2")
        with pytest.raises(LockTimeout):
            async with it.slots.slot("a", 0):
                pass
        await it.end("a1")
        assert it.begun == ["a1", "a2"]

    run(story, at_once=1)
