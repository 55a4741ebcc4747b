"""Files that somebody holds: locked by the kernel as long as their process lives and wants them.

Without its lock such a file is an orphan, whatever the clock says and whichever process died.
"""

import fcntl
import os
import secrets
from collections.abc import Callable
from pathlib import Path


def create(folder: Path, name: str) -> tuple[int, Path]:
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


def remove_if_free(path: Path, still_wanted: Callable[[], bool] = lambda: False) -> bool:
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
