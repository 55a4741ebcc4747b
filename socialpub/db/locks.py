"""Locks between processes, held by the kernel: a process that dies releases them at once, whatever the clock shows.

`ProcessLock` ends a lease: a running row names the process that has it, and is free only when that process's lock
file is.
`Turnstile` lets the processes that write queue fairly: SQLite's own busy handler polls and starves one side.
"""

import fcntl
import os
import re
import secrets
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_RUNNING, _STOPPING = b"running \n", b"stopping\n"
"""How the lock file of a process begins; both have the same length, so that one takes the other's place at once."""
KEPT_DEATHS = 100
_NEW = ".new"
"""How the name of a lock file ends before it is locked."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


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


class ProcessLock:
    """This process, as rows name it. Alive exactly as long as the kernel holds its lock."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.name = name
        self._in_hand: dict[str, object] = {}
        self._follows_a_death: bool | None = None
        for old in sorted(folder.glob("*.died"), key=lambda path: path.stat().st_mtime)[:-KEPT_DEATHS]:
            old.unlink(missing_ok=True)
        for unfinished in folder.glob(f"*{_NEW}"):
            if not _is_locked(unfinished):
                unfinished.unlink(missing_ok=True)
        self._lock = _create_locked(folder / f"{name}.lock")

    def is_alive(self, name: str) -> bool:
        """Whether the process that a row names still lives (stopped or suspended counts as living)."""
        if name == self.name:
            return True
        # A row may name any file, and the file of a dead process is removed here.
        if _NAME.fullmatch(name) is None:
            return False
        path = self.folder / f"{name}.lock"
        if _is_locked(path):
            return True
        # A file with this name is locked until its process ends, and names are never used twice. When it is gone, its
        # process ended in order, or another process was here first.
        with suppress(FileNotFoundError):
            if not path.read_bytes().startswith(_STOPPING):
                # The process that takes over its rows must know of its death, even if another one noticed it first.
                path.with_suffix(".died").touch()
            path.unlink()
        return False

    @property
    def follows_a_death(self) -> bool:
        """Whether an earlier process died, as far as that is still known."""
        if self._follows_a_death is None:
            for path in self.folder.glob("*.lock"):
                self.is_alive(path.stem)
            self._follows_a_death = any(self.folder.glob("*.died"))
        return self._follows_a_death

    def describe(self, text: str) -> None:
        """Say what this process is, for others who look at who lives."""
        self._lock.write(_RUNNING + text.encode())

    def others(self) -> list[str]:
        """The names of all other processes that have not ended in order, whether or not they live."""
        return [path.stem for path in sorted(self.folder.glob("*.lock")) if path.stem != self.name]

    def forget_dead(self) -> None:
        """Remove the lock files of those that live no more; what is to be known of their deaths stays."""
        for name in self.others():
            self.is_alive(name)

    def descriptions(self) -> dict[str, str]:
        """What the processes that live have said of themselves, by name; those that are stopping count no more."""
        found = {}
        for path in sorted(self.folder.glob("*.lock")):
            with suppress(FileNotFoundError):  # it may end while we look
                content = path.read_bytes()
                if content.startswith(_RUNNING) and self.is_alive(path.stem):
                    found[path.stem] = content[len(_RUNNING) :].decode()
        return found

    def mark_stopping(self) -> None:
        """This process was asked to end: what it leaves behind is not what killed it. May be called by a signal."""
        self._lock.write(_STOPPING)

    def ended_in_order(self, name: str) -> bool:
        """Whether a process that was found not to be alive had been asked to end, rather than died."""
        return _NAME.fullmatch(name) is None or not (self.folder / f"{name}.died").exists()

    def take(self, row_id: str) -> bool:
        """Take a row in hand, for one thread of this process. False: another thread has it."""
        mine = object()
        return self._in_hand.setdefault(row_id, mine) is mine

    def let_go(self, row_id: str) -> None:
        self._in_hand.pop(row_id, None)

    def works_on(self, name: str, row_id: str) -> bool:
        """Whether somebody still works on a running row that names this process.

        A process that lives may have lost the thread that had the row, or failed to write down how it ended.
        """
        return row_id in self._in_hand if name == self.name else self.is_alive(name)

    def close(self) -> None:
        self._lock.path.unlink(missing_ok=True)
        self._lock.release()


def living(folder: Path) -> list[str]:
    """The names of the processes that hold their lock in this folder, which may be missing."""
    return [path.stem for path in sorted(folder.glob("*.lock")) if _is_locked(path)]


def _create_locked(path: Path) -> FileLock:
    """Return the lock of a new file that is locked from the moment it has its name.

    Another process that finds it unlocked takes its process for dead and removes it.
    """
    if path.exists():
        raise RuntimeError(f"a process named {path.stem} exists already")
    while True:
        lock = FileLock(path.with_suffix(f".{secrets.token_hex(4)}{_NEW}"))
        # Another process that looks for leftovers may lock it for a moment, and remove what it took for one.
        if lock.try_acquire():
            try:
                lock.move_to(path)
            except FileNotFoundError:
                lock.release()
            else:
                return lock


def _is_locked(path: Path) -> bool:
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


class Turnstile:
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
