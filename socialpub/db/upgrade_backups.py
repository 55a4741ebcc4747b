"""Backups of the database before an upgrade, in `data_dir/upgrades`. Restoring a backup undoes the upgrade.

Such a backup has the usual format, without media, which migrations do not change. Migrations begin after the backup is
on the disk and verified. The newest backup of each schema stays, so repeated failures do not remove other backups. A
folder's name contains the last migration and the instant.
"""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from socialpub.core import durable_files, logging, units
from socialpub.core.clock import stamp
from socialpub.core.errors import OperatorError, reason_for
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, file_check
from socialpub.db.backup_format import DATABASE, FIRST, BackupInfo, FolderWriter, copy_rows
from socialpub.db.connection import Database

KEPT = 3
FOLDER, UNFINISHED = "upgrades", "unfinished"

log = logging.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class UpgradeBackup:
    path: Path
    schema: str
    """The last migration."""
    instant: str
    size_bytes: int
    version: str
    """The version that used this database."""


def backup_folder(database: Path) -> Path:
    return database.parent / FOLDER


def list_all(database: Path) -> list[UpgradeBackup]:
    """Return the upgrade backups, newest first."""
    backups = []
    for path in backup_folder(database).glob("*@*"):
        schema, _, instant = path.name.partition("@")
        with suppress(OSError, ValueError, KeyError):
            version = str(json.loads((path / FIRST).read_bytes())["version"])
            backups.append(UpgradeBackup(path, schema, instant, (path / DATABASE).stat().st_size, version))
    return sorted(backups, key=lambda backup: backup.instant, reverse=True)


def needed_bytes(connection: sqlite3.Connection) -> int:
    """Return the largest space for an upgrade: the backup, and the same again for rewritten tables."""
    return 2 * file_check.size_bytes(connection)


def free_bytes(database: Path) -> int:
    return shutil.disk_usage(database.parent).free


def read_version(db: Database) -> str:
    """Return the version that last used this database."""
    return appliance_state.get(db, appliance_state.VERSION) or "unknown"


def create(
    db: Database, database: Path, secrets: Secrets, schema: str, now: datetime, spare: Path | None = None
) -> UpgradeBackup:
    """Back up the database at `schema`. Remove older backups except `spare`.

    Call this inside `upgrade.exclusive`. Raise OperatorError without any change.
    """
    connection = db.connection()
    _check_space(connection, database)
    size = file_check.size_bytes(connection)
    log.info("backing up the database before the upgrade", size_bytes=size, free_bytes=free_bytes(database))
    folder = backup_folder(database)
    target = folder / f"{schema}@{stamp(now).replace(':', '').replace('-', '')}"
    unfinished = folder / UNFINISHED
    info = BackupInfo(stamp(now), secrets.check_value, holds_media=False, version=read_version(db))
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        unfinished.mkdir(mode=0o700)
        damage = copy_rows(connection, unfinished / DATABASE)
        if damage != "ok":
            raise sqlite3.DatabaseError(f"the backup is damaged ({damage})")
        with closing(FolderWriter(unfinished)) as writer:
            writer.add(FIRST, info.as_json())
            writer.add_database(unfinished / DATABASE)
            writer.finish(secrets)
        unfinished.rename(target)
        durable_files.flush_folder(folder)
        durable_files.flush_folder(folder.parent)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise OperatorError(
            f"The backup before the upgrade, in {folder}, failed: {reason_for(error)}.",
            "Nothing was changed. Check the disk and the folder's permissions, and start again.",
        ) from error
    _remove_older(database, schema, {target, spare})
    log.info("backed up the database before the upgrade", backup=str(target), size_bytes=size)
    return UpgradeBackup(target, schema, stamp(now), size, info.version)


def _check_space(connection: sqlite3.Connection, database: Path) -> None:
    needed, free = needed_bytes(connection), free_bytes(database)
    if free < needed:
        raise OperatorError(
            f"The upgrade of the database needs {units.size(needed)} in {database.parent}, half of it for a backup. "
            f"{units.size(free)} are free, so {units.size(needed - free)} are missing.",
            "Nothing was changed, and the previous version still works. Free some space and start again. "
            f"You can remove backups of earlier upgrades in {backup_folder(database)}.",
        )


def _remove_older(database: Path, schema: str, spared: set[Path | None]) -> None:
    stay = 1
    for backup in list_all(database):
        if backup.path in spared:
            continue
        stay += backup.schema != schema
        if backup.schema == schema or stay > KEPT:
            shutil.rmtree(backup.path, ignore_errors=True)
