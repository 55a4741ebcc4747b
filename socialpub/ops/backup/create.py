"""Creating a backup of the database and its media while the appliance is running.

The backup contains the database as of one instant. If a file is removed after that instant, the copied database records
the removal. A backup therefore contains every file that its database refers to, except files that were lost before.
"""

import errno
import os
import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from socialpub.core import commands, durable_files, progress
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, OperatorError, SocialpubError, Unavailable, reason_for
from socialpub.core.locks import FileLock
from socialpub.db import backup_format, sqlite_errors
from socialpub.db.backup_format import (
    DATABASE,
    FIRST,
    MEDIA,
    SECRET,
    BackupInfo,
    BackupSummary,
    BackupWriter,
    TarWriter,
)
from socialpub.db.connection import Database, open_file
from socialpub.db.tables import artifact_rows, post_rows
from socialpub.ops import file_faults
from socialpub.ops.backup import last_backup
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

DOWNLOAD = ".download"
"""The folder in `data_dir` in which a download is made."""


def write_backup(rt: Runtime, target: Path, *, with_secret: bool = False) -> BackupSummary:
    """Write a backup to the new file `target`, and record the result. Raises OperatorError.

    The file appears when it is complete and on the disk.
    """
    with failures_recorded(rt, target):
        summary = _write_tar(rt, target, with_secret)
    record_made(rt, summary)
    return summary


def make_download(rt: Runtime) -> BinaryIO:
    """Write a backup without `secret.key` and open it. With large media this takes minutes.

    The file has no name, so its space is freed when the reader is done or its process dies. Raises OperatorError, and
    Conflict while another download is being made.
    """
    with one_at_a_time(rt, "download.lock", Conflict("A backup is already being made. Try again in a few minutes.")):
        folder = rt.settings.data_dir / DOWNLOAD
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            write_backup(rt, folder / "backup.tar")
            return (folder / "backup.tar").open("rb")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_download(rt: Runtime) -> None:
    """Remove the leftovers of a killed download, unless a download is being made."""
    folder = rt.settings.data_dir / DOWNLOAD
    if folder.exists():
        with suppress(Conflict), one_at_a_time(rt, "download.lock", Conflict("")):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def one_at_a_time(rt: Runtime, lock_file: str, busy: Exception) -> Iterator[None]:
    """Hold a lock against other processes. Raises `busy` if another process holds the lock."""
    lock = FileLock(rt.settings.run_dir / lock_file)
    if not lock.try_acquire():
        raise busy
    try:
        yield
    finally:
        lock.release()


def _write_tar(rt: Runtime, target: Path, with_secret: bool) -> BackupSummary:
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "already exists", str(target))
    folder = target.absolute().parent
    if not folder.is_dir():
        raise OperatorError(f"The folder {folder} does not exist.", f"Create it: mkdir -p {shlex.quote(str(folder))}")
    now = rt.now()  # before the instant of the database: read-backs after a restore begin here
    # The rows are on the disk twice until the tar is complete.
    check_space(rt, folder, artifact_rows.stored(rt.db)[1] + 2 * rows_bytes(rt))
    unfinished = folder / f"{target.name}.unfinished"
    unfinished.mkdir(mode=0o700)
    try:
        database, tar = unfinished / DATABASE, unfinished / "backup.tar"
        copy_database(rt, database)
        with durable_files.create(tar) as file, closing(TarWriter(file)) as writer:
            summary = write_members(rt, writer, database, now, with_secret=with_secret)
            writer.finish(rt.secrets)
            progress.begin("Waiting for the disk")
            durable_files.flush(file)
        durable_files.move(tar, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return summary


def write_members(
    rt: Runtime, writer: BackupWriter, database: Path, now: datetime, *, with_secret: bool
) -> BackupSummary:
    """Write the description, `secret.key`, the media of a copied database, and that database."""
    progress.begin("Writing the backup", artifact_rows.stored(rt.db)[1] + database.stat().st_size)
    info = BackupInfo(stamp(now), rt.secrets.check_value, holds_secret=with_secret)
    writer.add(FIRST, info.as_json())
    if with_secret:
        writer.add_file(SECRET, rt.settings.secret_key_file)
    with open_file(database, "rw") as copied:
        copied.begin_write(now)
        written, lost = _add_all_media(rt, writer, copied)
        count = post_rows.count(copied)
    writer.add_database(database)
    progress.finish()
    return BackupSummary(info.copied_at, with_secret, count, written, lost)


def _add_all_media(rt: Runtime, writer: BackupWriter, copied: Database) -> tuple[int, int]:
    """Add every file that the copied database refers to. Return the numbers of written files and of lost files."""
    written = lost = 0
    removed = []
    for key in artifact_rows.storage_keys(copied):
        try:
            writer.add_media(MEDIA + key, rt.files.path(key))
            written += 1
        except FileNotFoundError:
            if artifact_rows.named_among(rt.db, [key]):
                lost += 1
            else:
                removed.append(key)  # since the instant of the backup
    with copied.atomic("IMMEDIATE"):
        # The name of a file that an open post needs stays: the delivery reports the missing file.
        lost += sum(not artifact_rows.note_removed(copied, key) for key in removed)
    return written, lost


# --- the result ------------------------------------------------------------------------------------------------------


@contextmanager
def failures_recorded(rt: Runtime, target: Path) -> Iterator[None]:
    """Record why a backup could not be written to `target`, and raise OperatorError with a hint."""
    try:
        yield
    except (OperatorError, Unavailable, OSError, sqlite3.Error) as error:
        failure = _explain(rt, error, target)
        with suppress(SocialpubError):
            rt.write(last_backup.record_failure, failure.message)
        raise failure from error


def _explain(rt: Runtime, error: Exception, target: Path) -> OperatorError:
    if isinstance(error, OperatorError):
        return error
    if isinstance(error, Unavailable):
        return OperatorError(
            f"The backup could not be written to {target}: the disk of {rt.settings.data_dir} would not keep "
            "health.disk_floor_bytes free.",
            "Write the backup to another disk, or free disk space.",
        )
    if isinstance(error, FileExistsError):
        path = error.filename2 or error.filename
        return OperatorError(f"{path} already exists.", "Choose another name, or move the file.")
    if (how := sqlite_errors.find_damage(error)) is not None:
        return _damaged(rt, how)
    return OperatorError(
        f"The backup could not be written to {target}: {reason_for(error)}.",
        "Check the disk and the folder's permissions, and try again. "
        f"`{commands.line('manual', 'backups')}` shows how to allow a folder for the service.",
    )


def record_made(rt: Runtime, made: BackupSummary, scheduled: ScheduledBackup | None = None) -> None:
    with suppress(SocialpubError):
        rt.write(last_backup.record_backup, made, scheduled)


# --- the database and its disk --------------------------------------------------------------------------------------


def copy_database(rt: Runtime, target: Path) -> None:
    """Copy the database as of this instant. Raises OperatorError if the database is damaged."""
    with closing(sqlite3.connect(rt.db.path, timeout=rt.db.timeout)) as source:
        result = backup_format.copy_rows(source, target)
    if result != "ok":
        raise _damaged(rt, result)


def _damaged(rt: Runtime, how: str) -> OperatorError:
    fault = file_faults.damaged_database(how, rt.settings)
    return OperatorError(f"{fault.message} No backup was written.", fault.hint)


def rows_bytes(rt: Runtime) -> int:
    """Return the approximate size of a copy of the database."""
    database = rt.settings.database_file
    journal = database.with_name(f"{database.name}-wal")
    return sum(path.stat().st_size for path in (database, journal) if path.exists())


def check_space(rt: Runtime, folder: Path, size_bytes: int) -> None:
    """Raise Unavailable if the backup would use the space of uploads and rows on the same disk."""
    if folder.stat().st_dev == rt.files.root.stat().st_dev:
        with rt.files.reservations.reserve(size_bytes):
            pass
