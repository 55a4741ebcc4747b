"""The folder of scheduled backups: which are there and which are kept, and media as hard links to the backup before."""

import errno
import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from socialpub.core import durable_files, logging
from socialpub.core.clock import parse
from socialpub.core.errors import OperatorError
from socialpub.core.settings.schema import BackupSection
from socialpub.ops.backup import format
from socialpub.ops.backup.create import MEDIA, on_the_disk_of_media
from socialpub.runtime import Runtime

# MERGED from ops/copies/dated_copies.py: The folder for scheduled copies: which copies lie there, which of them st

log = logging.get_logger("socialpub.copies")

UNFINISHED = ".unfinished-"
"""How the name of a folder begins that is no copy yet, or none any more: whoever comes next removes it."""

KEEP_LAST = 3
"""A backup after a mistake does not remove the backup of the same morning."""

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_MAX_INFO_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class DatedBackup:
    """A copy in the folder for them. Whether it is whole is not known before it was read."""

    path: Path
    copied_at: datetime
    media_read_at: str | None = None
    """When all of its media were last read, rather than known from the copy before."""


def free_place(folder: Path, copied_at: datetime) -> Path:
    """Where a copy of this instant goes. Two of one second, or a clock that was set back, meet no name twice."""
    while (place := folder / copied_at.strftime(_NAME)).exists():
        copied_at += timedelta(seconds=1)
    return place


def list_backups(folder: Path, keys: Collection[str]) -> list[DatedBackup]:
    """The copies that a secret.key with one of these check values made, oldest first."""
    found = (_read_backup(path, keys) for path in folder.glob("[0-9]*") if _is_name(path.name))
    return sorted((copy for copy in found if copy is not None), key=lambda copy: (copy.copied_at, copy.path))


def kept(copies: Sequence[DatedBackup], settings: BackupSection) -> list[DatedBackup]:
    """Those of copies, oldest first, that stay: the newest of each of the last days, weeks and months that have any,
    and the last three of all."""
    chosen = {copy.path for copy in copies[-KEEP_LAST:]}
    for most, period in (
        (settings.keep_days, _day),
        (settings.keep_weeks, _week),
        (settings.keep_months, _month),
    ):
        newest = {period(copy.copied_at): copy.path for copy in copies}  # a later one takes the earlier one's place
        chosen.update(newest[one] for one in sorted(newest, reverse=True)[:most])
    return [copy for copy in copies if copy.path in chosen]


def prune(folder: Path, keys: Collection[str], settings: BackupSection, just_made: Path) -> int:
    """Remove the copies that need not stay; how many."""
    copies = list_backups(folder, keys)
    stay = {copy.path for copy in kept(copies, settings)} | {just_made}
    return _remove_backups(copy.path for copy in copies if copy.path not in stay)


def clear_unfinished(folder: Path, keys: Collection[str]) -> int:
    """Remove what killed runs have left; how many. Only for whoever keeps others from making copies here meanwhile."""
    left = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    return _remove_backups(path for path in left if not any(path.iterdir()) or _read_backup(path, keys) is not None)


def _remove_backups(paths: Iterable[Path]) -> int:
    removed = 0
    for path in paths:
        gone = path
        try:
            if not path.name.startswith(UNFINISHED):
                # Half a copy never stands under a copy's name, whenever the power fails.
                gone = path.rename(path.with_name(UNFINISHED + path.name))
            # What tells whose it is goes last.
            for inside in sorted(gone.iterdir(), key=lambda one: one.name == format.FIRST):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
            gone.rmdir()
            removed += 1
        except OSError as error:
            log.warning("an old copy could not be removed", copy=str(gone), reason=error.strerror)
    return removed


def _read_backup(path: Path, keys: Collection[str]) -> DatedBackup | None:
    """What a folder tells of itself; None when it is no copy that one of these keys made."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if path.is_symlink():
            return None
        with format.open_regular(path / format.FIRST, follow=False) as file:
            told = json.loads(file.read(_MAX_INFO_BYTES))
        if told["secret_key"] in keys:
            read_at = told.get("media_read_at")
            return DatedBackup(path, parse(told["copied_at"]), read_at if isinstance(read_at, str) else None)
    return None


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, _NAME)
    except ValueError:
        return False
    return True


Period = Callable[[datetime], tuple[int, ...]]


def _day(at: datetime) -> tuple[int, ...]:
    return at.timetuple()[:3]


def _week(at: datetime) -> tuple[int, ...]:
    return tuple(at.isocalendar())[:2]


def _month(at: datetime) -> tuple[int, ...]:
    return at.timetuple()[:2]


# MERGED from ops/copies/linked_media.py: The media of a copy in a folder: hard links wherever the disk has them, s

_CHUNK_BYTES = 1 << 20
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class KnownSums:
    """The SHA-256 of the media of an earlier copy, in a file without a name: there may be very many."""

    def __init__(self, copy: Path | None) -> None:
        self._store = sqlite3.connect("", isolation_level=None)
        self._store.execute("CREATE TABLE known (name TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID")
        if copy is not None:
            with self._store:
                self._store.execute("BEGIN")
                self._store.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", format.list_sums(copy))

    def of(self, name: str) -> str | None:
        row = self._store.execute("SELECT digest FROM known WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self._store.close()


class HardlinkedMedia:
    """Brings media files into the folder of one copy."""

    def __init__(self, rt: Runtime, folder: Path, before: DatedBackup | None, *, read_all: bool) -> None:
        """`before` is the copy before, with a seal that fits. `read_all`: take no sum from it on trust."""
        self._rt = rt
        self._folder = folder
        self._before = before
        self._read_all = read_all
        self._known = KnownSums(before.path if before else None)
        self._same_disk = on_the_disk_of_media(rt, folder)
        self.size_bytes = 0
        self.new_bytes = 0
        self.changed = 0
        """Files that are not what they were when they were first copied."""

    def add(self, key: str) -> str:
        """Bring one file; its SHA-256. Raises FileNotFoundError when there is none."""
        source, name = self._rt.files.path(key), MEDIA + key
        found = source.stat()
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = self._known.of(name) if self._untouched(found) else None
        earlier = self._before.path / name if self._before and known else None
        if _link(source, target):
            digest = self._digest_of_linked(key, target, known, _is_same(earlier, found))
        else:
            digest = self._bring(key, source, target, known, earlier)
        self.size_bytes += found.st_size
        return digest

    def _untouched(self, found: os.stat_result) -> bool:
        return self._before is not None and found.st_mtime < self._before.copied_at.timestamp()

    def _digest_of_linked(self, key: str, target: Path, known: str | None, is_same: bool) -> str:
        if known is not None and is_same and not self._read_all:
            return known
        digest = format.compute_digest(target)
        if known is not None and is_same and digest != known:
            self.changed += 1
            log.warning("a stored file is not what it was: its disk may be failing", key=key)
        return digest

    def _bring(self, key: str, source: Path, target: Path, known: str | None, earlier: Path | None) -> str:
        """Onto a disk that the stored file does not lie on."""
        if known is not None and earlier is not None and _size(earlier) == source.stat().st_size:
            whole = not self._read_all or format.compute_digest(earlier) == known
            if whole and _link(earlier, target):
                return known
            if not whole:
                log.warning("a file of the copy before is damaged, and is copied anew", key=key)
        size = source.stat().st_size
        format.expect(size)
        if not self._same_disk:
            return self._copy(source, target)
        with self._rt.files.reservations.reserve(size) as room:
            room.spend(size)
            return self._copy(source, target)

    def _copy(self, source: Path, target: Path) -> str:
        digest = hashlib.sha256()
        with source.open("rb") as file, durable_files.create(target) as copied:
            while chunk := file.read(_CHUNK_BYTES):
                copied.write(chunk)
                digest.update(chunk)
                self.new_bytes += len(chunk)
                format.advance(len(chunk))
            durable_files.flush(copied)
        return digest.hexdigest()

    def close(self) -> None:
        self._known.close()


def is_trusted(rt: Runtime, copy: DatedBackup) -> bool:
    """Whether the seal of an earlier copy fits: its sums are ours."""
    try:
        digest, seal = format.read_seal(copy.path)
    except (OperatorError, OSError):
        return False
    return seal is not None and rt.secrets.has_signed_copy(seal, digest)


def _link(source: Path, target: Path) -> bool:
    """False when this disk cannot link the one to the other."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True


def _is_same(earlier: Path | None, found: os.stat_result) -> bool:
    """Whether an earlier copy holds this very file of the disk."""
    try:
        return earlier is not None and os.path.samestat(earlier.stat(), found)
    except OSError:
        return False


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
