"""Reserves disk space for transfers in progress, so that together they never fill the disk."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from socialpub.core import locks
from socialpub.core.errors import Unavailable

# MERGED from media/disk_errors.py: What a disk that cannot be written means to a caller: the same request may succ

_FULL = {errno.ENOSPC, errno.EDQUOT}
_BROKEN = {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


def disk_full() -> Unavailable:
    return Unavailable("The disk is full. Make room and send the request again.", retry_after_seconds=60)


def as_unavailable(error: OSError) -> Exception:
    """Unavailable when the disk is at fault, else the error itself."""
    if error.errno in _FULL:
        return disk_full()
    if error.errno in _BROKEN:
        return Unavailable("The media folder cannot be written. Look at the disk.", retry_after_seconds=60)
    return error


# MERGED from media/disk_promises.py: Room on the disk, promised to what is on its way: all transfers together neve

RESERVATION_SUFFIX = ".promised"

_ANNOUNCE_BYTES = 4 * 1024 * 1024
"""So much may have been brought before the other processes are told. Until then they count too much, never too little.
After as much the disk is asked again, too: other programs fill it as well."""

SLOW_SECONDS = 30.0
SLOW_BYTES_PER_SECOND = 16 * 1024
"""Who brings less, for so long, keeps its promise only while nobody else needs the room. The slowest home connection
brings several times as much."""


class DiskPromises:
    """The promises of this process."""

    def __init__(
        self, folder: Path, floor_bytes: int, free_bytes: Callable[[], int], monotonic: Callable[[], float]
    ) -> None:
        """`folder` is shared by all processes. `free_bytes` says how much can still be written, `monotonic` the time
        in seconds."""
        self._folder = folder
        self._floor_bytes = floor_bytes
        self._measure = free_bytes
        self._monotonic = monotonic
        self._lock = threading.RLock()
        self._made: set[DiskPromise] = set()
        self._left_bytes = 0
        self._told_bytes = 0
        self._told_in: tuple[int, Path] | None = None
        self._free_bytes = 0
        self._unmeasured_bytes = 0

    def make(self, size_bytes: int, *, for_accepted_post: bool = False) -> "DiskPromise":
        """Room for so many bytes, none to begin with perhaps; to be used in a `with`. Raises Unavailable.

        What an accepted post needs in order to go out may use half of what is kept for rows.
        """
        promise = DiskPromise(self, self._floor_bytes // 2 if for_accepted_post else self._floor_bytes)
        promise.resize(size_bytes)
        return promise

    # --- by promises -------------------------------------------------------------------------------------------------

    def resize(self, promise: "DiskPromise", size_bytes: int) -> None:
        """Announced before it is checked: two processes at once may both be refused, never both be granted the same
        room."""
        now = self._monotonic()
        with self._lock:
            self._made.add(promise)
            self._left_bytes += size_bytes - promise.left_bytes
            promise.mark(now, size_bytes)
            try:
                self._tell()
                self._free_bytes, self._unmeasured_bytes = self._measure(), 0
                missing_bytes = promise.least_free_bytes + self._left_bytes + self._others() - self._free_bytes
                if size_bytes and missing_bytes > 0:
                    self._make_way(promise, missing_bytes, now)
            except OSError as error:
                self.drop(promise)
                raise as_unavailable(error) from error
            except BaseException:
                self.drop(promise)
                raise

    def spend(self, promise: "DiskPromise", size_bytes: int) -> None:
        """So many of the promised bytes are being written now."""
        now = self._monotonic()
        with self._lock:
            if promise not in self._made:
                raise _reservation_lost()
            if self._unmeasured_bytes >= _ANNOUNCE_BYTES:
                self._free_bytes, self._unmeasured_bytes = self._measure(), 0
                self._tell()
            if self._free_bytes - promise.left_bytes < promise.least_free_bytes:
                raise disk_full()
            self._free_bytes -= size_bytes
            self._unmeasured_bytes += size_bytes
            promise.left_bytes -= size_bytes
            self._left_bytes -= size_bytes
            if promise.is_judged(now) and not promise.is_slow(now):
                promise.mark(now, promise.left_bytes)

    def drop(self, promise: "DiskPromise") -> None:
        """Give back what is left of it."""
        with self._lock:
            if promise in self._made:
                self._made.remove(promise)
                self._left_bytes -= promise.left_bytes
                self._tell()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _make_way(self, promise: "DiskPromise", missing_bytes: int, now: float) -> None:
        """Have slow ones give back their room. Raises Unavailable when that would not be enough."""
        slow = sorted((one for one in self._made if one is not promise and one.is_slow(now)), key=_left_bytes)
        if sum(map(_left_bytes, slow)) < missing_bytes:
            if self._free_bytes - promise.left_bytes < promise.least_free_bytes:
                raise disk_full()
            raise _all_reserved()
        while missing_bytes > 0:
            missing_bytes -= slow[-1].left_bytes
            self.drop(slow.pop())

    def _tell(self) -> None:
        if not self._made:
            if self._told_in is not None:
                fd, path = self._told_in
                self._told_in, self._told_bytes = None, 0
                path.unlink(missing_ok=True)
                os.close(fd)
        elif self._told_bytes != self._left_bytes:
            if self._told_in is None:
                self._told_in = locks.create_locked_file(self._folder, f"*{RESERVATION_SUFFIX}")
            os.pwrite(self._told_in[0], b"%020d" % self._left_bytes, 0)
            self._told_bytes = self._left_bytes

    def _others(self) -> int:
        """What the other processes say that they have promised."""
        promised = 0
        own = None if self._told_in is None else self._told_in[1]
        for path in self._folder.glob(f"*{RESERVATION_SUFFIX}"):
            if path != own and not locks.remove_if_unlocked(path):
                promised += _read(path)
        return promised


class DiskPromise:
    """Room for one transfer. `left_bytes` is what it may still bring; leaving the `with` gives that back."""

    def __init__(self, promises: DiskPromises, least_free_bytes: int) -> None:
        self._promises = promises
        self.least_free_bytes = least_free_bytes
        self.left_bytes = 0
        self._marked_at = 0.0
        self._marked_left_bytes = 0

    def resize(self, size_bytes: int) -> None:
        """Room for so many bytes from now on. Raises Unavailable; then nothing is promised any more."""
        self._promises.resize(self, size_bytes)

    def spend(self, size_bytes: int) -> None:
        """To be called before so many of the bytes are written. Raises Unavailable when other programs have filled the
        disk meanwhile, or the room had to be given to somebody who is quicker."""
        self._promises.spend(self, size_bytes)

    def mark(self, now: float, left_bytes: int) -> None:
        """From here on it is judged anew whether it is slow."""
        self.left_bytes = left_bytes
        self._marked_at, self._marked_left_bytes = now, left_bytes

    def is_judged(self, now: float) -> bool:
        return now - self._marked_at >= SLOW_SECONDS

    def is_slow(self, now: float) -> bool:
        seconds = now - self._marked_at
        return self.is_judged(now) and self._marked_left_bytes - self.left_bytes < SLOW_BYTES_PER_SECOND * seconds

    def __enter__(self) -> "DiskPromise":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._promises.drop(self)


def _left_bytes(promise: DiskPromise) -> int:
    return promise.left_bytes


def _read(path: Path) -> int:
    try:
        return int(path.read_bytes() or 0)
    except (OSError, ValueError):  # it has ended meanwhile, or is another user's
        return 0


def _all_reserved() -> Unavailable:
    return Unavailable(
        "Other transfers are on their way, and the disk has no room for this one beside them. Send it again when they "
        "have ended.",
        retry_after_seconds=10,
    )


def _reservation_lost() -> Unavailable:
    return Unavailable(
        f"This transfer brought less than {SLOW_BYTES_PER_SECOND // 1024} KiB a second, and another one needed the "
        "room. Send it again.",
        retry_after_seconds=60,
    )
