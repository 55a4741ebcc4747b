"""New files that are flushed to the disk and never replace another file.

A file's name reaches the disk with its folder: after naming a file, flush the folder as well.
"""

import errno
import os
from pathlib import Path
from typing import IO

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def create(path: Path) -> IO[bytes]:
    """Open a new file for writing that only this user can read. Raise FileExistsError."""
    # The file has its final mode from the beginning, so other users can never read it.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def move(source: Path, target: Path) -> None:
    """Move a finished file to its name on the same disk. Raise FileExistsError if the name is in use."""
    try:
        target.hardlink_to(source)
        source.unlink()
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Some file systems, such as those of memory sticks, have no hard links.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists", str(target)) from None
        source.rename(target)
    flush_folder(target.parent)
