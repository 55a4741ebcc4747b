"""Reserves disk space for transfers in progress, so that together they never fill the disk.

The remaining bytes of all transfers must fit into the free space above a floor, which stays free for posts and tokens.
Each process writes its sum to a locked file, and other processes read the sum. If a process dies, its reservations end.
"""

import errno
import os
import threading
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

from socialpub.core import locks
from socialpub.core.errors import Unavailable, disk_full

RESERVATION_SUFFIX = ".promised"

_ANNOUNCE_BYTES = 4 * 1024 * 1024
"""After this number of bytes, a process updates its sum and measures the disk again. Until then, the sum is too
high."""

SLOW_SECONDS = 30.0
SLOW_BYTES_PER_SECOND = 16 * 1024
"""A transfer below this speed for `SLOW_SECONDS` loses its space when another transfer needs the space. The slowest
home connection is several times faster."""

_FULL = {errno.ENOSPC, errno.EDQUOT}
_BROKEN = {errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE}


def as_unavailable(error: OSError) -> Exception:
    """Return Unavailable for an error of the disk, otherwise the error itself."""
    if error.errno in _FULL:
        return disk_full()
    if error.errno in _BROKEN:
        return Unavailable("The media folder cannot be written. Check the disk.", retry_after_seconds=60)
    return error


class DiskReservations:
    def __init__(
        self, folder: Path, floor_bytes: int, free_bytes: Callable[[], int], monotonic: Callable[[], float]
    ) -> None:
        """All processes share `folder`. `free_bytes` measures the disk."""
        self._folder = folder
        self._floor_bytes = floor_bytes
        self._measure = free_bytes
        self._monotonic = monotonic
        self._lock = threading.RLock()
        self._active: set[DiskReservation] = set()
        self._left_bytes = 0
        self._announced_bytes = 0
        self._announced_in: tuple[int, Path] | None = None
        self._free_bytes = 0
        self._unmeasured_bytes = 0

    def reserve(self, size_bytes: int, *, for_accepted_post: bool = False) -> "DiskReservation":
        """Reserve space for a transfer; use the result in a `with`. Raise Unavailable.

        The delivery of an accepted post may use half of the floor.
        """
        reservation = DiskReservation(self, self._floor_bytes // 2 if for_accepted_post else self._floor_bytes)
        reservation.resize(size_bytes)
        return reservation

    # --- called by reservations --------------------------------------------------------------------------------------

    def resize(self, reservation: "DiskReservation", size_bytes: int) -> None:
        """Announce the size, then check it. Two processes may both be rejected, but never get the same space."""
        now = self._monotonic()
        with self._lock:
            self._active.add(reservation)
            self._left_bytes += size_bytes - reservation.left_bytes
            reservation.mark(now, size_bytes)
            try:
                self._announce()
                self._free_bytes, self._unmeasured_bytes = self._measure(), 0
                missing_bytes = reservation.floor_bytes + self._left_bytes + self._others() - self._free_bytes
                if size_bytes and missing_bytes > 0:
                    self._revoke_slow(reservation, missing_bytes, now)
            except OSError as error:
                self.release(reservation)
                raise as_unavailable(error) from error
            except BaseException:
                self.release(reservation)
                raise

    def spend(self, reservation: "DiskReservation", size_bytes: int) -> None:
        now = self._monotonic()
        with self._lock:
            if reservation not in self._active:
                raise Unavailable(
                    f"This transfer was slower than {SLOW_BYTES_PER_SECOND // 1024} KiB per second, and another "
                    "transfer needed its disk space. Send the file again.",
                    retry_after_seconds=60,
                )
            if self._unmeasured_bytes >= _ANNOUNCE_BYTES:
                self._free_bytes, self._unmeasured_bytes = self._measure(), 0
                self._announce()
            if self._free_bytes - reservation.left_bytes < reservation.floor_bytes:
                raise disk_full()
            self._free_bytes -= size_bytes
            self._unmeasured_bytes += size_bytes
            reservation.left_bytes -= size_bytes
            self._left_bytes -= size_bytes
            if reservation.is_judged(now) and not reservation.is_slow(now):
                reservation.mark(now, reservation.left_bytes)

    def release(self, reservation: "DiskReservation") -> None:
        with self._lock:
            if reservation in self._active:
                self._active.remove(reservation)
                self._left_bytes -= reservation.left_bytes
                self._announce()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _revoke_slow(self, reservation: "DiskReservation", missing_bytes: int, now: float) -> None:
        """Release slow reservations, the largest first. Raise Unavailable if they are not enough."""
        slow = sorted(
            (transfer for transfer in self._active if transfer is not reservation and transfer.is_slow(now)),
            key=attrgetter("left_bytes"),
        )
        if sum(transfer.left_bytes for transfer in slow) < missing_bytes:
            if self._free_bytes - reservation.left_bytes < reservation.floor_bytes:
                raise disk_full()
            raise Unavailable(
                "Other transfers in progress use the remaining disk space. Send the file again when they have ended.",
                retry_after_seconds=10,
            )
        while missing_bytes > 0:
            missing_bytes -= slow[-1].left_bytes
            self.release(slow.pop())

    def _announce(self) -> None:
        if not self._active:
            if self._announced_in is not None:
                fd, path = self._announced_in
                self._announced_in, self._announced_bytes = None, 0
                path.unlink(missing_ok=True)
                os.close(fd)
        elif self._announced_bytes != self._left_bytes:
            if self._announced_in is None:
                self._announced_in = locks.create_locked_file(self._folder, f"*{RESERVATION_SUFFIX}")
            os.pwrite(self._announced_in[0], b"%020d" % self._left_bytes, 0)
            self._announced_bytes = self._left_bytes

    def _others(self) -> int:
        own = None if self._announced_in is None else self._announced_in[1]
        paths = self._folder.glob(f"*{RESERVATION_SUFFIX}")
        return sum(_read_bytes(path) for path in paths if path != own and not locks.remove_if_unlocked(path))


class DiskReservation:
    """Space for the `left_bytes` of one transfer. Leaving the `with` releases the space."""

    def __init__(self, reservations: DiskReservations, floor_bytes: int) -> None:
        self._reservations = reservations
        self.floor_bytes = floor_bytes
        self.left_bytes = 0
        self._marked_at = 0.0
        self._marked_left_bytes = 0

    def resize(self, size_bytes: int) -> None:
        """Change the reserved bytes. Raise Unavailable, which releases the reservation."""
        self._reservations.resize(self, size_bytes)

    def spend(self, size_bytes: int) -> None:
        """Use reserved bytes, before they are written. Raise Unavailable if other programs or transfers got the
        space."""
        self._reservations.spend(self, size_bytes)

    def mark(self, now: float, left_bytes: int) -> None:
        """Measure the speed of the transfer from now on."""
        self.left_bytes = left_bytes
        self._marked_at, self._marked_left_bytes = now, left_bytes

    def is_judged(self, now: float) -> bool:
        return now - self._marked_at >= SLOW_SECONDS

    def is_slow(self, now: float) -> bool:
        seconds = now - self._marked_at
        return self.is_judged(now) and self._marked_left_bytes - self.left_bytes < SLOW_BYTES_PER_SECOND * seconds

    def __enter__(self) -> "DiskReservation":
        return self

    def __exit__(self, *error: object) -> None:
        self._reservations.release(self)


def _read_bytes(path: Path) -> int:
    try:
        return int(path.read_bytes() or 0)
    except (OSError, ValueError):  # the process has ended, or another user owns the file
        return 0
