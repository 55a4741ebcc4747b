"""Turns by key: whoever queues a lot makes nobody wait for all of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from socialpub.core.locks import FairSemaphore, LockTimeout

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
