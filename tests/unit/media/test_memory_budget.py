"""All processes together decode one large file and a few ordinary files at a time."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.core.locks import LockTimeout
from socialpub.media.decoder.memory import ORDINARY_BYTES, MemoryBudget

LARGE = 6 * ORDINARY_BYTES


@pytest.fixture
def budget(tmp_path: Path) -> MemoryBudget:
    """Half of it is for four ordinary files."""
    return MemoryBudget(tmp_path / "memory", 8 * ORDINARY_BYTES)


@pytest.fixture
def large(budget: MemoryBudget) -> Iterator[int]:
    descriptor = budget.try_reserve(LARGE)
    assert descriptor is not None
    yield descriptor
    os.close(descriptor)


@pytest.mark.usefixtures("large")
def test_one_large_file_is_decoded_at_a_time_and_delays_no_ordinary_file(budget):
    assert budget.try_reserve(LARGE) is None
    descriptors = [budget.try_reserve(ORDINARY_BYTES) for _ in range(4)]
    assert None not in descriptors
    assert budget.try_reserve(ORDINARY_BYTES) is None
    os.close(descriptors[0] or 0)
    os.close(budget.try_reserve(ORDINARY_BYTES) or 0)
    for descriptor in descriptors[1:]:
        os.close(descriptor or 0)


@pytest.mark.parametrize("bytes_of_machine", [0, ORDINARY_BYTES])
def test_a_large_file_fits_on_every_machine(tmp_path, bytes_of_machine):
    budget = MemoryBudget(tmp_path, bytes_of_machine)
    os.close(budget.try_reserve(100 * ORDINARY_BYTES) or 0)
    os.close(budget.try_reserve(1) or 0)


@pytest.mark.usefixtures("large")
def test_a_wait_ends_after_its_timeout_or_when_it_is_canceled(budget):
    async def story() -> None:
        with pytest.raises(LockTimeout):
            await budget.reserve(LARGE, 0)
        waiting = asyncio.ensure_future(budget.reserve(LARGE, 60))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(story())


def test_a_reservation_of_a_child_ends_with_the_child(budget):
    descriptor = budget.try_reserve(LARGE)
    assert descriptor is not None
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, pass_fds=(descriptor,)) as child:
        os.close(descriptor)
        assert budget.try_reserve(LARGE) is None
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        os.close(budget.try_reserve(LARGE) or 0)
