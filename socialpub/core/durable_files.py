"""Files that are still there after a power cut.

A file's bytes are flushed with `os.fsync`; its name is an entry of its folder, which has to be flushed as well.
"""

import os
from pathlib import Path


def flush_folder(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
