"""The media of a copy in a folder: hard links wherever the disk has them, so that a copy costs only what is new.

Stored files are written once, under a name that is never used again, and never changed (`media/incoming.py`), so one
file on the disk may serve the appliance and every copy. On another disk than theirs the copy before is linked to. The
SHA-256 of a file that the copy before has is known from there, as long as nobody has touched the file since.
"""

import errno
import hashlib
import os
import sqlite3
from pathlib import Path

from socialpub.core import durable_files, logging
from socialpub.core.errors import OperatorError
from socialpub.ops.copies import copy_folder, copy_progress
from socialpub.ops.copies.backup import MEDIA, on_the_disk_of_media
from socialpub.ops.copies.dated_copies import DatedCopy
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.copies")

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
                self._store.executemany("INSERT OR REPLACE INTO known VALUES (?, ?)", copy_folder.listed(copy))

    def of(self, name: str) -> str | None:
        row = self._store.execute("SELECT digest FROM known WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self._store.close()


class LinkedMedia:
    """Brings media files into the folder of one copy."""

    def __init__(self, rt: Runtime, folder: Path, before: DatedCopy | None, *, read_all: bool) -> None:
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
        digest = copy_folder.digest_of(target)
        if known is not None and is_same and digest != known:
            self.changed += 1
            log.warning("a stored file is not what it was: its disk may be failing", key=key)
        return digest

    def _bring(self, key: str, source: Path, target: Path, known: str | None, earlier: Path | None) -> str:
        """Onto a disk that the stored file does not lie on."""
        if known is not None and earlier is not None and _size(earlier) == source.stat().st_size:
            whole = not self._read_all or copy_folder.digest_of(earlier) == known
            if whole and _link(earlier, target):
                return known
            if not whole:
                log.warning("a file of the copy before is damaged, and is copied anew", key=key)
        size = source.stat().st_size
        copy_progress.expect(size)
        if not self._same_disk:
            return self._copy(source, target)
        with self._rt.files.promises.make(size) as room:
            room.spend(size)
            return self._copy(source, target)

    def _copy(self, source: Path, target: Path) -> str:
        digest = hashlib.sha256()
        with source.open("rb") as file, durable_files.create(target) as copied:
            while chunk := file.read(_CHUNK_BYTES):
                copied.write(chunk)
                digest.update(chunk)
                self.new_bytes += len(chunk)
                copy_progress.advance(len(chunk))
            durable_files.flush(copied)
        return digest.hexdigest()

    def close(self) -> None:
        self._known.close()


def trusted(rt: Runtime, copy: DatedCopy) -> bool:
    """Whether the seal of an earlier copy fits: its sums are ours."""
    try:
        digest, seal = copy_folder.read_seal(copy.path)
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
