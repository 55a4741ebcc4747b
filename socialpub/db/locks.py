"""The running processes: a row names the process that works on it, and is free when that process has ended.

A lock file shows that a process lives, whatever the clock shows.
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
"""How the name of a lock file ends before it is locked."""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class ProcessLock:
    """This process, as rows name it. Alive exactly as long as the kernel holds its lock."""

    def __init__(self, folder: Path, name: str) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.name = name
        self._claimed: dict[str, object] = {}
        self._follows_a_death: bool | None = None
        for old in sorted(folder.glob("*.died"), key=lambda path: path.stat().st_mtime)[:-KEPT_DEATHS]:
            old.unlink(missing_ok=True)
        for unfinished in folder.glob(f"*{_NEW}"):
            if not locks.is_locked(unfinished):
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
        if locks.is_locked(path):
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
        """Describe this process for `descriptions`."""
        self._lock.write(_RUNNING + text.encode())

    def others(self) -> list[str]:
        """Return the names of all other processes that have not ended in order, alive or not."""
        return [path.stem for path in sorted(self.folder.glob("*.lock")) if path.stem != self.name]

    def forget_dead(self) -> None:
        """Remove the lock files of dead processes. The notes of their deaths stay."""
        for name in self.others():
            self.is_alive(name)

    def descriptions(self) -> dict[str, str]:
        """Return the descriptions of the living processes by name, without those that are stopping."""
        found = {}
        for path in sorted(self.folder.glob("*.lock")):
            with suppress(FileNotFoundError):  # it may end while we look
                content = path.read_bytes()
                if content.startswith(_RUNNING) and self.is_alive(path.stem):
                    found[path.stem] = content[len(_RUNNING) :].decode()
        return found

    def mark_stopping(self) -> None:
        """Note that this process was asked to end: no row that it leaves killed it. A signal may call this."""
        self._lock.write(_STOPPING)

    def ended_in_order(self, name: str) -> bool:
        """Return whether a process that is not alive was asked to end, and did not die."""
        return _NAME.fullmatch(name) is None or not (self.folder / f"{name}.died").exists()

    def claim_in_process(self, row_id: str) -> bool:
        """Claim a row for one thread of this process. False: another thread has it."""
        mine = object()
        return self._claimed.setdefault(row_id, mine) is mine

    def release(self, row_id: str) -> None:
        self._claimed.pop(row_id, None)

    def works_on(self, name: str, row_id: str) -> bool:
        """Return whether a thread still works on a running row that names this process.

        A process that lives may have lost the thread that had the row, or failed to write down how it ended.
        """
        return row_id in self._claimed if name == self.name else self.is_alive(name)

    def close(self) -> None:
        self._lock.path.unlink(missing_ok=True)
        self._lock.release()


def living_processes(folder: Path) -> list[str]:
    """Return the names of the processes that hold their lock in this folder, which may be missing."""
    return [path.stem for path in sorted(folder.glob("*.lock")) if locks.is_locked(path)]


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
