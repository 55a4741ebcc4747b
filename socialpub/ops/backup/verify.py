"""Reads a backup to its end, and refuses what socialpub did not write exactly so."""

import io
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, damage, upgrade
from socialpub.db.connection import Reader
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.media import files
from socialpub.ops.backup import format
from socialpub.ops.backup.create import DATABASE, FORMAT, MEDIA, SECRET, BackupInfo, BackupSummary, Seal
from socialpub.ops.backup.format import CheckedBackup, InvalidArchive, Member

# MERGED from ops/copies/replica.py: A database file alone, as a continuous replica (Litestream) brings it back: re

_BEGINNING = b"SQLite format 3\0"
_NEVER = "1970-01-01T00:00:00.000Z"


def is_database(path: Path) -> bool:
    """Whether this file is a database rather than a copy."""
    try:
        with format.open_regular(path, follow=True) as file:
            return file.read(len(_BEGINNING)) == _BEGINNING
    except OSError:
        return False


@contextmanager
def check_replica(path: Path) -> Iterator[CheckedBackup]:
    """A database that nobody has open. Raises InvalidArchive, OperatorError."""
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        raise OperatorError(
            f"{path} has a journal beside it: it belongs to an appliance that runs or was cut off. It is not a backup.",
            f"Make a backup with `{commands.line('backup', 'FILE')}`, or restore one from the replica with "
            "`litestream restore`.",
        )
    info = _read_replica_info(path)
    yield CheckedBackup(path, "", None, partial(_replica_members, path, info))


def _replica_members(path: Path, info: BackupInfo) -> Iterator[Member]:
    told = info.as_json()
    yield Member(io.BytesIO(told), format.FIRST, len(told))
    with path.open("rb") as file:
        yield Member(file, DATABASE, os.fstat(file.fileno()).st_size)


def _read_replica_info(path: Path) -> BackupInfo:
    address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            reader = Reader(database)
            secret_key = appliance_state.get(reader, appliance_state.SECRET_KEY)
            written = (appliance_state.get(reader, appliance_state.HEARTBEAT), post_rows.newest_created_at(reader))
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise OperatorError(f"The database in {path} cannot be read: {error}.", "Use another backup.") from error
    if secret_key is None:
        raise InvalidArchive(f"{path} is not a database that socialpub made.", format.use_ours())
    return BackupInfo(max((at for at in written if at is not None), default=_NEVER), secret_key, False)


# MERGED from ops/copies/backup_verification.py: Copies read to their end: what is not exactly what socialpub wrote

_CHUNK_BYTES = 1 << 20
_MAX_INFO_BYTES = 64 * 1024


def verify(source: Path, ours: Secrets | None = None, *, unsealed: bool = False) -> BackupSummary:
    """Read a copy to its end: every byte is as it was written, and the database is sound. Raises OperatorError.

    `ours` and `unsealed` as in `opened`.
    """
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    with (
        open_backup(source, ours, unsealed=unsealed) as copy,
        tempfile.TemporaryDirectory(dir=beside, prefix=".socialpub-verify-") as scratch,
    ):
        try:
            return unpack(copy, Path(scratch), media=False)
        except OSError as error:
            message = f"The backup could not be read to its end: {error.strerror}."
            raise OperatorError(message, "Check the disk.") from error


@dataclass(frozen=True, slots=True)
class OpenedBackup:
    """A copy that is what its maker wrote, and what it tells about itself."""

    archive: CheckedBackup
    info: BackupInfo
    seal: Seal


@contextmanager
def open_backup(source: Path, ours: Secrets | None, *, unsealed: bool = False) -> Iterator[OpenedBackup]:
    """A copy whose seal fits `ours`, the key that is here, when it belongs to that; without a seal only if `unsealed`.

    Raises OperatorError.
    """
    with _check_format(source) as found:
        walk = found.members()
        info = _read_info(source, next(walk).read(_MAX_INFO_BYTES))
        yield OpenedBackup(found, info, _check_seal(found, info, ours, unsealed))


def _check_format(source: Path) -> AbstractContextManager[CheckedBackup]:
    if source.is_dir():
        return format.check_folder(source)
    return check_replica(source) if is_database(source) else format.check_tar(source)


def _check_seal(found: CheckedBackup, info: BackupInfo, ours: Secrets | None, unsealed: bool) -> Seal:
    is_ours = ours is not None and ours.check_value == info.secret_key
    if found.seal is None:
        if is_ours and not unsealed:
            alone = is_database(found.path)
            why = "it is a database alone" if alone else "a former version wrote it, or somebody took the seal away"
            raise InvalidArchive(
                f"{found.path} has no seal: {why}.",
                "If you know where it has been since it was made, accept it once with --unsealed.",
            )
        return Seal.NONE
    if ours is None or not is_ours:
        return Seal.UNCHECKED
    if not ours.has_signed_copy(found.seal, found.digest):
        raise InvalidArchive(f"{found.path} was changed by somebody without the secret.key.", "Use another backup.")
    return Seal.FITS


def unpack(copy: OpenedBackup, scratch: Path, *, media: bool) -> BackupSummary:
    """Unpack into `scratch`, which must be empty: the database, `secret.key` and, if wanted, the media.

    Raises OperatorError for what a copy cannot hold, and when the database is not sound, names another `secret.key`, or
    could lead out of `data_dir`.
    """
    source, info, seal = copy.archive.path, copy.info, copy.seal
    database = scratch / DATABASE
    expected = {format.FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    with closing(_open_names(scratch / "names.db")) as names:
        for member in copy.archive.members():
            name, key = member.name, member.name.removeprefix(MEDIA)
            if name in expected:
                expected.discard(name)
                if name != format.FIRST:
                    _unpack(member, scratch / name)
            elif key == name or not files.is_storage_key(key) or not _note(names, key):
                raise _foreign(source, f"it holds {name!r}")
            elif media:
                _unpack(member, scratch / name)
        if expected:
            raise _foreign(source, f"it lacks {', '.join(sorted(expected))}")
        check_database(source, database, info)
        if info.holds_secret:
            seal = _check_secret(copy, scratch / SECRET)
        summary = replace(_summarize(source, names, database, info), seal=seal)
    (scratch / "names.db").unlink()
    return summary


def _foreign(source: Path, why: str) -> InvalidArchive:
    return InvalidArchive(f"{source} is not a backup that socialpub made: {why}.", format.use_ours())


def _read_info(source: Path, text: bytes) -> BackupInfo:
    try:
        given: Any = json.loads(text)
        newer = isinstance(given["format"], int) and given["format"] > FORMAT
        info = BackupInfo(str(given["copied_at"]), str(given["secret_key"]), bool(given["holds_secret"]))
    except (ValueError, TypeError, KeyError):
        raise _foreign(source, f"{format.FIRST} in it cannot be read") from None
    if newer:
        raise OperatorError(f"{source} was made by a newer socialpub.", "Use the newer version to read it.")
    return info


def _open_names(path: Path) -> sqlite3.Connection:
    """The names of the media that were met, in a file: there may be very many."""
    names = sqlite3.connect(path, isolation_level=None)
    names.executescript("PRAGMA synchronous = off; CREATE TABLE name (key TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN")
    return names


def _note(names: sqlite3.Connection, key: str) -> bool:
    """False when a file of this name came before."""
    return names.execute("INSERT OR IGNORE INTO name VALUES (?)", (key,)).rowcount == 1


def _unpack(member: Member, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    format.expect(member.size_bytes)
    with durable_files.create(target) as file:
        while chunk := member.read(_CHUNK_BYTES):
            file.write(chunk)
            format.advance(len(chunk))


def check_database(source: Path, database: Path, info: BackupInfo) -> None:
    """Raises OperatorError when the database of a copy is not sound, is a newer version's, or could lead out of
    `data_dir`."""
    try:
        with closing(sqlite3.connect(database)) as connection:
            result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            unknown = upgrade.unknown(upgrade.applied(connection))
            belongs_to = appliance_state.get(Reader(connection), appliance_state.SECRET_KEY)
    except sqlite3.Error as error:
        raise OperatorError(f"The database in {source} cannot be read: {error}.", "Use another backup.") from error
    if result != "ok":
        raise OperatorError(f"The database in {source} is damaged: {result}.", "Use another backup.")
    if unknown:
        raise OperatorError(
            upgrade.is_newer(f"The database in {source}", unknown), "Use the newer version to restore it."
        )
    if belongs_to != info.secret_key:
        raise _foreign(source, "its database belongs to another secret.key than it says")
    try:
        with closing(sqlite3.connect(database)) as connection:
            _check_names(source, Reader(connection))
    except sqlite3.Error as error:
        raise _foreign(source, f"its database has another form ({error})") from error


def _check_names(source: Path, reader: Reader) -> None:
    """No row may name a file in a way that leads elsewhere, and nothing may run by itself."""
    active = reader.value(
        "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    )
    if active is not None:
        raise _foreign(source, f"its database has {active!r}")
    stray = damage.foreign_name(reader)
    if stray is not None:
        raise _foreign(source, f"its database holds {stray}, which would become the name of a file")
    for key in artifact_rows.storage_keys(reader):
        if not isinstance(key, str) or not files.is_storage_key(key):
            raise _foreign(source, f"its database names the file {key!r}, which is not in the media folder")


def _check_secret(copy: OpenedBackup, key_file: Path) -> Seal:
    """What the copy's own key tells of its seal."""
    try:
        own = crypto.load(key_file)
    except OperatorError:
        own = None
    if own is None or own.check_value != copy.info.secret_key:
        raise _foreign(copy.archive.path, "its database belongs to another secret.key than it holds")
    if copy.seal is not Seal.UNCHECKED:
        return copy.seal
    if copy.archive.seal is None or not own.has_signed_copy(copy.archive.seal, copy.archive.digest):
        raise _foreign(copy.archive.path, "its seal does not fit the secret.key that it holds")
    return Seal.OWN


def _summarize(source: Path, names: sqlite3.Connection, database: Path, info: BackupInfo) -> BackupSummary:
    held = int(names.execute("SELECT count(*) FROM name").fetchone()[0])
    named = 0
    with closing(sqlite3.connect(database)) as connection:
        reader = Reader(connection)
        for key in artifact_rows.storage_keys(reader):
            names.execute("DELETE FROM name WHERE key = ?", (key,))
            named += 1
        count = post_rows.count(reader)
    foreign = names.execute("SELECT key FROM name").fetchone()
    if foreign is not None:
        raise _foreign(source, f"it holds {MEDIA + foreign[0]!r}, which its database does not name")
    return BackupSummary(info.copied_at, info.holds_secret, count, held, named - held)
