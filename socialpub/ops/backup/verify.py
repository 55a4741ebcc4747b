"""Verifying a backup: reading it once, to its end, into a temporary folder.

Every byte is compared with its checksum, and the signature is checked, before the contents are used. Verify, restore
and rollback use the same function.

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
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from socialpub.core import commands, progress
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, file_check, upgrade
from socialpub.db.backup_format import (
    DATABASE,
    FIRST,
    FORMAT,
    MEDIA,
    SEAL,
    SECRET,
    SUMS,
    BackupInfo,
    BackupSummary,
    Member,
    Seal,
    open_member,
    sums_line,
)
from socialpub.db.connection import open_file
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.media import files

_DIGEST_CHARACTERS = 64
_DATABASE_START = b"SQLite format 3\0"
_NEVER = "1970-01-01T00:00:00.000Z"

Members = Generator[Member, None, None]


class InvalidBackup(OperatorError):
    """The file or folder is not a complete backup of socialpub."""


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


@dataclass(frozen=True, slots=True)
class OpenedBackup:
    """A backup whose description was read. Nothing is checked yet, and anyone may have made the backup."""

    path: Path
    info: BackupInfo
    members: Iterator[Member]
    """Every file in order: the description first, the checksums and the signature last."""
    is_replica: bool
    """The file is a database alone."""

    @property
    def keeps_media(self) -> bool:
        """Whether a restore keeps the media in `data_dir`, because the backup contains none."""
        return self.is_replica or not self.info.holds_media


def verify_backup(source: Path, ours: Secrets | None = None, *, unsealed: bool = False) -> BackupSummary:
    """Check that every byte is unchanged and that the database is sound. Raises OperatorError.

    `ours` and `unsealed` as in `unpack`.
    """
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    try:
        with (
            open_backup(source) as backup,
            tempfile.TemporaryDirectory(dir=beside, prefix=".socialpub-verify-") as temp_dir,
        ):
            return unpack(backup, Path(temp_dir), ours, unsealed=unsealed, media=False)
    except OSError as error:
        message = f"The backup could not be read to its end: {error.strerror}."
        raise OperatorError(message, "Check the disk.") from error


@contextmanager
def open_backup(source: Path) -> Iterator[OpenedBackup]:
    """Open a backup and read its description. Raises OperatorError, OSError."""
    is_replica = False
    if source.is_dir():
        members = _read_folder(source)
    elif not source.is_file():
        raise OperatorError(f"{source} cannot be read: it is not a file or a folder.", "Use the file of a backup.")
    elif is_replica := _is_database(source):
        members = _read_database(source)
    else:
        members = _read_tar(source)
    with closing(members):
        first = next(members, None)
        if first is None or first.name != FIRST:
            raise foreign_backup(source)
        info = _read_info(source, first.read())
        yield OpenedBackup(source, info, chain([first], members), is_replica)


def _read_info(source: Path, text: bytes) -> BackupInfo:
    try:
        values = json.loads(text)
        if values.pop("format") > FORMAT:
            raise OperatorError(f"{source} was made by a newer socialpub.", "Use the newer version.")
        return BackupInfo(**values)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise foreign_backup(source, f"its {FIRST} cannot be read") from None


def unpack(
    backup: OpenedBackup, target: Path, ours: Secrets | None, *, unsealed: bool, media: bool = True
) -> BackupSummary:
    """Read a backup to its end into an empty folder, without its media if not `media`, and check it.

    If the backup belongs to the current key `ours`, its signature must be valid. `unsealed` accepts an unsigned backup.
    Raises OperatorError, OSError. Do not use the files after an error.
    """
    source, info = backup.path, backup.info
    missing = {FIRST, DATABASE} | ({SECRET} if info.holds_secret else set())
    listed, digest, signature, media_files = hashlib.sha256(), "", "", 0
    for member in backup.members:
        name, key = member.name, member.name.removeprefix(MEDIA)
        if name == SUMS:
            digest = member.digest()
            continue
        if name == SEAL:
            signature = member.read().decode("latin-1").strip()
            continue
        is_media = key != name and files.is_storage_key(key)
        if not is_media and name not in missing:
            raise foreign_backup(source, f"it contains {name!r}")
        media_files += is_media
        missing.discard(name)
        if name != FIRST and (media or not is_media):
            member.unpack(target / name)
        listed.update(sums_line(member.digest(), name))
    progress.finish()  # a tar also has headers
    if not backup.is_replica and digest != listed.hexdigest():
        raise damaged_backup(source, "its checksum does not match" if digest else f"{SUMS} is missing")
    if missing:
        raise foreign_backup(source, f"it lacks {', '.join(sorted(missing))}")
    seal = _check_seal(backup, digest, signature, ours, unsealed)
    if info.holds_secret and crypto.load(target / SECRET).check_value != info.secret_key:
        raise foreign_backup(source, "its database does not belong to the secret.key in the backup")
    posts, named = _check_database(backup, target / DATABASE)
    lost = named - media_files if info.holds_media and not backup.is_replica else 0
    return BackupSummary(info.copied_at, info.holds_secret, posts, media_files, lost, seal)


def _check_seal(backup: OpenedBackup, digest: str, signature: str, ours: Secrets | None, unsealed: bool) -> Seal:
    if ours is None or ours.check_value != backup.info.secret_key:
        return Seal.UNCHECKED if signature else Seal.NONE
    if signature:
        if not ours.has_signed_backup(signature, digest):
            raise InvalidBackup(f"{backup.path} was changed without the secret.key.", "Use another backup.")
        return Seal.FITS
    if not unsealed:
        why = "the file is only a database" if backup.is_replica else "the signature was removed"
        raise InvalidBackup(
            f"{backup.path} is not signed: {why}.",
            "If you know that no other person had access to the backup, accept the backup with --unsealed.",
        )
    return Seal.NONE


def _check_database(backup: OpenedBackup, database: Path) -> tuple[int, int]:
    """Check the unpacked database. Return the numbers of posts and of stored files."""
    source = backup.path
    try:
        with open_file(database, "rw") as db:
            upgrade.refuse_unreadable(db, f"The database in {source}")
            step = "Checking the database of the backup"
            result = file_check.find_damage(db.connection(), step, compare_indexes=True)
            if result != "ok":
                raise OperatorError(f"The database in {source} is damaged: {result}.", "Use another backup.")
            if appliance_state.get(db, appliance_state.SECRET_KEY) != backup.info.secret_key:
                raise foreign_backup(source, "its database and its description refer to different secret.keys")
            return post_rows.count(db), artifact_rows.stored(db)[0]
    except sqlite3.Error as error:
        raise OperatorError(f"The database in {source} cannot be read: {error}.", "Use another backup.") from error


# --- a tar, a folder, a database alone --------------------------------------------------------------------------------


def _read_tar(path: Path) -> Members:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        progress.begin("Reading the backup", size)
        try:
            tar = tarfile.TarFile(fileobj=file, encoding="utf-8", errors="surrogateescape")
            while (info := tar.next()) is not None:
                tar.members = []  # type: ignore[attr-defined]  # `TarFile` would keep all of them in memory
                if not info.isreg():
                    raise foreign_backup(path, f"its {info.name!r} is not a file")
                if info.offset_data + info.size > size:
                    raise damaged_backup(path, f"its {info.name!r} is incomplete")
                file.seek(info.offset_data)
                yield Member(file, info.name, info.size)
        except tarfile.TarError as error:
            raise foreign_backup(path, str(error)) from None


def _read_folder(folder: Path) -> Members:
    if not (folder / FIRST).is_file():
        error = foreign_backup(folder)
        if inside := sorted(path.parent for path in folder.glob(f"[0-9]*/{FIRST}")):
            error.hint = f"The folder contains backups. Use one of them, such as {inside[-1]}"
        raise error
    if not (folder / SUMS).is_file():
        raise damaged_backup(folder, f"{SUMS} is missing")
    lines, size = list_sums(folder), 0
    for name, _ in lines:
        if not (folder / name).is_file():  # the kernel would wait for the writer of a FIFO
            raise damaged_backup(folder, f"it lacks {name!r}")
        size += (folder / name).stat().st_size
    progress.begin("Reading the backup", size)
    for name, expected in lines:
        with open_member(folder / name, name) as member:
            yield member
            if member.digest() != expected:
                raise damaged_backup(folder, f"its {name!r} has changed")
    for name in (SUMS, SEAL):
        if (folder / name).is_file():
            with open_member(folder / name, name) as member:
                yield member


def list_sums(folder: Path) -> list[tuple[str, str]]:
    """Return the name and the SHA-256 of each file that SHA256SUMS lists. Raises OSError."""
    lines = (folder / SUMS).read_text("utf-8", "replace").splitlines()
    return [(line[_DIGEST_CHARACTERS + 2 :], line[:_DIGEST_CHARACTERS]) for line in lines]


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_DATABASE_START)) == _DATABASE_START


def _read_database(path: Path) -> Members:
    """Read a database that no process has open."""
    journal = path.with_name(f"{path.name}-wal")
    if journal.exists() and journal.stat().st_size:
        raise OperatorError(
            f"{path} is not a backup: its journal shows that an appliance is using the database or was killed.",
            f"Make a backup with `{commands.line('backup', 'FILE')}`, or restore a backup from the replica with "
            "`litestream restore`.",
        )
    try:
        # SQLite creates no files beside an immutable database.
        with open_file(path, "ro&immutable=1") as db:
            secret_key = appliance_state.get(db, appliance_state.SECRET_KEY)
            heartbeat = appliance_state.get(db, appliance_state.HEARTBEAT)
            written_at = max(heartbeat or _NEVER, post_rows.newest_created_at(db) or _NEVER)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise OperatorError(f"The database in {path} cannot be read: {error}.", "Use another backup.") from error
    if secret_key is None:
        raise foreign_backup(path)
    info = BackupInfo(written_at, secret_key).as_json()
    progress.begin("Reading the backup", path.stat().st_size)
    yield Member(io.BytesIO(info), FIRST, len(info))
    with open_member(path, DATABASE) as member:
        yield member
