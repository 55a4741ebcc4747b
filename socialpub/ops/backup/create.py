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
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from socialpub.core import commands, durable_files, progress
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, OperatorError, SocialpubError, Unavailable, reason_for
from socialpub.core.locks import FileLock
from socialpub.db import backup_format, errors
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
from socialpub.media.reservations import DiskReservation
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
    with failure_recorded(rt):
        made = _write_tar(rt, target, with_secret)
    record_made(rt, made)
    return made


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
        raise _exists(target)
    folder = target.absolute().parent
    if not folder.is_dir():
        raise OperatorError(f"The folder {folder} does not exist.", f"Create it: mkdir -p {shlex.quote(str(folder))}")
    now = rt.now()  # before the instant of the database: read-backs after a restore begin here
    unfinished = folder / f"{target.name}.unfinished"
    with (
        failures_explained(rt, target),
        # The rows are on the disk twice until the tar is complete.
        reserve_space(rt, folder, artifact_rows.stored(rt.db)[1] + 2 * rows_bytes(rt)) as room,
    ):
        unfinished.mkdir(mode=0o700)
        try:
            database, tar = unfinished / DATABASE, unfinished / "backup.tar"
            copy_database(rt, database)
            with durable_files.create(tar) as file, closing(TarWriter(file)) as writer:
                summary = write_members(rt, writer, database, now, with_secret=with_secret, room=room)
                writer.finish(rt.secrets)
                progress.begin("Waiting for the disk")
                durable_files.flush(file)
            durable_files.move(tar, target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return summary


def write_members(
    rt: Runtime,
    writer: BackupWriter,
    database: Path,
    now: datetime,
    *,
    with_secret: bool,
    room: DiskReservation | None = None,
) -> BackupSummary:
    """Write the description, `secret.key`, the media of a copied database, and that database.

    The media use up the reservation `room`.
    """
    progress.begin("Writing the backup", artifact_rows.stored(rt.db)[1] + database.stat().st_size)
    info = BackupInfo(stamp(now), rt.secrets.check_value, holds_secret=with_secret)
    writer.add(FIRST, info.as_json())
    if with_secret:
        writer.add_file(SECRET, rt.settings.secret_key_file)
    with open_file(database, "rw") as copied:
        copied.begin_write(now)
        written, lost = _add_all_media(rt, writer, copied, room)
        count = post_rows.count(copied)
    writer.add_database(database)
    progress.finish()
    return BackupSummary(info.copied_at, with_secret, count, written, lost)


def _add_all_media(
    rt: Runtime, writer: BackupWriter, copied: Database, room: DiskReservation | None
) -> tuple[int, int]:
    """Add every file that the copied database refers to. Return the numbers of written files and of lost files."""
    written = lost = 0
    removed = []
    for key in artifact_rows.storage_keys(copied):
        path = rt.files.path(key)
        try:
            if room is not None:
                room.spend(min(path.stat().st_size, room.left_bytes))
            writer.add_media(MEDIA + key, path)
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
def failure_recorded(rt: Runtime) -> Iterator[None]:
    try:
        yield
    except OperatorError as error:
        with suppress(SocialpubError):
            rt.write(last_backup.record_failure, error.message)
        raise


def record_made(rt: Runtime, made: BackupSummary, scheduled: ScheduledBackup | None = None) -> None:
    with suppress(SocialpubError):
        rt.write(last_backup.record_backup, made, scheduled)


@contextmanager
def failures_explained(rt: Runtime, target: Path) -> Iterator[None]:
    """Turn the errors of writing a backup into an OperatorError with a hint."""
    try:
        yield
    except FileExistsError as error:
        raise _exists(Path(error.filename2 or error.filename)) from None
    except Unavailable as full:
        raise OperatorError(
            f"The backup could not be written to {target}: the disk of {rt.settings.data_dir} would not keep "
            "health.disk_floor_bytes free.",
            "Write the backup to another disk, or free disk space.",
        ) from full
    except (OSError, sqlite3.Error) as error:
        if (how := errors.find_damage(error)) is not None:
            raise _damaged(rt, how) from error
        message = f"The backup could not be written to {target}: {reason_for(error)}."
        raise OperatorError(message, _hint(error, target)) from error


def _hint(error: Exception, target: Path) -> str:
    if getattr(error, "errno", None) != errno.EROFS or not commands.is_service():
        return "Check the disk and the folder's permissions, and try again."
    allow = shlex.join(["printf", f"[Service]\\nReadWritePaths={target}\\n"])
    file = "/etc/systemd/system/socialpub-backup.service.d/folder.conf"
    line = f"{allow} | sudo install -D -m 644 /dev/stdin {file}"
    return f"Allow the service to write to this folder: `{line}`, then `sudo systemctl daemon-reload`."


def _exists(path: Path) -> OperatorError:
    if path.name.endswith(".unfinished"):
        remove = f"If no other command writes this backup, remove it: `rm -r {shlex.quote(str(path))}`."
        return OperatorError(f"{path} already exists: an interrupted backup, or one that is being written.", remove)
    return OperatorError(f"{path} already exists.", "Choose another name, or move the file.")


# --- the database and its disk --------------------------------------------------------------------------------------


def copy_database(rt: Runtime, target: Path) -> None:
    """Copy the database as of this instant. Raises OperatorError if the database is damaged."""
    with closing(sqlite3.connect(rt.db.path, timeout=rt.db.timeout)) as source:
        result = backup_format.copy_rows(source, target)
    if result != "ok":
        raise _damaged(rt, result)


def _damaged(rt: Runtime, how: str) -> OperatorError:
    fault = file_faults.damaged_database(how, rt.settings)
    return OperatorError(f"{fault.message} No backup was written.", fault.remedy)


def rows_bytes(rt: Runtime) -> int:
    """Return the approximate size of a copy of the database."""
    database = rt.settings.database_file
    journal = database.with_name(f"{database.name}-wal")
    return sum(path.stat().st_size for path in (database, journal) if path.exists())


def reserve_space(rt: Runtime, folder: Path, size_bytes: int) -> AbstractContextManager[DiskReservation | None]:
    """Reserve space if the folder shares its disk with uploads and rows. Raises Unavailable."""
    is_shared = folder.stat().st_dev == rt.files.root.stat().st_dev
    return rt.files.reservations.reserve(size_bytes) if is_shared else nullcontext()
