"""The scheduled backup: a dated folder of its own, and the command that runs afterwards."""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO

from socialpub.core import commands, durable_files, units
from socialpub.core.clock import parse, stamp
from socialpub.core.commands import CONFIG_VARIABLE
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.secrets.redaction import redact
from socialpub.core.settings.loader import COPY_VARIABLE, PREFIX
from socialpub.core.settings.schema import FOLDER_PLACEHOLDER, BackupSection
from socialpub.core.text import visible
from socialpub.db import secret_key
from socialpub.db.connection import Reader, Tx
from socialpub.db.tables import post_rows
from socialpub.ops.backup import create, folders, format
from socialpub.ops.backup.create import DATABASE, MEDIA, SECRET, BackupInfo, BackupSummary
from socialpub.ops.backup.folders import UNFINISHED, DatedBackup, HardlinkedMedia
from socialpub.ops.backup.format import FolderWriter
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

# MERGED from ops/copies/after_copy.py: The command that takes a copy elsewhere: run after each scheduled one, with

END_SECONDS = 10.0
_MAX_OUTPUT = 600
"""Characters of its output that are told: half of them from its beginning, where restic and rclone say why."""


def run_post_backup_command(settings: BackupSection, copy: Path) -> None:
    """Run `[backup] after` for this copy, and wait for its end. Raises OperatorError when it fails."""
    command = [part.replace(FOLDER_PLACEHOLDER, str(copy)) for part in settings.after]
    # Our own settings are not its business, and some of them are secrets; where they stand it may need to know.
    inherited = {
        name: os.environ[name] for name in os.environ if name == CONFIG_VARIABLE or not name.startswith(PREFIX)
    }
    with tempfile.TemporaryFile() as output:
        try:
            code = _run_command(
                command, inherited | {COPY_VARIABLE: str(copy)}, output, settings.after_timeout.total_seconds()
            )
        except OSError as error:
            raise _command_failed(copy, f"{command[0]!r} cannot be run: {error.strerror}", output) from None
        if code is None:
            raise _command_failed(copy, f"it took longer than {units.duration(settings.after_timeout)}", output)
        if code != 0:
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            raise _command_failed(copy, how, output)


def _run_command(command: Sequence[str], environment: dict[str, str], output: IO[bytes], seconds: float) -> int | None:
    """The exit code; None when it took too long."""
    process = subprocess.Popen(  # noqa: S603  the owner's own words
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,  # it ends with everything that it started
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _end_command(process)


def _end_command(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _command_failed(copy: Path, how: str, output: IO[bytes]) -> OperatorError:
    text = _readable(output, 0)
    if len(text) > _MAX_OUTPUT:
        half = _MAX_OUTPUT // 2
        size = output.seek(0, os.SEEK_END)
        text = f"{text[:half]} … {_readable(output, max(0, size - 4 * _MAX_OUTPUT))[-half:]}"
    said = f" It said: {text}" if text else ""
    return OperatorError(
        f"The backup is in {copy}, but the command after it (backup.after) failed: {how}.{said}",
        f"Fix the cause, then run `{commands.line('backup')}` again.",
    )


def _readable(output: IO[bytes], start: int) -> str:
    """From there, as much as can be told at most."""
    output.seek(start)
    return visible(redact(output.read(4 * _MAX_OUTPUT + 4).decode("utf-8", "replace")), keep="\n").strip()


# MERGED from ops/copies/scheduled_copy.py: One scheduled copy: a folder of its own, named after its instant, besid

READ_ALL_AFTER = timedelta(days=30)
"""So long the sums of media are taken from the copy before; then all of them are read again."""


class BackupInProgress(OperatorError):
    """Somebody else makes one at this moment."""


@dataclass(frozen=True, slots=True)
class MadeBackup:
    path: Path
    summary: BackupSummary
    scheduled: ScheduledBackup
    changed: int
    """Stored media files that are not what they were in earlier copies."""
    removed: int
    """Older copies that need not be kept any more."""


def make(rt: Runtime, *, with_secret: bool = False) -> MadeBackup:
    """Make one now, remove those that need not stay, and run what is to follow. Raises OperatorError; how it ended is
    noted."""
    folder = rt.settings.backup_dir
    with _exclusive_backup(rt, folder), create.failure_noted(rt):
        with create.failures_told(rt, folder):
            _make_folder(rt, folder)
            keys = secret_key.own_keys(rt.reader, rt.secrets)
            folders.clear_unfinished(folder, keys)
            path, summary, media, database_bytes = _write(rt, folder, with_secret)
        removed = folders.prune(folder, keys, rt.settings.backup, path)
        if rt.settings.backup.after:
            run_post_backup_command(rt.settings.backup, path)
        scheduled = ScheduledBackup(
            summary.copied_at, str(path), media.size_bytes + database_bytes, media.new_bytes + database_bytes
        )
        create.note_made(rt, summary, scheduled)
    return MadeBackup(path, summary, scheduled, media.changed, removed)


def clean(rt: Runtime) -> None:
    """Remove what a run that was killed has left, unless one is under way."""
    folder = rt.settings.backup_dir
    if folder.is_dir():
        with suppress(BackupInProgress), _exclusive_backup(rt, folder):
            folders.clear_unfinished(folder, secret_key.own_keys(rt.reader, rt.secrets))


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
def _exclusive_backup(rt: Runtime, folder: Path) -> Iterator[None]:
    lock = FileLock(rt.settings.run_dir / "scheduled-copy.lock")
    if not lock.try_acquire():
        raise BackupInProgress(f"A backup into {folder} is being made already.", "Wait until it is done.")
    try:
        yield
    finally:
        lock.release()


def _write(rt: Runtime, folder: Path, with_secret: bool) -> tuple[Path, BackupSummary, HardlinkedMedia, int]:
    now = rt.now()  # before the instant of the database: what is read back after a restore begins there
    target = folders.free_place(folder, now)
    before = _find_previous(rt, folder)
    # Read again from time to time, and whenever the clock has gone back since.
    read_at = before.media_read_at if before else None
    read_all = read_at is None or not timedelta(0) <= now - parse(read_at) < READ_ALL_AFTER
    info = BackupInfo(stamp(now), rt.secrets.check_value, with_secret)
    unfinished = folder / (UNFINISHED + target.name)
    unfinished.mkdir(mode=0o700)
    try:
        with (
            closing(FolderWriter(unfinished)) as copy,
            closing(HardlinkedMedia(rt, unfinished, before, read_all=read_all)) as media,
        ):
            copy.add(format.FIRST, info.as_json(media_read_at=stamp(now) if read_all else str(read_at)))
            if with_secret:
                copy.add(SECRET, rt.settings.secret_key_file.read_bytes())
            database = unfinished / DATABASE
            with _room(rt, folder):
                create.copy_database(rt, database)
            with closing(sqlite3.connect(database)) as copied:
                written, lost = create.add_media(
                    rt, copied, Tx(copied, now), lambda key: copy.note(MEDIA + key, media.add(key))
                )
                count = post_rows.count(Reader(copied))
            with database.open("rb+") as file:
                durable_files.flush(file)
            database_bytes = database.stat().st_size
            format.expect(database_bytes)
            copy.note(DATABASE, format.compute_digest(database))
            copy.finish(rt.secrets.sign_copy)
        unfinished.rename(target)
        durable_files.flush_folder(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return target, BackupSummary(info.copied_at, with_secret, count, written, lost), media, database_bytes


def _find_previous(rt: Runtime, folder: Path) -> DatedBackup | None:
    """The newest copy whose sums can be trusted."""
    copies = folders.list_backups(folder, {rt.secrets.check_value})
    return next((copy for copy in reversed(copies) if folders.is_trusted(rt, copy)), None)


def _room(rt: Runtime, folder: Path) -> AbstractContextManager[object]:
    """Room for the copied database, beside what uploads and rows need. Raises Unavailable."""
    if not create.on_the_disk_of_media(rt, folder):
        return nullcontext()
    return rt.files.reservations.reserve(create.rows_bytes(rt))
