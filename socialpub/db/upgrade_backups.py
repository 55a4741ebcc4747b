"""Backups of the database before an upgrade, in `data_dir/upgrades`. Restoring a backup undoes the upgrade.

A backup contains every row of one instant, and no media, which migrations do not change. Migrations begin after the
backup is on the disk and verified. The newest backup of each schema stays, so repeated failures do not remove other
backups. A file name contains the last migration, the instant and the two versions.
"""

import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from socialpub.core import durable_files, logging, progress, units
from socialpub.core.clock import stamp
from socialpub.core.errors import OperatorError, reason_for
from socialpub.db import appliance_state, file_check
from socialpub.db.connection import Database, open_file

KEPT = 3
FOLDER, END, UNFINISHED = "upgrades", ".db", "unfinished"
STEP_PAGES = 4096
_TO = "-to-"
_VERSION = re.compile(r"[0-9a-z][0-9a-z.+]{0,99}")

log = logging.get_logger("socialpub.upgrade")


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
    found = []
    for path in backup_folder(database).glob(f"*{END}"):
        schema, _, rest = path.name.removesuffix(END).partition("@")
        instant, _, versions = rest.partition("@")
        if instant:
            found.append(UpgradeBackup(path, schema, instant, path.stat().st_size, versions.partition(_TO)[0]))
    return sorted(found, key=lambda backup: backup.instant, reverse=True)


def needed_bytes(connection: sqlite3.Connection) -> int:
    """Return the largest space for an upgrade: the backup, and the same again for rewritten tables."""
    return 2 * file_check.size_bytes(connection)


def free_bytes(database: Path) -> int:
    return shutil.disk_usage(database.parent).free


def read_version(store: Database) -> str:
    """Return the version that last used this database, safe as a part of a file name."""
    written = appliance_state.get(store, appliance_state.VERSION) or ""
    return written if _VERSION.fullmatch(written) else "unknown"


def create(
    db: Database,
    database: Path,
    schema: str,
    now: datetime,
    following: str,
    spare: Path | None = None,
) -> UpgradeBackup:
    """Back up the database at `schema` before the upgrade to `following`. Remove older backups except `spare`.

    Call this inside `upgrade.exclusive`. Raise OperatorError without any change.
    """
    connection = db.connection()
    _check_space(connection, database)
    log.info(
        "backing up the database before the upgrade",
        size_bytes=file_check.size_bytes(connection),
        free_bytes=free_bytes(database),
    )
    folder = backup_folder(database)
    version = read_version(db)
    instant = stamp(now).replace(":", "").replace("-", "")
    target = folder / f"{schema}@{instant}@{version}{_TO}{following}{END}"
    unfinished = folder / UNFINISHED
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        _remove_unfinished(folder)
        with durable_files.create(unfinished) as file:  # SQLite keeps the mode of an empty file
            _back_up(connection, unfinished, stamp(now))
            durable_files.flush(file)
        unfinished.replace(target)
        durable_files.flush_folder(folder)
        durable_files.flush_folder(folder.parent)
    except (OSError, sqlite3.Error) as error:
        _remove_unfinished(folder)
        raise OperatorError(
            f"The backup before the upgrade, in {folder}, failed: {reason_for(error)}.",
            "Nothing was changed. Check the disk and the folder's permissions, and start again.",
        ) from error
    _forget_older(database, schema, {target, spare})
    log.info("backed up the database before the upgrade", backup=str(target), size_bytes=target.stat().st_size)
    return UpgradeBackup(target, schema, stamp(now), target.stat().st_size, version)


def _check_space(connection: sqlite3.Connection, database: Path) -> None:
    needed, free = needed_bytes(connection), free_bytes(database)
    if free < needed:
        raise OperatorError(
            f"The upgrade of the database needs {units.size(needed)} in {database.parent}, half of it for a backup. "
            f"{units.size(free)} are free, so {units.size(needed - free)} are missing.",
            "Nothing was changed, and the previous version still works. Free some space and start again. "
            f"You can remove backups of earlier upgrades in {backup_folder(database)}.",
        )


def _back_up(connection: sqlite3.Connection, target: Path, at: str) -> None:
    result = copy_rows(connection, target)
    if result != "ok":
        raise sqlite3.DatabaseError(f"the backup is damaged ({result})")
    with open_file(target, "rw") as copied:
        copied.execute_sql("PRAGMA synchronous = off")
        appliance_state.put(copied, appliance_state.UPGRADE_BACKUP_OF, at)


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


def _remove_unfinished(folder: Path) -> None:
    for path in folder.glob(f"{UNFINISHED}*"):
        path.unlink(missing_ok=True)


def _forget_older(database: Path, schema: str, spared: set[Path | None]) -> None:
    kept = 1
    for backup in list_all(database):
        if backup.path in spared:
            continue
        kept += backup.schema != schema
        if backup.schema == schema or kept > KEPT:
            backup.path.unlink(missing_ok=True)
