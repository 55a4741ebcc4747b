"""One scheduled copy: a folder of its own, named after its instant, beside those of the days before.

Nothing stands under such a name before it is whole and on the disk. One is made at a time, and what a run that was
killed has left is removed by the next one.
"""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from socialpub.core import commands, durable_files
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import OperatorError
from socialpub.db import post_rows, secret_rotation
from socialpub.db.locks import FileLock
from socialpub.db.transaction import Reader, Tx
from socialpub.ops.copies import after_copy, archive, backup, copy_folder, copy_progress, dated_copies, linked_media
from socialpub.ops.copies.backup import DATABASE, MEDIA, SECRET, BackupInfo, BackupSummary
from socialpub.ops.copies.copy_folder import FolderWriter
from socialpub.ops.copies.dated_copies import UNFINISHED, DatedCopy
from socialpub.ops.copies.last_copy import ScheduledCopy
from socialpub.ops.copies.linked_media import LinkedMedia
from socialpub.runtime import Runtime

READ_ALL_AFTER = timedelta(days=30)
"""So long the sums of media are taken from the copy before; then all of them are read again."""


class CopyInProgress(OperatorError):
    """Somebody else makes one at this moment."""


@dataclass(frozen=True, slots=True)
class MadeCopy:
    path: Path
    summary: BackupSummary
    scheduled: ScheduledCopy
    changed: int
    """Stored media files that are not what they were in earlier copies."""
    removed: int
    """Older copies that need not be kept any more."""


def make(rt: Runtime, *, with_secret: bool = False) -> MadeCopy:
    """Make one now, remove those that need not stay, and run what is to follow. Raises OperatorError; how it ended is
    noted."""
    folder = rt.settings.backup_dir
    with _alone(rt, folder), backup.failure_noted(rt):
        with backup.failures_told(rt, folder):
            _make_folder(rt, folder)
            keys = secret_rotation.own_keys(rt.reader, rt.secrets)
            dated_copies.clear_unfinished(folder, keys)
            path, summary, media, database_bytes = _write(rt, folder, with_secret)
        removed = dated_copies.prune(folder, keys, rt.settings.backup, path)
        if rt.settings.backup.after:
            after_copy.run(rt.settings.backup, path)
        scheduled = ScheduledCopy(
            summary.copied_at, str(path), media.size_bytes + database_bytes, media.new_bytes + database_bytes
        )
        backup.note_made(rt, summary, scheduled)
    return MadeCopy(path, summary, scheduled, media.changed, removed)


def clean(rt: Runtime) -> None:
    """Remove what a run that was killed has left, unless one is under way."""
    folder = rt.settings.backup_dir
    if folder.is_dir():
        with suppress(CopyInProgress), _alone(rt, folder):
            dated_copies.clear_unfinished(folder, secret_rotation.own_keys(rt.reader, rt.secrets))


def _make_folder(rt: Runtime, folder: Path) -> None:
    """Elsewhere than in data_dir it must be there: else the disk that it is on may not be mounted, and the copies would
    fill the one below."""
    if rt.settings.data_dir in folder.parents:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not folder.is_dir():
        make = ("install", "-d", "-m", "700", "-o", str(os.geteuid()), str(folder))
        raise OperatorError(
            f"The folder {folder} (backup.folder) does not exist.",
            f"Mount the disk that it is on, or make it once: `{commands.system_line(*make, root=True)}`.",
        )


@contextmanager
def _alone(rt: Runtime, folder: Path) -> Iterator[None]:
    lock = FileLock(rt.settings.run_dir / "scheduled-copy.lock")
    if not lock.try_acquire():
        raise CopyInProgress(f"A backup into {folder} is being made already.", "Wait until it is done.")
    try:
        yield
    finally:
        lock.release()


def _write(rt: Runtime, folder: Path, with_secret: bool) -> tuple[Path, BackupSummary, LinkedMedia, int]:
    now = rt.now()  # before the instant of the database: what is read back after a restore begins there
    target = dated_copies.free_place(folder, now)
    before = _before(rt, folder)
    # Read again from time to time, and whenever the clock has gone back since.
    read_at = before.media_read_at if before else None
    read_all = read_at is None or not timedelta(0) <= now - parse(read_at) < READ_ALL_AFTER
    info = BackupInfo(stamp(now), rt.secrets.check_value, with_secret)
    unfinished = folder / (UNFINISHED + target.name)
    unfinished.mkdir(mode=0o700)
    try:
        with (
            closing(FolderWriter(unfinished)) as copy,
            closing(LinkedMedia(rt, unfinished, before, read_all=read_all)) as media,
        ):
            copy.add(archive.FIRST, info.as_json(media_read_at=stamp(now) if read_all else str(read_at)))
            if with_secret:
                copy.add(SECRET, rt.settings.secret_key_file.read_bytes())
            database = unfinished / DATABASE
            with _room(rt, folder):
                backup.copy_database(rt, database)
            with closing(sqlite3.connect(database)) as copied:
                written, lost = backup.add_media(
                    rt, copied, Tx(copied, now), lambda key: copy.note(MEDIA + key, media.add(key))
                )
                count = post_rows.count(Reader(copied))
            with database.open("rb+") as file:
                durable_files.flush(file)
            database_bytes = database.stat().st_size
            copy_progress.expect(database_bytes)
            copy.note(DATABASE, copy_folder.digest_of(database))
            copy.finish(rt.secrets.sign_copy)
        unfinished.rename(target)
        durable_files.flush_folder(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return target, BackupSummary(info.copied_at, with_secret, count, written, lost), media, database_bytes


def _before(rt: Runtime, folder: Path) -> DatedCopy | None:
    """The newest copy whose sums can be trusted."""
    copies = dated_copies.list_all(folder, {rt.secrets.check_value})
    return next((copy for copy in reversed(copies) if linked_media.trusted(rt, copy)), None)


def _room(rt: Runtime, folder: Path) -> AbstractContextManager[object]:
    """Room for the copied database, beside what uploads and rows need. Raises Unavailable."""
    if not backup.on_the_disk_of_media(rt, folder):
        return nullcontext()
    return rt.files.promises.make(backup.rows_bytes(rt))
