"""Locks between processes, held by the kernel: a process that dies releases them at once, whatever the clock shows.

`ProcessLock` ends a lease: a running row names the process that has it, and is free only when that process's lock
file is.
`Turnstile` lets the processes that write queue fairly: SQLite's own busy handler polls and starves one side.
"""

import fcntl
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_RUNNING, _STOPPING = b"running \n", b"stopping\n"
"""How the lock file of a process begins; both have the same length, so that one takes the other's place at once."""
KEPT_DEATHS = 100
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class FileLock:
    """One exclusive flock on one file. Not reentrant; a second opening in the same process counts as another holder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    def try_acquire(self) -> bool:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def acquire(self) -> None:
        """Wait as long as it takes."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self._fd = fd

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
        if self.file == file:
            self.path.unlink(missing_ok=True)
        return self.try_acquire()

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
        self._lock = FileLock(folder / f"{name}.lock")
        for old in sorted(folder.glob("*.died"), key=lambda path: path.stat().st_mtime)[:-KEPT_DEATHS]:
            old.unlink(missing_ok=True)
        if not self._lock.try_acquire():
            raise RuntimeError(f"a process named {name} exists already")

    def is_alive(self, name: str) -> bool:
        """Whether the process that a row names still lives (stopped or suspended counts as living)."""
        if name == self.name:
            return True
        path = self.folder / f"{name}.lock"
        # Whoever can write rows could name a file anywhere, which would be locked, removed and marked here.
        if _NAME.fullmatch(name) is None or not path.exists():
            return False
        lock = FileLock(path)
        if not lock.try_acquire():
            return True
        if not path.read_bytes().startswith(_STOPPING):
            # Its death stays known to whoever takes over its rows, though another process noticed it first.
            path.with_suffix(".died").touch()
        # Nobody holds it: its process is gone, and names are never used twice.
        path.unlink(missing_ok=True)
        lock.release()
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
    names = []
    for path in sorted(folder.glob("*.lock")):
        lock = FileLock(path)
        if lock.try_acquire():
            lock.release()
        else:
            names.append(path.stem)
    return names


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
