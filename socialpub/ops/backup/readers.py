"""The three forms in which a backup is read: a tar, a folder, or a database alone.

Every byte is compared with its checksum before anything inside is used. In a folder, each listed file must be a regular
file inside the folder: a link that leads elsewhere is refused before it is read, and reading never waits for a FIFO.

A database alone is what a continuous replica (Litestream) brings back. Its instant was not recorded, but the worker
reports every few seconds. What the original did after the last write is read back from the accounts.
"""

import hashlib
import io
import os
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from urllib.parse import quote

from socialpub.core import commands
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state
from socialpub.db.connection import Reader
from socialpub.db.tables import post_rows
from socialpub.ops.backup import format
from socialpub.ops.backup.format import (
    DATABASE,
    FIRST,
    FORMER_SUM,
    SEAL,
    SUMS,
    BackupInfo,
    InvalidBackup,
    Member,
    NotRegular,
)

_DIGEST_CHARACTERS = 64
_MAX_LINE = 4096
_MAX_SEAL_BYTES = 1024


_DATABASE_START = b"SQLite format 3\0"
_NEVER = "1970-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True)
class CheckedBackup:
    """A backup of which every byte is as its maker wrote it. Its maker may be anyone."""

    path: Path
    digest: str
    """What the seal signs."""
    seal: str | None
    """The signature. Backups of former versions have none."""
    members: Callable[[], Iterator[Member]]
    """Every file but the checksums and the seal, in order."""


def check(source: Path) -> AbstractContextManager[CheckedBackup]:
    """Read a backup of any form to its end. Raises OperatorError."""
    if source.is_dir():
        return check_folder(source)
    return check_database(source) if is_database(source) else check_tar(source)


# --- a tar -----------------------------------------------------------------------------------------------------------


@contextmanager
def check_tar(path: Path) -> Iterator[CheckedBackup]:
    """Read a tar to its end and compare it with its checksums. Raises OperatorError."""
    try:
        file = format.open_regular(path, follow=True)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Name the file of a backup.") from None
    with file:
        try:
            format.expect(os.fstat(file.fileno()).st_size)
            if file.read(len(FIRST) + 1) != FIRST.encode() + b"\0":
                raise format.foreign(path)
            digest, seal = _check_tar(path, file)
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
        yield CheckedBackup(path, digest, seal, partial(_listed_members, path, file))


def _check_tar(path: Path, file: io.BufferedReader) -> tuple[str, str | None]:
    """Return the digest that the seal signs, and the seal."""
    members, listed, seal = _tar_members(path, file), hashlib.sha256(), None
    for member in members:
        digest = member.digest()
        if _is_sums(member.name):
            break
        listed.update(format.sums_line(digest, member.name))
    else:
        raise format.damaged(path, f"{SUMS} is not reached")
    if member.name == SUMS:
        is_right = digest == listed.hexdigest()
        last = next(members, None)
        if is_right and last is not None and last.name == SEAL:
            seal = format.signature_in(last.read(_MAX_SEAL_BYTES), digest)
            if seal is None:
                raise format.damaged(path, "its seal is not whole")
            last = next(members, None)
    else:
        is_right = member.size_bytes == 0 and member.name == FORMER_SUM + _digest_before(file)
        last = next(members, None)
    if not is_right:
        raise format.damaged(path, "its checksum does not match")
    if last is not None:
        raise format.damaged(path, "it does not end where it should")
    return digest, seal


def _digest_before(file: io.BufferedReader) -> str:
    """Return the SHA-256 of everything before the empty member that was just read."""
    begins_at = file.tell() - tarfile.BLOCKSIZE
    file.seek(0)
    return Member(file, FORMER_SUM, begins_at).digest()


def _is_sums(name: str) -> bool:
    return name == SUMS or name.startswith(FORMER_SUM)


def _listed_members(path: Path, file: io.BufferedReader) -> Iterator[Member]:
    return takewhile(lambda member: not _is_sums(member.name), _tar_members(path, file))


def _tar_members(path: Path, file: io.BufferedReader) -> Iterator[Member]:
    """Yield every member of a tar that `TarWriter` wrote. Raises InvalidBackup for any other byte but in a content."""
    size, next_at = os.fstat(file.fileno()).st_size, 0
    while True:
        file.seek(next_at)
        header = file.read(tarfile.BLOCKSIZE)
        try:
            # `TarFile` would read the extended headers of a foreign tar into memory, whatever their size.
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            break
        if info.size < 0 or header != format.tar_info(info.name, info.size).tobuf(**format.TAR_FORM):
            raise format.foreign(path, f"{info.name!r} was packed by another program")
        ends_at = file.tell() + info.size
        next_at = ends_at + -ends_at % tarfile.BLOCKSIZE
        if next_at > size:
            raise format.damaged(path, f"{info.name!r} in it is not whole")
        yield Member(file, info.name, info.size)
        file.seek(ends_at)
        if file.read(next_at - ends_at).strip(b"\0"):
            raise format.damaged(path, f"{info.name!r} in it is not whole")
    end_bytes = 2 * tarfile.BLOCKSIZE + -(next_at + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE
    if header + file.read(end_bytes) != bytes(end_bytes):
        raise format.damaged(path, "it does not end where it should")


# --- a folder --------------------------------------------------------------------------------------------------------


@contextmanager
def check_folder(folder: Path) -> Iterator[CheckedBackup]:
    """Read every listed file of a folder and compare it with its checksum. Raises OperatorError."""
    try:
        if not os.path.lexists(folder / FIRST):
            raise _no_backup(folder)
        digest, seal = read_seal(folder)
        root = folder.resolve()
        for number, (name, _) in enumerate(list_sums(folder)):
            if number == 0 and name != FIRST:
                raise _no_backup(folder)
            format.expect(_find_inside(folder, root, name).stat().st_size)
        for (name, expected), member in zip(list_sums(folder), _folder_members(folder), strict=True):
            if member.digest() != expected:
                raise format.damaged(folder, f"{name!r} in it is not as it was written")
    except OSError as error:
        raise OperatorError(f"{folder} cannot be read: {error.strerror}.", "Check the disk it is on.") from error
    yield CheckedBackup(folder, digest, seal, partial(_folder_members, folder))


def read_seal(folder: Path) -> tuple[str, str | None]:
    """Return the digest that the seal signs, and the seal. Raises InvalidBackup, OSError."""
    try:
        with _open_inside(folder, SUMS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise format.damaged(folder, f"it has no {SUMS}") from None
    try:
        with _open_inside(folder, SEAL) as file:
            content = file.read(_MAX_SEAL_BYTES)
    except FileNotFoundError:
        return digest, None
    seal = format.signature_in(content, digest)
    if seal is None:
        raise format.damaged(folder, "its checksum does not match")
    return digest, seal


def list_sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the SHA-256 of each file that SHA256SUMS lists. Raises InvalidBackup, OSError."""
    with _open_inside(folder, SUMS) as file:
        while line := file.readline(_MAX_LINE):
            digest = line[:_DIGEST_CHARACTERS].decode("latin-1")
            name = line[_DIGEST_CHARACTERS + 2 : -1].decode("utf-8", "surrogateescape")
            if line != format.sums_line(digest, name):
                raise format.damaged(folder, f"{SUMS} has a line of another form")
            yield name, digest


def _folder_members(folder: Path) -> Iterator[Member]:
    root = folder.resolve()
    for name, _ in list_sums(folder):
        _find_inside(folder, root, name)
        with _open_inside(root, name) as file:
            yield Member(file, name, os.fstat(file.fileno()).st_size)


def _open_inside(folder: Path, name: str) -> io.BufferedReader:
    try:
        return format.open_regular(folder / name, follow=False)
    except NotRegular:
        raise _not_regular(folder, name) from None


def _find_inside(folder: Path, root: Path, name: str) -> Path:
    """Return the path of a listed file. Raises InvalidBackup if it is missing or is not in the folder."""
    path = root / name
    if os.path.isabs(name) or not os.path.lexists(path):  # noqa: PTH117  # a name, perhaps a stranger's
        raise format.damaged(folder, f"it lacks {name!r}")
    if os.path.normpath(path) != str(path) or path.resolve() != path:
        raise format.foreign(folder, f"{name!r} in it leads elsewhere")
    if not path.is_file():
        raise _not_regular(folder, name)
    return path


def _not_regular(folder: Path, name: str) -> InvalidBackup:
    return format.foreign(folder, f"{name!r} in it is not a regular file")


def _no_backup(folder: Path) -> InvalidBackup:
    error = format.foreign(folder)
    if inside := sorted(path.parent for path in folder.glob(f"[0-9]*/{FIRST}")):
        error.hint = f"It holds backups: name one, such as {inside[-1]}"
    return error


# --- a database alone ------------------------------------------------------------------------------------------------


def is_database(path: Path) -> bool:
    """Return whether this file is a database."""
    try:
        with format.open_regular(path, follow=True) as file:
            return file.read(len(_DATABASE_START)) == _DATABASE_START
    except OSError:
        return False


@contextmanager
def open_read_only(database: Path) -> Iterator[Reader]:
    """Open a database that no process writes, without creating files beside it. Raises sqlite3.Error."""
    address = f"file:{quote(str(database.absolute()))}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as connection:
        yield Reader(connection)


@contextmanager
def check_database(path: Path) -> Iterator[CheckedBackup]:
    """Read a database that no process has open. Raises OperatorError."""
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        raise OperatorError(
            f"{path} has a journal beside it: it belongs to an appliance that runs or was cut off. It is not a backup.",
            f"Make a backup with `{commands.line('backup', 'FILE')}`, or restore one from the replica with "
            "`litestream restore`.",
        )
    try:
        with open_read_only(path) as reader:
            secret_key = appliance_state.get(reader, appliance_state.SECRET_KEY)
            written_at = (
                appliance_state.get(reader, appliance_state.HEARTBEAT),
                post_rows.newest_created_at(reader),
                _NEVER,
            )
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise OperatorError(f"The database in {path} cannot be read: {error}.", "Use another backup.") from error
    if secret_key is None:
        raise InvalidBackup(f"{path} is not a database that socialpub made.", format.foreign(path).hint)
    info = BackupInfo(max(at for at in written_at if at is not None), secret_key, holds_secret=False)
    yield CheckedBackup(path, "", None, partial(_database_members, path, info.as_json()))


def _database_members(path: Path, info: bytes) -> Iterator[Member]:
    yield Member(io.BytesIO(info), FIRST, len(info))
    with format.open_member(path, DATABASE) as member:
        yield member
