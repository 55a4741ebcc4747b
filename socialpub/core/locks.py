"""All locks: between processes on files, and between the tasks of one event loop.

The kernel holds a file lock and releases the lock when its process dies. No other file calls flock.
"""

import asyncio
import contextlib
import errno
import fcntl
import math
import os
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from socialpub.core.errors import file_system_cannot

TRY = fcntl.LOCK_EX | fcntl.LOCK_NB


class LockTimeout(Exception):
    """The lock was not free before the timeout."""


def _flock(fd: int, how: int) -> bool:
    """Lock or unlock an open file. Return False if another holder has it and `how` does not wait."""
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in NO_LOCKS:
            raise file_system_cannot("lock files (flock)") from error
        raise
    return True


NO_LOCKS = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def _open_locked(path: Path, how: int = TRY) -> int | None:
    """Open and lock a file, which may be new. Return its descriptor, or None if another holder has the lock."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        locked = _flock(fd, how)
    except BaseException:
        os.close(fd)
        raise
    if not locked:
        os.close(fd)
    return fd if locked else None


class FileLock:
    """An exclusive lock on one file. Another `FileLock` in the same process is another holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def try_acquire(self) -> bool:
        return self._lock(TRY)

    def acquire(self) -> None:
        """Wait without a timeout."""
        self._lock(fcntl.LOCK_EX)

    def _lock(self, how: int) -> bool:
        while True:
            self._fd = _open_locked(self.path, how)
            if self._fd is None:
                return False
            if self.is_held:
                return True
            self.release()
            # The file was removed or replaced between the two calls. Other processes lock the new file.

    @property
    def file(self) -> int | None:
        """The identity of the locked file, which changes when the lock is broken."""
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None

    def break_open(self, file: int) -> bool:
        """Take the lock of this `file` from a suspended holder. Return False if another process was faster.

        A holder checks `is_held` before it continues.
        """
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Without this lock, the slower of two processes would remove the lock of the faster process.
            if not _flock(folder, TRY):
                return False
            if self.file == file:
                self.path.unlink(missing_ok=True)
        finally:
            os.close(folder)
        return self.try_acquire()

    def move_to(self, path: Path) -> None:
        """Rename the locked file."""
        self.path = self.path.rename(path)

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock and no process has broken it."""
        if self._fd is None:
            return False
        try:
            there, here = self.path.stat(), os.fstat(self._fd)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def write(self, content: bytes, at: int = 0) -> None:
        """Write a description of the holder to the file."""
        if self._fd is not None:
            os.pwrite(self._fd, content, at)

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> "FileLock":
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock of this file.

    The check takes a shared lock, so two simultaneous checks do not disturb each other.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    finally:
        os.close(fd)


class WriteQueueLock:
    """A fair lock between processes that write. The next process holds the queue, so the last holder waits behind it.

    SQLite's busy handler polls, and one process can wait without end.
    """

    POLL_SECONDS = 0.0002

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The file names stay: processes of two versions may run at the same time.
        self._queue = os.open(folder / "turnstile.gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._write = os.open(folder / "turnstile.turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, timeout_seconds: float) -> bool:
        """Wait for the lock. Return False after the timeout."""
        give_up_at = time.monotonic() + timeout_seconds
        if not self._lock(self._queue, give_up_at):
            return False
        try:
            return self._lock(self._write, give_up_at)
        finally:
            _flock(self._queue, fcntl.LOCK_UN)

    def release(self) -> None:
        _flock(self._write, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._queue)
        os.close(self._write)

    def _lock(self, fd: int, give_up_at: float) -> bool:
        while not _flock(fd, TRY):
            # A blocking flock does not have a timeout, and a stopped process may hold the lock for minutes.
            if time.monotonic() >= give_up_at:
                return False
            time.sleep(self.POLL_SECONDS)
        return True


# --- files that are valid while they are locked ----------------------------------------------------------------------


def create_locked_file(folder: Path, name: str) -> tuple[int, Path]:
    """Create a locked file. A unique text replaces the `*` in its name. Closing the descriptor unlocks the file."""
    while True:
        path = folder / name.replace("*", secrets.token_hex(12))
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _flock(fd, fcntl.LOCK_EX)
        except BaseException:
            os.close(fd)
            path.unlink(missing_ok=True)
            raise
        if os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # another process removed the file as an orphan before it was locked


def remove_if_unlocked(path: Path, still_wanted: Callable[[], bool] = lambda: False) -> bool:
    """Remove a file that no process has locked, unless `still_wanted` returns True. Return whether it was removed.

    A file of another user stays.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        if not _flock(fd, TRY) or still_wanted():
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


# --- memory ----------------------------------------------------------------------------------------------------------

SLOT_BYTES = 256 * 1024 * 1024
"""The maximum memory for an ordinary photo or a video."""

POLL_SECONDS = 0.02
"""The pause between two tries, because a blocking flock does not have a timeout. Decoding takes much longer."""


def in_slots(needed_bytes: int) -> int:
    """Return the memory that a reservation of this size covers."""
    return max(1, math.ceil(needed_bytes / SLOT_BYTES)) * SLOT_BYTES


class MemoryReservation:
    """Locked slots. Close the reservation when the child process that does the work has the `descriptors`."""

    def __init__(self, folder: Path, express: Iterable[int], slots: Iterable[int], wanted: int) -> None:
        """Reserve `wanted` of the `slots`, or one of the `express` slots."""
        self.descriptors: list[int] = []
        self._folder = folder
        self._express = [f"{number:03}.slot" for number in express]
        self._not_held = [f"{number:03}.slot" for number in slots]
        self._wanted = wanted
        self._gate: int | None = None

    def try_begin(self) -> bool:
        """Lock free slots, and keep slots that are locked. Return whether they are enough."""
        if not self.descriptors and any(self._lock(name) for name in self._express):
            self._release_gate()
            return True
        # One reservation collects slots at a time. Two that each hold half of their slots would wait without end.
        if self._gate is None:
            self._gate = _open_locked(self._folder / "gate")
        if self._gate is None:
            return False
        for name in list(self._not_held):
            if len(self.descriptors) == self._wanted:
                break
            if self._lock(name):
                self._not_held.remove(name)
        if len(self.descriptors) < self._wanted:
            return False
        self._release_gate()
        return True

    def close(self) -> None:
        """Release the slots of this process. A child process keeps its slots."""
        self._release_gate()
        while self.descriptors:
            os.close(self.descriptors.pop())

    def _lock(self, name: str) -> bool:
        descriptor = _open_locked(self._folder / name)
        if descriptor is not None:
            self.descriptors.append(descriptor)
        return descriptor is not None

    def _release_gate(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None


class MemoryBudget:
    """Memory for decoding. All processes together use at most `budget_bytes`, in slots that are files in `folder`.

    One reservation always fits, even in a small budget. A quarter of the slots is for work that needs only one slot, so
    this work never waits for large work. A reservation of a child process ends with the child.
    """

    def __init__(self, folder: Path, budget_bytes: int) -> None:
        self.folder = folder
        self.slots = max(1, budget_bytes // SLOT_BYTES)
        self.kept_for_small = 0 if self.slots == 1 else max(1, self.slots // 4)

    async def reserve(self, needed_bytes: int, timeout_seconds: float) -> MemoryReservation:
        """Wait for a reservation. Raise LockTimeout or OSError. A canceled call does not keep a slot."""
        reservation, give_up_at = self.prepare(needed_bytes), time.monotonic() + timeout_seconds
        try:
            while not reservation.try_begin():
                if time.monotonic() >= give_up_at:
                    raise LockTimeout("Other images and videos use all memory for decoding.")
                await asyncio.sleep(POLL_SECONDS)
        except BaseException:
            reservation.close()
            raise
        return reservation

    def prepare(self, needed_bytes: int) -> MemoryReservation:
        """Return a reservation without slots."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        express = range(self.kept_for_small if needed_bytes <= SLOT_BYTES else 0)
        slots = range(self.kept_for_small, self.slots)
        return MemoryReservation(self.folder, express, slots, min(in_slots(needed_bytes) // SLOT_BYTES, len(slots)))


# --- one event loop --------------------------------------------------------------------------------------------------


class FairSemaphore:
    """Limits the tasks of one event loop that run at the same time, fairly by key.

    Waiting tasks begin alternately by key, so a caller with many tasks does not delay other callers. A key without a
    running task has one additional slot, and does not wait for tasks of other keys.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The waiting tasks by key, oldest first. The first key is next."""

    @contextlib.asynccontextmanager
    async def slot(self, key: str, timeout_seconds: float) -> AsyncIterator[None]:
        """Wait for a slot. Raise LockTimeout. A canceled call does not keep a slot."""
        if key not in self._waiting and self._may_begin(key):
            self._running[key] += 1
        else:
            await self._wait(key, timeout_seconds)
        try:
            yield
        finally:
            self._end(key)

    def _may_begin(self, key: str) -> bool:
        running = self._running.total()
        return running < self._at_once or (running == self._at_once and key not in self._running)

    async def _wait(self, key: str, timeout_seconds: float) -> None:
        begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(begins)
        try:
            async with asyncio.timeout(timeout_seconds):
                await begins
        except BaseException as error:
            if begins.done() and not begins.cancelled():
                self._end(key)  # the slot became free at the moment of the timeout
            else:
                self._waiting[key].remove(begins)
                if not self._waiting[key]:
                    del self._waiting[key]
            if isinstance(error, TimeoutError):
                raise LockTimeout("Other tasks used all slots until the timeout.") from None
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
                self._waiting[following] = waiting  # after the other keys
