"""The media folder: storage keys, incoming files, stored files, and the removal of orphans.

A key may come from a foreign database, so an invalid key leads to a file in the media folder that never exists. Bytes
arrive under a temporary name, are flushed and then renamed. The file stays locked until a row contains the key, so a
file without a lock and without a row is an orphan.
"""

import errno
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from socialpub.core import locks, logging
from socialpub.core.durable_files import flush_folder
from socialpub.core.errors import Conflict
from socialpub.media import reservations
from socialpub.media.reservations import DiskReservations, as_unavailable

# --- storage keys ----------------------------------------------------------------------------------------------------

RENDITIONS = "fitted"
"""The folder of renditions, with a folder for each delivery."""

THUMBNAILS = "thumbnails"
"""The folder of thumbnails, each under the storage key of its artifact."""

_NOWHERE = "nowhere"
_SUFFIXES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/heif": "heif",
    "image/avif": "avif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
_KEY = re.compile(r"[0-9a-f]{2}/[0-9a-f-]{36}-[0-9a-f]{16}\.[a-z0-9]{2,4}")
_RENDITION_KEY = re.compile(RENDITIONS + r"/[0-9a-z-]{1,36}/[0-9a-f]{24}")


def rendition_key(delivery_id: str, name: str) -> str:
    """Return the key of a delivery's rendition; `name` is 24 hexadecimal digits."""
    return f"{RENDITIONS}/{delivery_id}/{name}"


def is_storage_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


def file_path(root: Path, key: str) -> Path:
    """Return the path of the bytes, which may not exist."""
    if is_storage_key(key) or _RENDITION_KEY.fullmatch(key):
        return root / key
    return root / _NOWHERE / sha256(key.encode(errors="surrogatepass")).hexdigest()


def thumbnail_path(root: Path, key: str) -> Path:
    """Return the path of the artifact's thumbnail, which may not exist."""
    return root / THUMBNAILS / f"{key}.jpg" if is_storage_key(key) else file_path(root, key)


# --- incoming files --------------------------------------------------------------------------------------------------

PART_SUFFIX = ".part"

_QUICKLY_FREED_BYTES = 16 * 1024 * 1024


class IncomingFile:
    """An incoming file. Leaving the `with` removes the file, unless `record` was called."""

    def __init__(self, folder: Path, root: Path, name: str) -> None:
        """A unique text replaces the `*` in `name`. Raise Unavailable."""
        self._root = root
        self._lock = threading.Lock()
        self._recorded = False
        self.size_bytes = 0
        try:
            self._fd, self.path = locks.create_locked_file(folder, name + PART_SUFFIX)
        except OSError as error:
            raise as_unavailable(error) from error

    def write(self, data: bytes) -> None:
        """Append bytes. Raise Unavailable if the disk is full."""
        view = memoryview(data)
        try:
            while view:
                written = os.write(self._fd, view)
                self.size_bytes += written
                view = view[written:]
        except OSError as error:
            raise as_unavailable(error) from error

    def keep(self, storage_key: str) -> None:
        """Flush the bytes to the disk and rename the file. Do not call this on the event loop.

        Raise Unavailable if the disk is full, and ValueError for an invalid storage key.
        """
        if not is_storage_key(storage_key):
            raise ValueError(f"not a storage key: {storage_key[:100]!r}")
        target = file_path(self._root, storage_key)
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
        """Keep the file, because a committed row contains the key."""
        self._recorded = True

    def __enter__(self) -> "IncomingFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # After a cancellation, the write of the row may still happen. Only the lock is released, so the file becomes an
        # orphan if no row contains the key.
        self.close(remove=kind is None or issubclass(kind, Exception))

    def close(self, *, remove: bool = True) -> None:
        """Release the lock, and remove the file if no row contains the key."""
        with self._lock:  # `keep` may still run on another thread
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            removed = remove and not self._recorded
            if removed:
                self.path.unlink(missing_ok=True)
        if removed and self.size_bytes > _QUICKLY_FREED_BYTES:
            # The last close frees the disk space of a removed file, which takes tens of milliseconds for a video.
            threading.Thread(target=os.close, args=(fd,), name="free").start()
        else:
            os.close(fd)


# --- the folder ------------------------------------------------------------------------------------------------------

log = logging.get_logger(__name__)

Recorded = Callable[[list[str]], Iterable[str]]
"""Returns the storage keys among these that rows contain."""

MAX_PUTS = 2
"""Simultaneous transfers of one artifact: a repeated transfer next to a transfer that hangs."""


class Files:
    """The media folder: `incoming/` for incoming files, and 256 folders for stored files."""

    def __init__(self, media_dir: Path, floor_bytes: int = 0, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Incoming files always leave `floor_bytes` of the disk free."""
        self.root = media_dir
        self._incoming = media_dir / "incoming"
        self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.reservations = DiskReservations(self._incoming, floor_bytes, lambda: self.free_bytes(), monotonic)

    def new_key(self, artifact_id: str, mime_type: str) -> str:
        """Return a new storage key. Every PUT of an artifact has its own key."""
        # The end of an id is random. Its beginning is the time, which would fill one folder after another.
        return f"{artifact_id[-2:]}/{artifact_id}-{secrets.token_hex(8)}.{_SUFFIXES[mime_type]}"

    def receive(self, artifact_id: str | None = None) -> IncomingFile:
        """Return a new incoming file. Raise Unavailable, or Conflict for too many transfers of one artifact."""
        if artifact_id is None:
            return IncomingFile(self._incoming, self.root, "*")
        arriving = list(self._incoming.glob(f"{artifact_id}.*{PART_SUFFIX}"))
        if len(arriving) >= MAX_PUTS and sum(not locks.remove_if_unlocked(part) for part in arriving) >= MAX_PUTS:
            raise Conflict(f"{MAX_PUTS} PUT requests of this upload are in progress. Wait until one of them has ended.")
        return IncomingFile(self._incoming, self.root, f"{artifact_id}.*")

    def path(self, storage_key: str) -> Path:
        """Return the path of the bytes, which may not exist."""
        return file_path(self.root, storage_key)

    def remove(self, storage_key: str) -> None:
        """Remove the bytes, which may not exist."""
        if not is_storage_key(storage_key):
            log.warning("a row contains an invalid storage key; nothing was removed", key=storage_key[:100])
            return
        self.path(storage_key).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        disk = os.statvfs(self.root)
        return disk.f_bavail * disk.f_frsize

    def try_writing(self) -> None:
        """Create and remove a file. Raise OSError."""
        try:
            os.close(os.open(self._incoming, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):  # a file system without unnamed files
                raise
            if not os.access(self._incoming, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None

    def remove_orphans(self, recorded: Recorded) -> int:
        """Remove files without a lock and without a row. Return their number. Foreign files stay."""
        removed = 0
        for suffix in (PART_SUFFIX, reservations.RESERVATION_SUFFIX):
            removed += sum(locks.remove_if_unlocked(left) for left in self._incoming.glob(f"*{suffix}"))
        for keys in self._keys():
            for key in set(keys) - set(recorded(keys)):
                # Check again after locking: another process may have recorded and unlocked the file.
                removed += locks.remove_if_unlocked(self.root / key, lambda key=key: bool(list(recorded([key]))))  # type: ignore[misc]
        return removed

    def _keys(self) -> Iterator[list[str]]:
        for folder in sorted(self.root.iterdir()):
            if len(folder.name) != 2 or not folder.is_dir():
                continue
            names = [f"{folder.name}/{name}" for name in os.listdir(folder)]  # noqa: PTH208  # only names are needed
            names = [name for name in names if is_storage_key(name)]
            for start in range(0, len(names), 500):
                yield names[start : start + 500]
