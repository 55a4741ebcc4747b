"""The bytes of media: how they arrive, where they lie, how they leave.

Bytes arrive under a temporary name, are flushed to the disk, and are then renamed: the rename is the moment they exist.
Whoever brings them holds a lock on the file until a row names it, so that a file which nobody holds and no row names is
a stray, whatever the clock says and whichever process died. Nothing outside this file knows where a storage key lies.
"""

import errno
import fcntl
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType

from socialpub.core.durable_files import flush_folder
from socialpub.core.errors import Unavailable

Recorded = Callable[[list[str]], Iterable[str]]
"""Which of these storage keys rows name."""

_SUFFIXES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
_KEY = re.compile(r"([0-9a-f]{2})/[0-9a-f-]{36}-[0-9a-f]{16}\.[a-z0-9]{2,4}")
_PART = ".part"
_QUICKLY_FREED_BYTES = 16 * 1024 * 1024
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_BROKEN = {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


def is_key(text: str) -> bool:
    """Whether this has the form of a storage key, which never leads out of the media folder."""
    return _KEY.fullmatch(text) is not None


class Incoming:
    """A file on its way in. Leaving the `with` removes it, unless a row was said to name it (`record`)."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._recorded = False
        self.size_bytes = 0
        try:
            self._fd, self.path = _create(folder)
        except OSError as error:
            raise trouble(error) from error

    def write(self, data: bytes) -> None:
        """Append. Raises Unavailable when the disk is full."""
        view = memoryview(data)
        try:
            while view:
                written = os.write(self._fd, view)
                self.size_bytes += written
                view = view[written:]
        except OSError as error:
            raise trouble(error) from error

    def keep(self, storage_key: str) -> None:
        """Have the bytes on the disk, then under their own name. Waits for the disk: not on the event loop.

        Raises Unavailable when the disk is full.
        """
        target = self._root / storage_key
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
                raise trouble(error) from error

    def record(self) -> None:
        """A row that is on the disk names this file now: it stays."""
        self._recorded = True

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Who is canceled does not know whether the write that was to name the file still happens. Then it is only let
        # go of: if no row comes to name it, the sweep takes it.
        canceled = kind is not None and not issubclass(kind, Exception)
        self.close(remove=not canceled)

    def close(self, *, remove: bool = True) -> None:
        """Let go of the file, and remove it when nothing names it."""
        with self._lock:  # `keep` may still be at work on another thread
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            removed = remove and not self._recorded
            if removed:
                self.path.unlink(missing_ok=True)
        if removed and self.size_bytes > _QUICKLY_FREED_BYTES:
            # The disk space of a removed file is given back by the last close: tens of milliseconds for a film.
            threading.Thread(target=os.close, args=(fd,), name="free").start()
        else:
            os.close(fd)


class Stored:
    """An opened file: reading goes on even when it is removed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size_bytes = os.fstat(self._fd).st_size

    def at_hand(self, offset: int, length: int) -> bytes | None:
        """Up to `length` bytes if they lie in memory, else None: then `read` has to wait for the disk."""
        if _NOWAIT is None:
            return None
        buffer = bytearray(length)
        try:
            got = os.preadv(self._fd, [buffer], offset, _NOWAIT)
        except OSError:  # not in memory, or a file system that cannot say
            return None
        return bytes(memoryview(buffer)[:got])

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes. May wait for the disk."""
        with self._lock:
            return os.pread(self._fd, length, offset)

    def __enter__(self) -> "Stored":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:  # a canceled reader's thread may still be reading
            os.close(self._fd)


_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)


class Files:
    """The media folder: `incoming/` for what is arriving, 256 folders for what is there."""

    def __init__(self, media_dir: Path) -> None:
        self.root = media_dir
        self._incoming = media_dir / "incoming"
        self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)

    def new_key(self, artifact_id: str, mime_type: str) -> str:
        """A storage key that was never used: every PUT of an artifact gets one of its own."""
        # The end of an id is random; its beginning is the time, which would fill one folder after the other.
        return f"{artifact_id[-2:]}/{artifact_id}-{secrets.token_hex(8)}.{_SUFFIXES[mime_type]}"

    def receive(self) -> Incoming:
        """A place for arriving bytes. Raises Unavailable."""
        return Incoming(self._incoming, self.root)

    def path(self, storage_key: str) -> Path:
        """Where the bytes are, for a provider or the examiner's child. They may be gone."""
        return self.root / storage_key

    def open(self, storage_key: str) -> Stored:
        """Open for reading. Raises FileNotFoundError."""
        return Stored(self.path(storage_key))

    def remove(self, storage_key: str) -> None:
        """Remove the bytes; nothing happens when they are gone already."""
        self.path(storage_key).unlink(missing_ok=True)

    def free_bytes(self) -> int:
        """What may still be written."""
        room = os.statvfs(self.root)
        return room.f_bavail * room.f_frsize

    def check_room(self, size_bytes: int) -> None:
        """Raises Unavailable when a file of this size cannot fit."""
        if self.free_bytes() < size_bytes:
            raise full()

    def sweep(self, recorded: Recorded) -> int:
        """Remove what nobody holds and no row names; how many files. Files that are not ours are left alone."""
        removed = 0
        for part in self._incoming.glob(f"*{_PART}"):
            removed += _remove_if_free(part, lambda: False)
        for keys in self._keys():
            for key in set(keys) - set(recorded(keys)):
                # Asked again once the lock is ours: its owner may have recorded it and let go in between.
                removed += _remove_if_free(self.root / key, lambda key=key: bool(list(recorded([key]))))  # type: ignore[misc]
        return removed

    def _keys(self) -> Iterator[list[str]]:
        for folder in sorted(self.root.iterdir()):
            if len(folder.name) != 2 or not folder.is_dir():
                continue
            names = [f"{folder.name}/{name}" for name in os.listdir(folder)]  # noqa: PTH208  # names are all we need
            names = [name for name in names if _KEY.fullmatch(name)]
            for start in range(0, len(names), 500):
                yield names[start : start + 500]


def full() -> Unavailable:
    return Unavailable("The disk is full. Make room and send the request again.", retry_after_seconds=60)


def trouble(error: OSError) -> Exception:
    """Unavailable when the disk is at fault, else the error itself."""
    if error.errno in _NO_ROOM:
        return full()
    if error.errno in _BROKEN:
        return Unavailable("The media folder cannot be written. Look at the disk.", retry_after_seconds=60)
    return error


def _create(folder: Path) -> tuple[int, Path]:
    while True:
        path = folder / (secrets.token_hex(12) + _PART)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd, path
        os.close(fd)  # a sweep was quicker than our lock


def _remove_if_free(path: Path, still_wanted: Callable[[], bool]) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
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
