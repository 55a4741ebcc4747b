"""The format of a backup: a folder with its checksums and a signature, or that folder as a tar.

SHA256SUMS lists every other file in order, and `sha256sum -c` checks it. SEAL signs SHA256SUMS: anyone can compute new
checksums, but only the holder of `secret.key` can sign them. Files that SHA256SUMS does not list are never opened. A
tar has exactly one form, so every changed byte is found before the contents are used. Memory use stays small for a
backup of any size.
"""

import errno
import hashlib
import io
import json
import os
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from socialpub.core import commands, durable_files, progress
from socialpub.core.errors import OperatorError
from socialpub.db.models import ApiKeyRow

FORMAT = 1
FIRST = "socialpub-copy.json"
"""The first file, which describes the backup. A tar is recognized by this name at its start."""
DATABASE, SECRET, MEDIA = "socialpub.db", "secret.key", "media/"
SUMS = "SHA256SUMS"
SEAL = "SEAL"
"""The last file: the signature of the SHA-256 of SHA256SUMS, and the SHA-256 of both, which shows damage without the
key."""

TAR_FORM: Any = {"format": tarfile.GNU_FORMAT, "encoding": "utf-8", "errors": "surrogateescape"}
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupInfo:
    copied_at: str
    secret_key: str
    """The check value of the `secret.key` that the backup belongs to."""
    holds_secret: bool

    def as_json(self, **more: str) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self), **more}).encode()


class Seal(StrEnum):
    """The result of checking the signature of a backup."""

    FITS = "fits"
    """The signature was made with the `secret.key` of this installation."""
    OWN = "own"
    """The signature was made with the `secret.key` in the backup. Anyone with the backup could sign it again."""
    UNCHECKED = "unchecked"
    """The `secret.key` of the signature is neither here nor in the backup."""
    NONE = "none"
    """The file is only a database, or the signature was removed."""


@dataclass(frozen=True, slots=True)
class BackupSummary:
    """The contents of a backup, as written or read."""

    copied_at: str
    holds_secret: bool
    posts: int
    media_files: int
    media_missing: int
    """The number of files in the database that were lost before the backup was made."""
    seal: Seal = field(default=Seal.FITS, compare=False)
    moved_aside: Path | None = field(default=None, compare=False)
    """The path to which a restore moved the empty database of a new installation."""
    valid_keys: tuple[ApiKeyRow, ...] = field(default=(), compare=False)
    """After a restore: the API keys that came with the backup and are valid again."""


class InvalidBackup(OperatorError):
    """The file or folder is not a complete backup of socialpub."""


class NotRegular(OSError):
    """The path is a FIFO, a device, a folder, a socket or a link."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


def foreign_backup(source: Path, why: str = "") -> InvalidBackup:
    """Return the error for a file or folder that socialpub did not write."""
    return InvalidBackup(
        f"{source} is not a backup that socialpub made{why and ': '}{why}.",
        f"Use a file that `{commands.line('backup', 'FILE')}` wrote.",
    )


def damaged_backup(source: Path, how: str) -> InvalidBackup:
    """Return the error for a backup whose bytes have changed."""
    return InvalidBackup(
        f"{source} is damaged or incomplete: {how}.", "Use another backup, or copy this backup again from its storage."
    )


# --- files of a backup -----------------------------------------------------------------------------------------------


class Member:
    """One file of a backup, read once. Each read counts as progress."""

    def __init__(self, file: IO[bytes], name: str, size_bytes: int) -> None:
        self.name = name
        self.size_bytes = size_bytes
        self._file = file
        self._left = size_bytes
        self._digest = hashlib.sha256()

    def read(self, size: int = _CHUNK_BYTES, /) -> bytes:
        """Read up to `size` bytes, none at the end. Raises OSError if the file became shorter."""
        chunk = self._file.read(min(size, self._left))
        if not chunk and self._left:
            raise OSError(errno.EIO, f"{self.name} became shorter while it was read")
        self._left -= len(chunk)
        self._digest.update(chunk)
        progress.advance(len(chunk))
        return chunk

    def digest(self) -> str:
        """Read the rest. Return the SHA-256 of the file."""
        while self.read():
            pass
        return self._digest.hexdigest()

    def unpack(self, target: Path, *, flush: bool = False) -> str:
        """Write the member to a new file. Return its SHA-256."""
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with durable_files.create(target) as file:
            while chunk := self.read():
                file.write(chunk)
            if flush:
                durable_files.flush(file)
        return self.digest()


def open_regular(path: Path, *, follow: bool) -> io.BufferedReader:
    """Open a regular file for reading. `follow` accepts a link to one. Raises NotRegular, OSError."""
    # Without O_NONBLOCK, the kernel would wait for the writer of a FIFO.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise NotRegular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(path)
    return os.fdopen(descriptor, "rb")


@contextmanager
def open_member(path: Path, name: str) -> Iterator[Member]:
    with open_regular(path, follow=True) as file:
        yield Member(file, name, os.fstat(file.fileno()).st_size)


def compute_digest(path: Path) -> str:
    with open_member(path, path.name) as member:
        return member.digest()


def sums_line(digest: str, name: str) -> bytes:
    return f"{digest}  {name}\n".encode("utf-8", "surrogateescape")


def seal_line(signature: str, digest: str) -> bytes:
    both = hashlib.sha256(f"{signature} {digest}".encode("utf-8", "replace")).hexdigest()
    return f"{signature}  {both}\n".encode("latin-1", "replace")


def signature_in(content: bytes, digest: str) -> str | None:
    """Return the signature of this digest in a SEAL file, or None if the file is damaged."""
    signature = content[: len(digest)].decode("latin-1")
    return signature if content == seal_line(signature, digest) else None


def tar_info(name: str, size_bytes: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size_bytes, 0o600
    return info


class NameTable:
    """The names of files, each with its SHA-256, in a temporary file, because there may be millions."""

    def __init__(self) -> None:
        self._rows = sqlite3.connect("", isolation_level=None)
        self._rows.executescript("CREATE TABLE name (name TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID; BEGIN")

    def add(self, name: str, digest: str = "") -> bool:
        """Add a name. Return False if the table already has the name."""
        return self._rows.execute("INSERT OR IGNORE INTO name VALUES (?, ?)", (name, digest)).rowcount == 1

    def find(self, name: str) -> str | None:
        row = self._rows.execute("SELECT digest FROM name WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def remove(self, name: str) -> None:
        self._rows.execute("DELETE FROM name WHERE name = ?", (name,))

    def count(self) -> int:
        return int(self._rows.execute("SELECT count(*) FROM name").fetchone()[0])

    def first(self) -> str | None:
        row = self._rows.execute("SELECT name FROM name").fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self._rows.close()


# --- writing ---------------------------------------------------------------------------------------------------------


class BackupWriter:
    """Writes the files of a backup in order, and lists them in SHA256SUMS."""

    def __init__(self, sums: IO[bytes]) -> None:
        self._sums = sums

    def add(self, name: str, content: bytes) -> None:
        self.list(name, self._write(Member(io.BytesIO(content), name, len(content))))

    def add_file(self, name: str, path: Path) -> None:
        """Add a file of the disk. Raises FileNotFoundError before any byte is written."""
        with open_member(path, name) as member:
            self.list(name, self._write(member))

    def add_media(self, name: str, path: Path) -> None:
        """Add a stored file. Raises FileNotFoundError."""
        self.add_file(name, path)

    def list(self, name: str, digest: str) -> None:
        self._sums.write(sums_line(digest, name))

    def _write_seal(self, signature: str, digest: str) -> None:
        seal = seal_line(signature, digest)
        self._write(Member(io.BytesIO(seal), SEAL, len(seal)))

    def _write(self, member: Member) -> str:
        """Write a file. Return its SHA-256."""
        raise NotImplementedError


class TarWriter(BackupWriter):
    def __init__(self, file: IO[bytes], sums: IO[bytes]) -> None:
        """Begin a tar in `file`. `sums` is an empty file for SHA256SUMS."""
        super().__init__(sums)
        self._tar = tarfile.TarFile(fileobj=file, mode="w", **TAR_FORM)

    def finish(self, sign: Callable[[str], str] | None) -> None:
        """Write the checksums, the signature and the end. `sign` signs a digest. None: do not sign."""
        size = self._sums.tell()
        self._sums.seek(0)
        digest = self._write(Member(self._sums, SUMS, size))
        if sign is not None:
            self._write_seal(sign(digest), digest)
        self._tar.close()

    def _write(self, member: Member) -> str:
        self._tar.addfile(tar_info(member.name, member.size_bytes), member)
        self._tar.getmembers().clear()  # `TarFile` would keep all of them in memory
        return member.digest()


@contextmanager
def create_tar(path: Path, sign: Callable[[str], str]) -> Iterator[TarWriter]:
    """Write a new tar that only its owner can read. After the context, the tar is complete and on the disk."""
    with durable_files.create(path) as file, tempfile.TemporaryFile(dir=path.parent) as sums:
        writer = TarWriter(file, sums)
        yield writer
        writer.finish(sign)
        progress.begin("Waiting for the disk")
        durable_files.flush(file)


class FolderWriter(BackupWriter):
    """Writes a backup into its own folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(durable_files.create(folder / SUMS))
        self.folder = folder

    def finish(self, sign: Callable[[str], str]) -> None:
        """Write the signature, and flush everything to the disk."""
        durable_files.flush(self._sums)
        with (self.folder / SUMS).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._write_seal(sign(digest), digest)
        for folder, _, _ in os.walk(self.folder):
            durable_files.flush_folder(Path(folder))

    def add_file(self, name: str, path: Path) -> None:
        if path != self.folder / name:
            super().add_file(name, path)
            return
        with path.open("rb+") as file:
            durable_files.flush(file)
        self.list(name, compute_digest(path))

    def close(self) -> None:
        self._sums.close()

    def _write(self, member: Member) -> str:
        return member.unpack(self.folder / member.name, flush=True)
