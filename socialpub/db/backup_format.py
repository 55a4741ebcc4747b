"""The format of a backup: a folder with its checksums and a signature, or that folder as a tar.

The first file describes the backup. SHA256SUMS lists every other file in order, and `sha256sum -c` checks it. SEAL is
the signature of SHA256SUMS: anyone can compute new checksums, but only the holder of `secret.key` can sign them. A
backup before an upgrade has the same form, without media. Files that SHA256SUMS does not list are not in the backup.
"""

import errno
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import IO

from socialpub.core import durable_files, progress, version
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import file_check

FORMAT = 1
FIRST = "socialpub-backup.json"
DATABASE, SECRET, MEDIA = "socialpub.db", "secret.key", "media/"
SUMS = "SHA256SUMS"
SEAL = "SEAL"
STEP_PAGES = 4096
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """The description of a backup, its first file."""

    copied_at: str
    secret_key: str
    """The check value of the `secret.key` that the backup belongs to."""
    holds_secret: bool = False
    holds_media: bool = True
    """False: the database alone, from before an upgrade."""
    version: str = version.VERSION
    """The version that used the database."""

    def as_json(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}).encode()


class Seal(StrEnum):
    """The result of checking the signature of a backup."""

    FITS = "fits"
    """The signature was made with the `secret.key` of this installation."""
    UNCHECKED = "unchecked"
    """The `secret.key` of the signature is not in this installation."""
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

    def unpack(self, target: Path) -> str:
        """Write the file to the disk under a new name. Return its SHA-256."""
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with durable_files.create(target) as file:
            while chunk := self.read():
                file.write(chunk)
            durable_files.flush(file)
        return self.digest()


@contextmanager
def open_member(path: Path, name: str) -> Iterator[Member]:
    with path.open("rb") as file:
        yield Member(file, name, os.fstat(file.fileno()).st_size)


def compute_digest(path: Path) -> str:
    with open_member(path, path.name) as member:
        return member.digest()


def sums_line(digest: str, name: str) -> bytes:
    return f"{digest}  {name}\n".encode("utf-8", "surrogateescape")


class BackupWriter:
    """Writes the files of a backup in order, and lists them in SHA256SUMS. A subclass writes a folder or a tar."""

    def __init__(self) -> None:
        self._sums = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`

    def add(self, name: str, content: bytes) -> None:
        self.list(name, self._write(Member(io.BytesIO(content), name, len(content))))

    def add_file(self, name: str, path: Path) -> None:
        """Add a file of the disk. Raises FileNotFoundError before any byte is written."""
        with open_member(path, name) as member:
            self.list(name, self._write(member))

    def add_media(self, name: str, path: Path) -> None:
        """Add a stored file. Raises FileNotFoundError."""
        self.add_file(name, path)

    def add_database(self, database: Path) -> None:
        self.add_file(DATABASE, database)

    def list(self, name: str, digest: str) -> None:
        self._sums.write(sums_line(digest, name))

    def finish(self, secrets: Secrets) -> None:
        """Write the checksums and the signature."""
        size = self._sums.tell()
        self._sums.seek(0)
        digest = self._write(Member(self._sums, SUMS, size))
        signature = f"{secrets.sign_backup(digest)}\n".encode()
        self._write(Member(io.BytesIO(signature), SEAL, len(signature)))

    def close(self) -> None:
        self._sums.close()

    def _write(self, member: Member) -> str:
        """Write a file. Return its SHA-256."""
        raise NotImplementedError


class TarWriter(BackupWriter):
    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.GNU_FORMAT)

    def finish(self, secrets: Secrets) -> None:
        super().finish(secrets)
        self._tar.close()

    def _write(self, member: Member) -> str:
        info = tarfile.TarInfo(member.name)
        info.size, info.mode = member.size_bytes, 0o600
        self._tar.addfile(info, member)
        self._tar.getmembers().clear()  # `TarFile` would keep all of them in memory
        return member.digest()


class FolderWriter(BackupWriter):
    """Writes a backup into its own folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def add_database(self, database: Path) -> None:
        """Add the database, which is in the folder already."""
        with database.open("rb+") as file:
            durable_files.flush(file)
        self.list(DATABASE, compute_digest(database))

    def finish(self, secrets: Secrets) -> None:
        super().finish(secrets)
        for folder, _, _ in os.walk(self.folder):
            durable_files.flush_folder(Path(folder))

    def _write(self, member: Member) -> str:
        return member.unpack(self.folder / member.name)


def copy_rows(source: sqlite3.Connection, target: Path) -> str:
    """Copy all rows of one instant to a file, which the caller flushes. Return "ok", or the damage of the copy."""
    size = file_check.size_bytes(source)
    progress.begin("Copying the database", size)

    def report(_: int, remaining: int, pages: int) -> None:
        progress.reach(size * (pages - remaining) // max(pages, 1))

    with closing(sqlite3.connect(target, isolation_level=None)) as copied:
        copied.execute("PRAGMA synchronous = off")
        # A read transaction keeps the instant. Without it, SQLite starts again if another process writes between steps.
        source.execute("BEGIN")
        try:
            source.execute("SELECT 1 FROM sqlite_schema").fetchone()
            source.backup(copied, pages=STEP_PAGES, progress=report)
        finally:
            source.rollback()
        copied.execute("PRAGMA journal_mode = delete")
        return file_check.find_damage(copied, "Checking the copy of the database")
