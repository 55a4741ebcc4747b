"""A copy for somebody who takes it away at once: made beside the data, and gone when it has been read.

It is named nowhere once it is complete, so that its room comes back when the reader is done or its process dies. What a
process that died in the middle left behind is removed before the next one is made, or within an hour (`clean`).
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from socialpub.core.errors import Conflict
from socialpub.media.files import StoredFile
from socialpub.ops.copies import backup
from socialpub.runtime import Runtime

FOLDER = "copies"
_LOCK = "lock"


def make(rt: Runtime) -> StoredFile:
    """A copy without secret.key, opened. Takes as long as the media are large; not from the event loop.

    Raises OperatorError when it cannot be made, and Conflict while another one is being made.
    """
    folder = rt.settings.data_dir / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    with _alone(folder):
        _clear(folder)
        target = folder / secrets.token_hex(8)
        try:
            backup.write(rt, target)
            return StoredFile(target)
        finally:
            _clear(folder)


def clean(rt: Runtime) -> None:
    """Remove what a process that died has left behind, unless a copy is being made."""
    folder = rt.settings.data_dir / FOLDER
    if folder.is_dir():
        with suppress(Conflict), _alone(folder):
            _clear(folder)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Raises Conflict when somebody makes a copy here, in whichever process."""
    fd = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict("A backup is being made already. Wait until its download begins.") from None
        yield
    finally:
        os.close(fd)


def _clear(folder: Path) -> None:
    """Everything but the lock, under it."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
