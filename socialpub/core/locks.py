"""Locks: between processes (files, held by the kernel) and between the tasks of one event loop."""

import asyncio
import contextlib
import fcntl
import math
import os
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from types import TracebackType

# MERGED from db/locks.py: Locks between processes, held by the kernel: a process that dies releases them at once,


class FileLock:
    """One exclusive flock on one file. Not reentrant; a second opening in the same process counts as another holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def try_acquire(self) -> bool:
        return self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB)

    def acquire(self) -> None:
        """Wait as long as it takes."""
        self._lock(fcntl.LOCK_EX)

    def _lock(self, how: int) -> bool:
        while True:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._fd, how)
            except BlockingIOError:
                self.release()
                return False
            except BaseException:
                self.release()
                raise
            if self.is_held:
                return True
            # Between the two calls the file was removed or replaced. Others lock the file that is there now.
            self.release()

    @property
    def file(self) -> int | None:
        """Names the file that is locked: another one after somebody broke the lock open."""
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None

    def break_open(self, file: int) -> bool:
        """Take the lock of this `file` from a holder who cannot be expected to go on; it finds out when it asks
        (`is_held`). False: somebody else was faster."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Of two that compare at the same time, the slower one would remove the lock of the faster one.
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.file == file:
                self.path.unlink(missing_ok=True)
        except BlockingIOError:
            return False
        finally:
            os.close(folder)
        return self.try_acquire()

    def move_to(self, path: Path) -> None:
        """Give the locked file another name."""
        self.path = self.path.rename(path)

    @property
    def is_held(self) -> bool:
        """Whether this lock is held here, and nobody has broken it."""
        if self._fd is None:
            return False
        try:
            there, here = self.path.stat(), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def write(self, content: bytes, at: int = 0) -> None:
        """Say something about the holder, for others to read."""
        if self._fd is not None:
            os.pwrite(self._fd, content, at)

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> "FileLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of this file. The lock is shared for a moment: two that ask do not mistake each
    other for the holder."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


class WriteQueueLock:
    """Two locks: whoever waits for its turn holds the gate, so that nobody who just had a turn passes it by."""

    POLL_SECONDS = 0.0002

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._gate = os.open(folder / "turnstile.gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._turn = os.open(folder / "turnstile.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def enter(self, patience_seconds: float) -> bool:
        """Wait for this process's turn. False when it did not come in time."""
        give_up_at = time.monotonic() + patience_seconds
        if not self._take(self._gate, give_up_at):
            return False
        try:
            return self._take(self._turn, give_up_at)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def leave(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._gate)
        os.close(self._turn)

    def _take(self, fd: int, give_up_at: float) -> bool:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                # A blocking flock cannot be given up, and a stopped process may hold it for minutes.
                if time.monotonic() >= give_up_at:
                    return False
                time.sleep(self.POLL_SECONDS)


# MERGED from media/held_files.py: Files that somebody holds: locked by the kernel as long as their process lives a


def create_locked_file(folder: Path, name: str) -> tuple[int, Path]:
    """A new file, locked. `name` holds a `*`, which becomes something unique. Closing the descriptor lets go of it."""
    while True:
        path = folder / name.replace("*", secrets.token_hex(12))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except BaseException:
            os.close(fd)
            path.unlink(missing_ok=True)
            raise
        if os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # it was removed as an orphan before we had the lock


def remove_if_unlocked(path: Path, still_wanted: Callable[[], bool] = lambda: False) -> bool:
    """Remove the file unless somebody holds it, or it is `still_wanted`, which is asked once the lock is ours. What
    belongs to another user of this machine is left to that user."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if still_wanted():
            return False
        path.unlink(missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


# MERGED from core/memory_turns.py: Turns for work that needs much memory: all processes of the appliance together

SLOT_BYTES = 256 * 1024 * 1024
"""What an ordinary photo, or a film, needs at most."""

POLL_SECONDS = 0.02
"""A blocking flock could not be given up. Work that is worth a turn takes a hundred times as long."""


def in_slots(needed_bytes: int) -> int:
    """The memory that a turn for so much covers."""
    return max(1, math.ceil(needed_bytes / SLOT_BYTES)) * SLOT_BYTES


class LockTimeout(Exception):
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


class MemoryBudget:
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
                _check_deadline(give_up_at)
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
                _check_deadline(give_up_at)
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


def _check_deadline(give_up_at: float) -> None:
    if time.monotonic() >= give_up_at:
        raise LockTimeout("Other pictures and films have taken all the memory set aside for decoding.")


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


# MERGED from core/fair_turns.py: Turns for work of many callers on one event loop: whoever queues a lot makes nobo


class FairSemaphore:
    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Per key who waits, oldest first. The key whose turn is next stands first."""

    @contextlib.asynccontextmanager
    async def turn(self, key: str, patience_seconds: float) -> AsyncIterator[None]:
        """Wait for a turn, and have it inside of the `async with`. Raises TurnNotFree; canceled, it keeps nothing."""
        if key not in self._waiting and self._may_begin(key):
            self._running[key] += 1
        else:
            await self._wait(key, patience_seconds)
        try:
            yield
        finally:
            self._end(key)

    def _may_begin(self, key: str) -> bool:
        running = self._running.total()
        return running < self._at_once or (running == self._at_once and key not in self._running)

    async def _wait(self, key: str, patience_seconds: float) -> None:
        begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(begins)
        try:
            async with asyncio.timeout(patience_seconds):
                await begins
        except BaseException as error:
            if begins.done() and not begins.cancelled():
                self._end(key)  # it was our turn at the very moment in which we gave up
            else:
                self._waiting[key].remove(begins)
                if not self._waiting[key]:
                    del self._waiting[key]
            if isinstance(error, TimeoutError):
                raise LockTimeout("Other work was before it all the time.") from None
            raise

    def _end(self, key: str) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        while (following := next(filter(self._may_begin, self._waiting), None)) is not None:
            waiting = self._waiting.pop(following)
            self._running[following] += 1
            waiting.popleft().set_result(None)
            if waiting:
                self._waiting[following] = waiting  # behind the other keys
