"""Turns for work that needs much memory: all processes of the appliance together stay within one budget.

The budget is cut into slots, each a file, and a turn is an exclusive flock on as many of them as the work may need. The
kernel holds the locks, so a process that dies gives its slots back at once, whatever the clock shows. A turn can be
handed to a child process: then it ends with that child, even when the process that started it is stopped or killed.
"""

import asyncio
import fcntl
import math
import os
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

SLOT_BYTES = 256 * 1024 * 1024
"""What an ordinary photo, or a film, needs at most."""

POLL_SECONDS = 0.02
"""A blocking flock could not be given up. Work that is worth a turn takes a hundred times as long."""


def in_slots(needed_bytes: int) -> int:
    """The memory that a turn for so much covers."""
    return max(1, math.ceil(needed_bytes / SLOT_BYTES)) * SLOT_BYTES


class TurnNotFree(Exception):
    """No turn became free in time."""


class MemoryTurn:
    """Locked slots. `descriptors` go to the child that does the work; close it as soon as the child has them."""

    def __init__(self, folder: Path, express: Iterable[int], slots: Iterable[int], wanted: int) -> None:
        """`wanted` of the `slots`, or a single one of the `express` slots."""
        self.descriptors: list[int] = []
        self._folder = folder
        self._express = [f"{number:03}.slot" for number in express]
        self._not_held = [f"{number:03}.slot" for number in slots]
        self._wanted = wanted
        self._gate: int | None = None

    def try_begin(self) -> bool:
        """Lock what is free. True when that is enough; what was locked before is kept."""
        if not self.descriptors and any(self._lock(name) for name in self._express):
            self._leave_gate()
            return True
        # One gathers at a time: two who each hold half of what they want would wait for each other for ever.
        if self._gate is None:
            self._gate = _try_lock(self._folder / "gate")
        if self._gate is None:
            return False
        for name in list(self._not_held):
            if len(self.descriptors) == self._wanted:
                break
            if self._lock(name):
                self._not_held.remove(name)
        if len(self.descriptors) < self._wanted:
            return False
        self._leave_gate()
        return True

    def close(self) -> None:
        """Let go of the slots here; a child that has them keeps them."""
        self._leave_gate()
        while self.descriptors:
            os.close(self.descriptors.pop())

    def __enter__(self) -> "MemoryTurn":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self, name: str) -> bool:
        descriptor = _try_lock(self._folder / name)
        if descriptor is not None:
            self.descriptors.append(descriptor)
        return descriptor is not None

    def _leave_gate(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None


class MemoryTurns:
    """Turns within `budget_bytes`, taken in `folder` by whichever process. Somebody can always have one, however small
    the budget; a quarter of it is kept for work that needs one slot, so that it never waits for large work."""

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self.slots = max(1, budget_bytes // SLOT_BYTES)
        self.kept_for_small = 0 if self.slots == 1 else max(1, self.slots // 4)

    def take(self, needed_bytes: int, patience_seconds: float) -> MemoryTurn:
        """Wait for a turn. Raises TurnNotFree, OSError. Blocks; in the event loop use `take_async`."""
        turn, give_up_at = self.line_up(needed_bytes), time.monotonic() + patience_seconds
        try:
            while not turn.try_begin():
                _check(give_up_at)
                time.sleep(POLL_SECONDS)
        except BaseException:
            turn.close()
            raise
        return turn

    async def take_async(self, needed_bytes: int, patience_seconds: float) -> MemoryTurn:
        """The same for the event loop. Canceled, it keeps nothing."""
        turn, give_up_at = self.line_up(needed_bytes), time.monotonic() + patience_seconds
        try:
            while not turn.try_begin():
                _check(give_up_at)
                await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            turn.close()
            raise
        return turn

    def line_up(self, needed_bytes: int) -> MemoryTurn:
        """A turn that has not begun."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        express = range(self.kept_for_small if needed_bytes <= SLOT_BYTES else 0)
        slots = range(self.kept_for_small, self.slots)
        return MemoryTurn(self.folder, express, slots, min(in_slots(needed_bytes) // SLOT_BYTES, len(slots)))


def _check(give_up_at: float) -> None:
    if time.monotonic() >= give_up_at:
        raise TurnNotFree("Other pictures and films have taken all the memory set aside for decoding.")


def _try_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
