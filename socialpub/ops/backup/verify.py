"""Reads a backup to its end, and refuses everything that socialpub did not write.

The seal is checked before the database is opened: a person without the key may have written it to do harm.
"""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, upgrade
from socialpub.db.connection import Reader
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.media import files
from socialpub.ops.backup import format, readers
from socialpub.ops.backup.format import (
    DATABASE,
    FIRST,
    FORMAT,
    MEDIA,
    SECRET,
    BackupInfo,
    BackupSummary,
    InvalidBackup,
    Seal,
    foreign,
)
from socialpub.ops.backup.readers import CheckedBackup

_MAX_INFO_BYTES = 64 * 1024


def verify(source: Path, ours: Secrets | None = None, *, unsealed: bool = False) -> BackupSummary:
    """Read a backup to its end: every byte is as it was written, and the database is sound. Raises OperatorError.

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
class OpenedBackup:
    """A backup that is as its maker wrote it, and its description."""

    checked: CheckedBackup
    info: BackupInfo
    seal: Seal


@contextmanager
def open_backup(source: Path, ours: Secrets | None, *, unsealed: bool = False) -> Iterator[OpenedBackup]:
    """Open a backup. If it belongs to `ours`, the key that is here, its seal must fit. Raises OperatorError.

    `unsealed` accepts a backup without a seal.
    """
    with readers.check(source) as checked:
        members = checked.members()  # the first one is open as long as this iterator exists
        info = _read_info(source, next(members).read(_MAX_INFO_BYTES))
        yield OpenedBackup(checked, info, _check_seal(checked, info, ours, unsealed))


def _read_info(source: Path, text: bytes) -> BackupInfo:
    try:
        given: Any = json.loads(text)
        newer = isinstance(given["format"], int) and given["format"] > FORMAT
        info = BackupInfo(str(given["copied_at"]), str(given["secret_key"]), bool(given["holds_secret"]))
    except (ValueError, TypeError, KeyError):
        raise foreign(source, f"{FIRST} in it cannot be read") from None
    if newer:
        raise OperatorError(f"{source} was made by a newer socialpub.", "Use the newer version to read it.")
    return info


def _check_seal(checked: CheckedBackup, info: BackupInfo, ours: Secrets | None, unsealed: bool) -> Seal:
    is_ours = ours is not None and ours.check_value == info.secret_key
    if checked.seal is None:
        if is_ours and not unsealed:
            alone = readers.is_database(checked.path)
            why = "it is a database alone" if alone else "a former version wrote it, or somebody took the seal away"
            raise InvalidBackup(
                f"{checked.path} has no seal: {why}.",
                "If you know where it has been since it was made, accept it once with --unsealed.",
            )
        return Seal.NONE
    if ours is None or not is_ours:
        return Seal.UNCHECKED
    if not ours.has_signed_copy(checked.seal, checked.digest):
        raise InvalidBackup(f"{checked.path} was changed by somebody without the secret.key.", "Use another backup.")
    return Seal.FITS


def unpack(backup: OpenedBackup, target: Path, *, media: bool) -> BackupSummary:
    """Unpack the database, `secret.key` and, with `media`, the media into an empty folder.

    Raises OperatorError for what a backup cannot contain, and for a database that is not sound, belongs to another
    `secret.key`, or could lead out of `data_dir`.
    """
    source, info, seal = backup.checked.path, backup.info, backup.seal
    expected = {FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    # The names of the media are in a temporary file: there may be very many.
    with closing(sqlite3.connect("", isolation_level=None)) as names:
        names.executescript("CREATE TABLE name (key TEXT PRIMARY KEY) WITHOUT ROWID; BEGIN")
        for member in backup.checked.members():
            name, key = member.name, member.name.removeprefix(MEDIA)
            is_media = name not in expected
            if is_media and (key == name or not files.is_storage_key(key) or not _is_first(names, key)):
                raise foreign(source, f"it holds {name!r}")
            expected.discard(name)
            if name != FIRST and (media or not is_media):
                format.expect(member.size_bytes)
                member.unpack(target / name)
        if expected:
            raise foreign(source, f"it lacks {', '.join(sorted(expected))}")
        check_database(source, target / DATABASE, info)
        if info.holds_secret:
            seal = _check_secret(backup, target / SECRET)
        return replace(_summarize(source, names, target / DATABASE, info), seal=seal)


def _is_first(names: sqlite3.Connection, key: str) -> bool:
    return names.execute("INSERT OR IGNORE INTO name VALUES (?)", (key,)).rowcount == 1


def check_database(source: Path, database: Path, info: BackupInfo) -> None:
    """Check the database of a backup.

    Raises OperatorError if it is not sound, if a newer version made it, or if it could lead out of `data_dir`.
    """
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
        message = upgrade.is_newer(f"The database in {source}", unknown)
        raise OperatorError(message, "Use the newer version to restore it.")
    if belongs_to != info.secret_key:
        raise foreign(source, "its database belongs to another secret.key than it says")
    try:
        with closing(sqlite3.connect(database)) as connection:
            _check_names(source, Reader(connection))
    except sqlite3.Error as error:
        raise foreign(source, f"its database has another form ({error})") from error


def _check_names(source: Path, reader: Reader) -> None:
    """No row may name a file in a way that leads elsewhere, and nothing may run by itself."""
    active = reader.value(
        "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR sql LIKE 'CREATE VIRTUAL%' LIMIT 1"
    )
    if active is not None:
        raise foreign(source, f"its database has {active!r}")
    if (stray := upgrade.find_foreign_name(reader)) is not None:
        raise foreign(source, f"its database holds {stray}, which would become the name of a file")
    for key in artifact_rows.storage_keys(reader):
        if not isinstance(key, str) or not files.is_storage_key(key):
            raise foreign(source, f"its database names the file {key!r}, which is not in the media folder")


def _check_secret(backup: OpenedBackup, key_file: Path) -> Seal:
    """Compare the seal with the backup's own key."""
    try:
        own = crypto.load(key_file)
    except OperatorError:
        own = None
    checked = backup.checked
    if own is None or own.check_value != backup.info.secret_key:
        raise foreign(checked.path, "its database belongs to another secret.key than it holds")
    if backup.seal is not Seal.UNCHECKED:
        return backup.seal
    if checked.seal is None or not own.has_signed_copy(checked.seal, checked.digest):
        raise foreign(checked.path, "its seal does not fit the secret.key that it holds")
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
    stray = names.execute("SELECT key FROM name").fetchone()
    if stray is not None:
        raise foreign(source, f"it holds {MEDIA + stray[0]!r}, which its database does not name")
    return BackupSummary(info.copied_at, info.holds_secret, count, held, named - held)
