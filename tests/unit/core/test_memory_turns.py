"""Turns for memory: the budget is never exceeded, by whichever process, and nobody waits for ever."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.locks import SLOT_BYTES, LockTimeout, MemoryBudget, MemoryReservation

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
