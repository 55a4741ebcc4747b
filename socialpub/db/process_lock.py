"""The running processes. A row contains the name of its process and is free when that process has ended.

A process is alive while the kernel holds its lock file.
"""

import re
import secrets
from contextlib import suppress
from pathlib import Path

from socialpub.core import locks
from socialpub.core.locks import FileLock

_RUNNING, _STOPPING = b"running \n", b"stopping\n"
"""The beginning of a process's lock file. Both have the same length, so one write replaces the other."""
KEPT_DEATHS = 100
_NEW = ".new"
"""The suffix of a lock file that is not locked yet."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class ProcessLock:
    """The lock of this process, under the name that rows contain."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.name = name
        self._claimed: dict[str, object] = {}
        for old in sorted(folder.glob("*.died"), key=lambda path: path.stat().st_mtime)[:-KEPT_DEATHS]:
            old.unlink(missing_ok=True)
        for unfinished in folder.glob(f"*{_NEW}"):
            if not locks.is_locked(unfinished):
                unfinished.unlink(missing_ok=True)
        self._lock = _create_locked(folder / f"{name}.lock")

    def is_alive(self, name: str) -> bool:
        """Return whether the process of a row is alive. A stopped or suspended process is alive."""
        if name == self.name:
            return True
        # A row of a foreign database may contain any name, and this method removes files.
        if _NAME.fullmatch(name) is None:
            return False
        path = self.folder / f"{name}.lock"
        if locks.is_locked(path):
            return True
        # Names are never used twice. Without a file, the process ended in order, or another process removed the file.
        with suppress(FileNotFoundError):
            if not path.read_bytes().startswith(_STOPPING):
                # The process that takes over the rows must know of the death, even if another process found it first.
                path.with_suffix(".died").touch()
            path.unlink()
        return False

    def describe(self, text: str) -> None:
        """Store the text that `descriptions` returns for this process."""
        self._lock.write(_RUNNING + text.encode())

    def others(self) -> list[str]:
        """Return the names of the other processes that are alive or died."""
        return [path.stem for path in sorted(self.folder.glob("*.lock")) if path.stem != self.name]

    def forget_dead(self) -> None:
        """Remove the lock files of dead processes. The notes of their deaths stay."""
        for name in self.others():
            self.is_alive(name)

    def descriptions(self) -> dict[str, str]:
        """Return the descriptions of the living processes by name, without stopping processes."""
        descriptions = {}
        for path in sorted(self.folder.glob("*.lock")):
            with suppress(FileNotFoundError):  # the process may end now
                content = path.read_bytes()
                if content.startswith(_RUNNING) and self.is_alive(path.stem):
                    descriptions[path.stem] = content[len(_RUNNING) :].decode()
        return descriptions

    def mark_stopping(self) -> None:
        """Note that this process ends in order, so its rows did not cause its end. A signal handler may call this."""
        self._lock.write(_STOPPING)

    def ended_in_order(self, name: str) -> bool:
        """Return whether a process that is not alive ended in order."""
        return _NAME.fullmatch(name) is None or not (self.folder / f"{name}.died").exists()

    def claim_in_process(self, row_id: str) -> bool:
        """Claim a row for one thread of this process. Return False if another thread has it."""
        mine = object()
        return self._claimed.setdefault(row_id, mine) is mine

    def release(self, row_id: str) -> None:
        self._claimed.pop(row_id, None)

    def works_on(self, name: str, row_id: str) -> bool:
        """Return whether a thread works on a running row of this process.

        A living process may have lost the thread of the row, or failed to store the result.
        """
        return row_id in self._claimed if name == self.name else self.is_alive(name)

    def close(self) -> None:
        self._lock.path.unlink(missing_ok=True)
        self._lock.release()


def living_processes(folder: Path) -> list[str]:
    """Return the names of the living processes in this folder, which may be missing."""
    return [path.stem for path in sorted(folder.glob("*.lock")) if locks.is_locked(path)]


def _create_locked(path: Path) -> FileLock:
    """Create a lock file that is locked before it has its name: an unlocked file means that its process is dead."""
    if path.exists():
        raise RuntimeError(f"a process named {path.stem} exists already")
    while True:
        lock = FileLock(path.with_suffix(f".{secrets.token_hex(4)}{_NEW}"))
        # Another process that removes unfinished files may lock and remove this file.
        if lock.try_acquire():
            try:
                lock.move_to(path)
            except FileNotFoundError:
                lock.release()
            else:
                return lock
