"""Copies read to their end: what is not exactly what socialpub wrote is refused, whatever its names point at."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

from socialpub.core import crypto, durable_files
from socialpub.core.errors import OperatorError
from socialpub.db import appliance_state, artifact_rows, migrate, post_rows
from socialpub.db.transaction import Reader
from socialpub.media import storage_keys
from socialpub.ops import archive
from socialpub.ops.archive import InvalidArchive, Member
from socialpub.ops.backup import DATABASE, FORMAT, MEDIA, SECRET, BackupInfo, BackupSummary

_CHUNK_BYTES = 1 << 20
_MOST_INFO_BYTES = 64 * 1024


def verify(source: Path) -> BackupSummary:
    """Read a copy to its end: every byte is as it was written, and the database is sound. Raises OperatorError."""
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    with (
        opened(source) as (file, info),
        tempfile.TemporaryDirectory(dir=beside, prefix=".socialpub-verify-") as scratch,
    ):
        try:
            return unpack(source, file, info, Path(scratch), media=False)
        except OSError as error:
            message = f"The copy could not be read to its end: {error.strerror}."
            raise OperatorError(message, "Check the disk.") from error


@contextmanager
def opened(source: Path) -> Iterator[tuple[IO[bytes], BackupInfo]]:
    """A copy that is what was written, and what it tells about itself. Raises OperatorError."""
    with archive.checked(source) as file:
        first = next(archive.members(source, file))
        yield file, _read_info(source, first.read(_MOST_INFO_BYTES))


def unpack(source: Path, file: IO[bytes], info: BackupInfo, scratch: Path, *, media: bool) -> BackupSummary:
    """Unpack into `scratch`, which must be empty: the database, `secret.key` and, if wanted, the media.

    Raises OperatorError for what a copy cannot hold, and when the database is not sound or names another `secret.key`.
    """
    database = scratch / DATABASE
    expected = {archive.FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    with closing(_open_names(scratch / "names.db")) as names:
        for member in archive.members(source, file):
            name, key = member.name, member.name.removeprefix(MEDIA)
            if name in expected:
                expected.discard(name)
                if name != archive.FIRST:
                    _unpack(member, scratch / name)
            elif key == name or not storage_keys.is_key(key) or not _note(names, key):
                raise _foreign(source, f"it holds {name!r}")
            elif media:
                _unpack(member, scratch / name)
        if expected:
            raise _foreign(source, f"it lacks {', '.join(sorted(expected))}")
        _check_database(source, database, info)
        if info.holds_secret:
            _check_secret(source, scratch / SECRET, info)
        summary = _summarize(source, names, database, info)
    (scratch / "names.db").unlink()
    return summary


def _foreign(source: Path, why: str) -> InvalidArchive:
    return InvalidArchive(f"{source} is not a copy that socialpub made: {why}.", archive.USE_OURS)


def _read_info(source: Path, text: bytes) -> BackupInfo:
    try:
        given: Any = json.loads(text)
        newer = isinstance(given["format"], int) and given["format"] > FORMAT
        info = BackupInfo(str(given["copied_at"]), str(given["secret_key"]), bool(given["holds_secret"]))
    except (ValueError, TypeError, KeyError):
        raise _foreign(source, f"{archive.FIRST} in it cannot be read") from None
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
    with durable_files.create(target) as file:
        shutil.copyfileobj(member, file, _CHUNK_BYTES)


def _check_database(source: Path, database: Path, info: BackupInfo) -> None:
    try:
        with closing(sqlite3.connect(database)) as connection:
            result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            unknown = migrate.unknown(migrate.applied(connection))
            belongs_to = appliance_state.get(Reader(connection), appliance_state.SECRET_KEY)
    except sqlite3.Error as error:
        raise OperatorError(f"The database in {source} cannot be read: {error}.", "Use another copy.") from error
    if result != "ok":
        raise OperatorError(f"The database in {source} is damaged: {result}.", "Use another copy.")
    if unknown:
        raise OperatorError(
            migrate.is_newer(f"The database in {source}", unknown), "Use the newer version to restore it."
        )
    if belongs_to != info.secret_key:
        raise _foreign(source, "its database belongs to another secret.key than it says")


def _check_secret(source: Path, key_file: Path, info: BackupInfo) -> None:
    try:
        matches = crypto.load(key_file).check_value == info.secret_key
    except OperatorError:
        matches = False
    if not matches:
        raise _foreign(source, "its database belongs to another secret.key than it holds")


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
