"""Verifying a backup: reading it to its end, and refusing everything that socialpub did not write.

A backup has three forms: a tar, a folder, or a database alone. Every byte is compared with its checksum before the
contents are used. The signature is checked before the database is opened, since a person without the key may have
written the database to do harm. In a folder, each listed file must be a regular file inside the folder.

A continuous replica (Litestream) restores a database alone. Its instant is that of the worker's last report. The
actions of the original installation after the last write are read back from the accounts.
"""

import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from socialpub.core import commands, progress
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, file_check, upgrade
from socialpub.db.connection import Database, open_file
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.media import files
from socialpub.ops.backup import format
from socialpub.ops.backup.format import (
    DATABASE,
    FIRST,
    FORMAT,
    MEDIA,
    SEAL,
    SECRET,
    SUMS,
    BackupInfo,
    BackupSummary,
    InvalidBackup,
    Member,
    NameTable,
    NotRegular,
    Seal,
    damaged_backup,
    foreign_backup,
)

MAX_INFO_BYTES = 64 * 1024
READ_ONLY = "ro&immutable=1"
"""The mode for a database that no process writes. SQLite creates no files beside it."""

_DIGEST_CHARACTERS = 64
_MAX_LINE = 4096
_MAX_SEAL_BYTES = 1024
_DATABASE_START = b"SQLite format 3\0"
_NEVER = "1970-01-01T00:00:00.000Z"


def verify_backup(source: Path, ours: Secrets | None = None, *, unsealed: bool = False) -> BackupSummary:
    """Check that every byte is unchanged and that the database is sound. Raises OperatorError.

    `ours` and `unsealed` as in `open_backup`.
    """
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    with (
        open_backup(source, ours, unsealed=unsealed) as backup,
        tempfile.TemporaryDirectory(dir=beside, prefix=".socialpub-verify-") as temp_dir,
    ):
        try:
            return unpack(backup, Path(temp_dir), media=False)
        except OSError as error:
            message = f"The backup could not be read to its end: {error.strerror}."
            raise OperatorError(message, "Check the disk.") from error


@dataclass(frozen=True, slots=True)
class CheckedBackup:
    """A backup with valid checksums. Anyone may have made the backup."""

    path: Path
    digest: str
    """The signed digest."""
    seal: str | None
    """The signature, or None for an unsigned backup."""
    size_bytes: int
    members: Callable[[], Iterator[Member]]
    """Every file except the checksums and the signature, in order."""


@dataclass(frozen=True, slots=True)
class OpenedBackup:
    checked: CheckedBackup
    info: BackupInfo
    seal: Seal


@contextmanager
def open_backup(source: Path, ours: Secrets | None, *, unsealed: bool = False) -> Iterator[OpenedBackup]:
    """Open a backup. If the backup belongs to `ours`, its signature must be valid. Raises OperatorError.

    `ours` is the current key. `unsealed` accepts an unsigned backup.
    """
    with _check(source) as checked:
        members = checked.members()  # the first member is open while this iterator exists
        info = _read_info(source, next(members).read(MAX_INFO_BYTES))
        yield OpenedBackup(checked, info, _check_seal(checked, info, ours, unsealed))


def _check(source: Path) -> AbstractContextManager[CheckedBackup]:
    if source.is_dir():
        return _check_folder(source)
    return _check_database_file(source) if is_database(source) else check_tar(source)


def _read_info(source: Path, text: bytes) -> BackupInfo:
    try:
        given: Any = json.loads(text)
        newer = isinstance(given["format"], int) and given["format"] > FORMAT
        info = BackupInfo(str(given["copied_at"]), str(given["secret_key"]), bool(given["holds_secret"]))
    except (ValueError, TypeError, KeyError):
        raise foreign_backup(source, f"its {FIRST} cannot be read") from None
    if newer:
        raise OperatorError(f"{source} was made by a newer socialpub.", "Use the newer version.")
    return info


def _check_seal(checked: CheckedBackup, info: BackupInfo, ours: Secrets | None, unsealed: bool) -> Seal:
    is_ours = ours is not None and ours.check_value == info.secret_key
    if checked.seal is None:
        if is_ours and not unsealed:
            alone = is_database(checked.path)
            why = "the file is only a database" if alone else "the signature was removed"
            raise InvalidBackup(
                f"{checked.path} is not signed: {why}.",
                "If you know that no other person had access to the backup, accept the backup with --unsealed.",
            )
        return Seal.NONE
    if ours is None or not is_ours:
        return Seal.UNCHECKED
    if not ours.has_signed_backup(checked.seal, checked.digest):
        raise InvalidBackup(f"{checked.path} was changed without the secret.key.", "Use another backup.")
    return Seal.FITS


def unpack(backup: OpenedBackup, target: Path, *, media: bool) -> BackupSummary:
    """Unpack the database, `secret.key` and, with `media`, the media into an empty folder.

    Raises OperatorError for a file that a backup cannot contain, and for a database that is damaged, belongs to another
    `secret.key`, or refers to files outside `data_dir`.
    """
    source, info, seal = backup.checked.path, backup.info, backup.seal
    expected = {FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    if media:
        progress.begin("Unpacking the backup", backup.checked.size_bytes)
    with closing(NameTable()) as names:
        for member in backup.checked.members():
            name, key = member.name, member.name.removeprefix(MEDIA)
            is_media = name not in expected
            if is_media and (key == name or not files.is_storage_key(key) or not names.add(key)):
                raise foreign_backup(source, f"it contains {name!r}")
            expected.discard(name)
            if name != FIRST and (media or not is_media):
                if name == DATABASE and not media:
                    progress.begin("Unpacking the backup", member.size_bytes)
                member.unpack(target / name)
        progress.finish()  # a tar also has headers
        if expected:
            raise foreign_backup(source, f"it lacks {', '.join(sorted(expected))}")
        _check_database(source, target / DATABASE, info)
        if info.holds_secret:
            seal = _check_secret(backup, target / SECRET)
        return replace(_summarize(source, names, target / DATABASE, info), seal=seal)


def _check_database(source: Path, database: Path, info: BackupInfo) -> None:
    try:
        with open_file(database, "rw") as reader:
            # The check for damage computes the expressions of the schema, so it comes after these two.
            if (name := upgrade.find_foreign_object(reader)) is not None:
                raise foreign_backup(source, f"its database differs from the schema of its version in {name!r}")
            upgrade.refuse_unreadable(reader, f"The database in {source}")
            step = "Checking the database of the backup"
            result = file_check.find_damage(reader.connection(), step, compare_indexes=True)
            if result != "ok":
                raise OperatorError(f"The database in {source} is damaged: {result}.", "Use another backup.")
            if appliance_state.get(reader, appliance_state.SECRET_KEY) != info.secret_key:
                raise foreign_backup(source, "its database and its description refer to different secret.keys")
            _check_names(source, reader)
    except sqlite3.Error as error:
        raise OperatorError(f"The database in {source} cannot be read: {error}.", "Use another backup.") from error


def _check_names(source: Path, reader: Database) -> None:
    """Raise InvalidBackup for names that lead outside the media folder."""
    if (stray := upgrade.find_foreign_name(reader)) is not None:
        raise foreign_backup(source, f"its database contains {stray}, which would become a file name")
    for key in artifact_rows.storage_keys(reader):
        if not isinstance(key, str) or not files.is_storage_key(key):
            raise foreign_backup(source, f"its database refers to the file {key!r}, which is not in the media folder")


def _check_secret(backup: OpenedBackup, key_file: Path) -> Seal:
    try:
        own = crypto.load(key_file)
    except OperatorError:
        own = None
    checked = backup.checked
    if own is None or own.check_value != backup.info.secret_key:
        raise foreign_backup(checked.path, "its database does not belong to the secret.key in the backup")
    if backup.seal is not Seal.UNCHECKED:
        return backup.seal
    if checked.seal is None or not own.has_signed_backup(checked.seal, checked.digest):
        raise foreign_backup(checked.path, "its signature does not match the secret.key in the backup")
    return Seal.OWN


def _summarize(source: Path, names: NameTable, database: Path, info: BackupInfo) -> BackupSummary:
    held, named = names.count(), 0
    with open_file(database, "rw") as reader:
        for key in artifact_rows.storage_keys(reader):
            names.remove(key)
            named += 1
        count = post_rows.count(reader)
    if (stray := names.first()) is not None:
        raise foreign_backup(source, f"it contains {MEDIA + stray!r}, which its database does not refer to")
    return BackupSummary(info.copied_at, info.holds_secret, count, held, named - held)


# --- a tar -----------------------------------------------------------------------------------------------------------


@contextmanager
def check_tar(path: Path) -> Iterator[CheckedBackup]:
    """Compare a tar with its checksums. Raises OperatorError."""
    try:
        file = format.open_regular(path, follow=True)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Use the file of a backup.") from None
    with file:
        try:
            size = os.fstat(file.fileno()).st_size
            progress.begin("Reading the backup", size)
            if file.read(len(FIRST) + 1) != FIRST.encode() + b"\0":
                raise foreign_backup(path)
            digest, seal = _check_tar(path, file)
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror}.", "Check its disk.") from error
        progress.finish()
        yield CheckedBackup(path, digest, seal, size, partial(_listed_members, path, file))


def _check_tar(path: Path, file: io.BufferedReader) -> tuple[str, str | None]:
    """Return the signed digest, and the signature."""
    members, listed, seal = _tar_members(path, file), hashlib.sha256(), None
    for member in members:
        digest = member.digest()
        if member.name == SUMS:
            break
        listed.update(format.sums_line(digest, member.name))
    else:
        raise damaged_backup(path, f"{SUMS} is missing")
    if digest != listed.hexdigest():
        raise damaged_backup(path, "its checksum does not match")
    last = next(members, None)
    if last is not None and last.name == SEAL:
        seal = format.signature_in(last.read(_MAX_SEAL_BYTES), digest)
        if seal is None:
            raise damaged_backup(path, "its signature is damaged")
        last = next(members, None)
    if last is not None:
        raise damaged_backup(path, "bytes follow its end")
    return digest, seal


def _listed_members(path: Path, file: io.BufferedReader) -> Iterator[Member]:
    return takewhile(lambda member: member.name != SUMS, _tar_members(path, file))


def _tar_members(path: Path, file: io.BufferedReader) -> Iterator[Member]:
    """Yield every member of a tar that `TarWriter` wrote. Raises InvalidBackup for any other form of tar."""
    size, next_at = os.fstat(file.fileno()).st_size, 0
    while True:
        file.seek(next_at)
        header = file.read(tarfile.BLOCKSIZE)
        try:
            # `TarFile` would read extended headers of any size into memory.
            info = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            break
        if info.size < 0 or header != format.tar_info(info.name, info.size).tobuf(**format.TAR_FORM):
            raise foreign_backup(path, f"{info.name!r} was packed by another program")
        ends_at = file.tell() + info.size
        next_at = ends_at + -ends_at % tarfile.BLOCKSIZE
        if next_at > size:
            raise damaged_backup(path, f"its {info.name!r} is incomplete")
        yield Member(file, info.name, info.size)
        file.seek(ends_at)
        if file.read(next_at - ends_at).strip(b"\0"):
            raise damaged_backup(path, f"its {info.name!r} is incomplete")
    end_bytes = 2 * tarfile.BLOCKSIZE + -(next_at + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE
    if header + file.read(end_bytes) != bytes(end_bytes):
        raise damaged_backup(path, "its end is missing")


# --- a folder --------------------------------------------------------------------------------------------------------


@contextmanager
def _check_folder(folder: Path) -> Iterator[CheckedBackup]:
    """Compare every listed file of a folder with its checksum. Raises OperatorError."""
    try:
        if not os.path.lexists(folder / FIRST):
            raise _no_backup(folder)
        digest, seal = read_seal(folder)
        root, size = folder.resolve(), 0
        for number, (name, _) in enumerate(list_sums(folder)):
            if number == 0 and name != FIRST:
                raise _no_backup(folder)
            size += _find_inside(folder, root, name).stat().st_size
        progress.begin("Reading the backup", size)
        for (name, expected), member in zip(list_sums(folder), _folder_members(folder), strict=True):
            if member.digest() != expected:
                raise damaged_backup(folder, f"its {name!r} has changed")
    except OSError as error:
        raise OperatorError(f"{folder} cannot be read: {error.strerror}.", "Check its disk.") from error
    yield CheckedBackup(folder, digest, seal, size, partial(_folder_members, folder))


def read_seal(folder: Path) -> tuple[str, str | None]:
    """Return the signed digest, and the signature. Raises InvalidBackup, OSError."""
    try:
        with _open_inside(folder, SUMS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise damaged_backup(folder, f"{SUMS} is missing") from None
    try:
        with _open_inside(folder, SEAL) as file:
            content = file.read(_MAX_SEAL_BYTES)
    except FileNotFoundError:
        return digest, None
    seal = format.signature_in(content, digest)
    if seal is None:
        raise damaged_backup(folder, "its checksum does not match")
    return digest, seal


def list_sums(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the SHA-256 of each file that SHA256SUMS lists. Raises InvalidBackup, OSError."""
    with _open_inside(folder, SUMS) as file:
        while line := file.readline(_MAX_LINE):
            digest = line[:_DIGEST_CHARACTERS].decode("latin-1")
            name = line[_DIGEST_CHARACTERS + 2 : -1].decode("utf-8", "surrogateescape")
            if line != format.sums_line(digest, name):
                raise damaged_backup(folder, f"{SUMS} has an invalid line")
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
        raise damaged_backup(folder, f"it lacks {name!r}")
    if os.path.normpath(path) != str(path) or path.resolve() != path:
        raise foreign_backup(folder, f"its {name!r} leads outside the folder")
    if not path.is_file():
        raise _not_regular(folder, name)
    return path


def _not_regular(folder: Path, name: str) -> InvalidBackup:
    return foreign_backup(folder, f"its {name!r} is not a regular file")


def _no_backup(folder: Path) -> InvalidBackup:
    error = foreign_backup(folder)
    if inside := sorted(path.parent for path in folder.glob(f"[0-9]*/{FIRST}")):
        error.hint = f"The folder contains backups. Use one of them, such as {inside[-1]}"
    return error


# --- a database alone ------------------------------------------------------------------------------------------------


def is_database(path: Path) -> bool:
    try:
        with format.open_regular(path, follow=True) as file:
            return file.read(len(_DATABASE_START)) == _DATABASE_START
    except OSError:
        return False


@contextmanager
def _check_database_file(path: Path) -> Iterator[CheckedBackup]:
    """Read a database that no process has open. Raises OperatorError."""
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        raise OperatorError(
            f"{path} is not a backup: its journal shows that an appliance is using the database or was killed.",
            f"Make a backup with `{commands.line('backup', 'FILE')}`, or restore a backup from the replica with "
            "`litestream restore`.",
        )
    try:
        with open_file(path, READ_ONLY) as reader:
            secret_key = appliance_state.get(reader, appliance_state.SECRET_KEY)
            written_at = (
                appliance_state.get(reader, appliance_state.HEARTBEAT),
                post_rows.newest_created_at(reader),
                _NEVER,
            )
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise OperatorError(f"The database in {path} cannot be read: {error}.", "Use another backup.") from error
    if secret_key is None:
        raise InvalidBackup(f"{path} is not a database that socialpub made.", foreign_backup(path).hint)
    info = BackupInfo(max(at for at in written_at if at is not None), secret_key, holds_secret=False)
    yield CheckedBackup(path, "", None, path.stat().st_size, partial(_database_members, path, info.as_json()))


def _database_members(path: Path, info: bytes) -> Iterator[Member]:
    yield Member(io.BytesIO(info), FIRST, len(info))
    with format.open_member(path, DATABASE) as member:
        yield member
