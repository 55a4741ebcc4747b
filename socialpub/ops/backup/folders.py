"""The folder of scheduled backups: which are there, which are kept, and how one is written.

Only folders whose first file names this `secret.key` or a former one are removed, and never the backup that was just
made.

Media are hard links where the disk has them, so a backup takes space only for what is new. A stored file never changes
(`media/files.py`), so one file on the disk can serve the appliance and every backup. On another disk, the link leads to
the previous backup. The SHA-256 of a file that the previous backup has is known from there while nobody has touched the
file since.
"""

import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError
from socialpub.core.settings.schema import BackupSection
from socialpub.ops.backup import format, readers
from socialpub.ops.backup.create import on_the_disk_of_media
from socialpub.ops.backup.format import FolderWriter
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.copies")

UNFINISHED = ".unfinished-"
"""The prefix of a folder that is not a complete backup. The next run removes it."""

KEEP_LAST = 3
"""A backup after a mistake does not remove the backup of the same morning."""

_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NAME = "%Y-%m-%dT%H-%M-%SZ"
_MAX_INFO_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class DatedBackup:
    """A backup in the folder. Only reading it shows whether it is complete."""

    path: Path
    copied_at: datetime
    media_read_at: str | None = None
    """When all of its media were last read, and not known from the previous backup."""


def free_place(folder: Path, copied_at: datetime) -> Path:
    """Return a free name for a backup of this instant, also for two in one second or after the clock was set back."""
    while (place := folder / copied_at.strftime(_NAME)).exists():
        copied_at += timedelta(seconds=1)
    return place


def list_backups(folder: Path, keys: Collection[str]) -> list[DatedBackup]:
    """Return the backups that a `secret.key` with one of these check values made, oldest first."""
    found = (_read_backup(path, keys) for path in folder.glob("[0-9]*") if _is_name(path.name))
    return sorted((copy for copy in found if copy is not None), key=lambda copy: (copy.copied_at, copy.path))


def kept(backups: Sequence[DatedBackup], settings: BackupSection) -> list[DatedBackup]:
    """Return the backups to keep: the newest of each of the last days, weeks and months that have one, and the last
    three."""
    chosen = {backup.path for backup in backups[-KEEP_LAST:]}
    days, weeks, months = settings.keep_days, settings.keep_weeks, settings.keep_months
    for limit, period in ((days, "%Y-%m-%d"), (weeks, "%G-%V"), (months, "%Y-%m")):
        newest = {one.copied_at.strftime(period): one.path for one in backups}  # a later one replaces an earlier one
        chosen.update(newest[one] for one in sorted(newest, reverse=True)[:limit])
    return [backup for backup in backups if backup.path in chosen]


def prune(folder: Path, keys: Collection[str], settings: BackupSection, just_made: Path) -> int:
    """Remove the backups that are not kept. Return how many."""
    copies = list_backups(folder, keys)
    stay = {copy.path for copy in kept(copies, settings)} | {just_made}
    return _remove_backups(copy.path for copy in copies if copy.path not in stay)


def clear_unfinished(folder: Path, keys: Collection[str]) -> int:
    """Remove what killed runs left. Return how many. The caller holds the lock of scheduled backups."""
    left = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    return _remove_backups(path for path in left if not any(path.iterdir()) or _read_backup(path, keys) is not None)


def _remove_backups(paths: Iterable[Path]) -> int:
    removed = 0
    for path in paths:
        gone = path
        try:
            if not path.name.startswith(UNFINISHED):
                # If the power fails, no half backup has the name of a backup.
                gone = path.rename(path.with_name(UNFINISHED + path.name))
            # The file that identifies the owner goes last.
            for inside in sorted(gone.iterdir(), key=lambda one: one.name == format.FIRST):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
            gone.rmdir()
            removed += 1
        except OSError as error:
            log.warning("an old copy could not be removed", copy=str(gone), reason=error.strerror)
    return removed


def _read_backup(path: Path, keys: Collection[str]) -> DatedBackup | None:
    """Return the backup in a folder, or None if none of these keys made it."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if path.is_symlink():
            return None
        with format.open_regular(path / format.FIRST, follow=False) as file:
            info = json.loads(file.read(_MAX_INFO_BYTES))
        if info["secret_key"] in keys:
            read_at = info.get("media_read_at")
            return DatedBackup(path, parse(info["copied_at"]), read_at if isinstance(read_at, str) else None)
    return None


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, _NAME)
    except ValueError:
        return False
    return True


class KnownSums:
    """The SHA-256 of the media of a backup, in a temporary file: there may be very many."""

    def __init__(self, backup: Path | None) -> None:
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.execute("CREATE TABLE known (name TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID")
        if backup is not None:
            with self._store:
                self._store.execute("BEGIN")
                self._store.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", readers.list_sums(backup))

    def find(self, name: str) -> str | None:
        row = self._store.execute("SELECT digest FROM known WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self._store.close()


class HardlinkWriter(FolderWriter):
    """Writes a backup whose media are hard links where the disk allows it."""

    def __init__(self, rt: Runtime, folder: Path, previous: DatedBackup | None, *, read_all: bool) -> None:
        """Begin a backup. The seal of `previous` fits. `read_all`: trust none of its checksums."""
        super().__init__(folder)
        self._rt = rt
        self._previous = previous
        self._read_all = read_all
        self._known = KnownSums(previous.path if previous else None)
        self._same_disk = on_the_disk_of_media(rt, folder)
        self.size_bytes = 0
        self.new_bytes = 0
        self.changed = 0
        """Files that are not what they were when they were first copied."""

    def add_media(self, name: str, source: Path) -> None:
        """Add a media file. Raises FileNotFoundError."""
        found = source.stat()
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = earlier = None
        if self._previous is not None and found.st_mtime < self._previous.copied_at.timestamp():
            known = self._known.find(name)
            earlier = self._previous.path / name if known else None
        if _link(source, target):
            self.list(name, self._digest_linked(name, target, known if _is_same(earlier, found) else None))
        elif known is not None and earlier is not None and self._link_earlier(earlier, known, target, found):
            self.list(name, known)
        else:
            self._copy(name, source, found.st_size)
        self.size_bytes += found.st_size

    def _digest_linked(self, name: str, target: Path, known: str | None) -> str:
        """Return the SHA-256 of a linked file. `known` is that of the same file in the previous backup."""
        if known is not None and not self._read_all:
            return known
        format.expect(target.stat().st_size)
        digest = format.compute_digest(target)
        if known is not None and digest != known:
            self.changed += 1
            key = name.removeprefix(format.MEDIA)
            log.warning("a stored file is not what it was: its disk may be failing", key=key)
        return digest

    def _link_earlier(self, earlier: Path, known: str, target: Path, found: os.stat_result) -> bool:
        """Link to the file of the previous backup, which is on another disk than the stored file."""
        try:
            if earlier.stat().st_size != found.st_size:
                return False
        except OSError:
            return False
        if self._read_all and format.compute_digest(earlier) != known:
            key = str(target.relative_to(self.folder)).removeprefix(format.MEDIA)
            log.warning("a file of the copy before is damaged, and is copied anew", key=key)
            return False
        return _link(earlier, target)

    def _copy(self, name: str, source: Path, size: int) -> None:
        format.expect(size)
        with self._rt.files.reservations.reserve(size) if self._same_disk else nullcontext() as room:
            if room is not None:
                room.spend(size)
            self.add_file(name, source)
        self.new_bytes += size

    def close(self) -> None:
        super().close()
        self._known.close()


def find_previous(rt: Runtime, folder: Path) -> DatedBackup | None:
    """Return the newest backup whose seal fits: its checksums can be trusted."""
    return next((one for one in reversed(list_backups(folder, {rt.secrets.check_value})) if _is_trusted(rt, one)), None)


def _is_trusted(rt: Runtime, backup: DatedBackup) -> bool:
    try:
        digest, seal = readers.read_seal(backup.path)
    except (OperatorError, OSError):
        return False
    return seal is not None and rt.secrets.has_signed_copy(seal, digest)


def _link(source: Path, target: Path) -> bool:
    """Return False if the disk cannot link the one to the other."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True


def _is_same(earlier: Path | None, found: os.stat_result) -> bool:
    """Return whether an earlier backup contains this file of the disk."""
    try:
        return earlier is not None and os.path.samestat(earlier.stat(), found)
    except OSError:
        return False
