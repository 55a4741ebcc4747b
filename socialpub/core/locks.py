"""All locks: between processes on files, and between the tasks of one event loop.

The kernel holds a file lock and releases the lock when its process dies. No other file calls flock.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
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


def open_locked(path: Path, how: int = TRY) -> int | None:
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
            self._fd = open_locked(self.path, how)
            if self._fd is None:
                return False
            if self.is_held:
                return True
            self.release()
            # The file was removed or replaced between the two calls. Other processes lock the new file.

    def move_to(self, path: Path) -> None:
        """Rename the locked file."""
        self.path = self.path.rename(path)

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock of the file that other processes see."""
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
        self._queue = os.open(folder / "write-queue.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._write = os.open(folder / "write.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

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
