"""A file on its way into the media folder.

Bytes arrive under a temporary name, are flushed to the disk, and are then renamed: the rename is the moment they exist.
The file is locked until a row names it, or this process ends; without the lock it counts as an orphan (`files.py`).
"""

import os
import threading
from pathlib import Path
from types import TracebackType

from socialpub.core.durable_files import flush_folder
from socialpub.media import held_files, storage_keys
from socialpub.media.disk_errors import as_unavailable

PART_SUFFIX = ".part"
"""Of the temporary names."""

_QUICKLY_FREED_BYTES = 16 * 1024 * 1024


class IncomingFile:
    """A file on its way in. Leaving the `with` removes it, unless a row was said to name it (`record`)."""

    def __init__(self, folder: Path, root: Path, name: str) -> None:
        """`name` holds a `*`, which becomes something unique. Raises Unavailable."""
        self._root = root
        self._lock = threading.Lock()
        self._recorded = False
        self.size_bytes = 0
        try:
            self._fd, self.path = held_files.create(folder, name + PART_SUFFIX)
        except OSError as error:
            raise as_unavailable(error) from error

    def write(self, data: bytes) -> None:
        """Append. Raises Unavailable when the disk is full."""
        view = memoryview(data)
        try:
            while view:
                written = os.write(self._fd, view)
                self.size_bytes += written
                view = view[written:]
        except OSError as error:
            raise as_unavailable(error) from error

    def keep(self, storage_key: str) -> None:
        """Flush the bytes to the disk, then give them their own name. Waits for the disk: not on the event loop.

        Raises Unavailable when the disk is full, and ValueError for what is no storage key.
        """
        if not storage_keys.is_key(storage_key):
            raise ValueError(f"not a storage key: {storage_key[:100]!r}")
        target = storage_keys.path(self._root, storage_key)
        with self._lock:
            try:
                os.fsync(self._fd)
                if not target.parent.is_dir():
                    target.parent.mkdir(mode=0o700, exist_ok=True)
                    flush_folder(self._root)
                self.path.rename(target)
                self.path = target
                flush_folder(target.parent)
            except OSError as error:
                raise as_unavailable(error) from error

    def record(self) -> None:
        """A committed row names this file now: it stays."""
        self._recorded = True

    def __enter__(self) -> "IncomingFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Who is canceled does not know whether the write that was to name the file still happens. Then only the lock is
        # given up: if no row comes to name the file, it is removed as an orphan.
        canceled = kind is not None and not issubclass(kind, Exception)
        self.close(remove=not canceled)

    def close(self, *, remove: bool = True) -> None:
        """Give up the lock, and remove the file when no row names it."""
        with self._lock:  # `keep` may still be at work on another thread
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            removed = remove and not self._recorded
            if removed:
                self.path.unlink(missing_ok=True)
        if removed and self.size_bytes > _QUICKLY_FREED_BYTES:
            # The disk space of a removed file is given back by the last close: tens of milliseconds for a video.
            threading.Thread(target=os.close, args=(fd,), name="free").start()
        else:
            os.close(fd)
