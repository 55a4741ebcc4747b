"""The scheduled backup: a dated folder of its own, and the command that runs afterwards.

A folder gets its name when it is complete and on the disk. One backup is made at a time. The next run removes what a
killed run left.

The command takes the backup elsewhere. It runs without a shell and ends after `backup.after_timeout`. If it fails, the
backup failed: its owner has none where it counts.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import IO

from socialpub.core import commands, durable_files, units
from socialpub.core.clock import parse, stamp
from socialpub.core.commands import CONFIG_VARIABLE
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.loader import COPY_VARIABLE, PREFIX
from socialpub.core.settings.schema import FOLDER_PLACEHOLDER, BackupSection
from socialpub.db import secret_key
from socialpub.ops.backup import create, folders
from socialpub.ops.backup.folders import UNFINISHED, HardlinkWriter
from socialpub.ops.backup.format import DATABASE, BackupSummary
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

READ_ALL_AFTER = timedelta(days=30)
"""How long the checksums of media are taken from the previous backup. Then every file is read again."""
END_SECONDS = 10.0
_MAX_OUTPUT = 600
"""Characters of its output in a message. Half are from its beginning, where restic and rclone report the cause."""


class BackupInProgress(OperatorError):
    """Another process is making a scheduled backup."""


@dataclass(frozen=True, slots=True)
class MadeBackup:
    path: Path
    summary: BackupSummary
    scheduled: ScheduledBackup
    changed: int
    """Stored media files that are not what they were in earlier backups."""
    removed: int = 0
    """Older backups that were removed."""


def make(rt: Runtime, *, with_secret: bool = False) -> MadeBackup:
    """Make a backup, remove those that are not kept, and run the command. Raises OperatorError. Record the result."""
    folder = rt.settings.backup_dir
    with _exclusive_backup(rt, folder), create.failure_recorded(rt):
        with create.failures_explained(rt, folder):
            _make_folder(rt, folder)
            keys = secret_key.own_keys(rt.reader, rt.secrets)
            folders.clear_unfinished(folder, keys)
            made = _write(rt, folder, with_secret)
        removed = folders.prune(folder, keys, rt.settings.backup, made.path)
        if rt.settings.backup.after:
            run_post_backup_command(rt.settings.backup, made.path)
        create.record_made(rt, made.summary, made.scheduled)
    return replace(made, removed=removed)


def clean(rt: Runtime) -> None:
    """Remove what a killed run left, unless a backup is being made."""
    folder = rt.settings.backup_dir
    if folder.is_dir():
        with suppress(BackupInProgress), _exclusive_backup(rt, folder):
            folders.clear_unfinished(folder, secret_key.own_keys(rt.reader, rt.secrets))


def _make_folder(rt: Runtime, folder: Path) -> None:
    """Make the folder in `data_dir`. Elsewhere it must exist: its disk may not be mounted."""
    if rt.settings.data_dir in folder.parents:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not folder.is_dir():
        make = ("install", "-d", "-m", "700", "-o", str(os.geteuid()), str(folder))
        raise OperatorError(
            f"The folder {folder} (backup.folder) does not exist.",
            f"Mount the disk that it is on, or make it once: `{commands.here().system_line(*make, root=True)}`.",
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


def _write(rt: Runtime, folder: Path, with_secret: bool) -> MadeBackup:
    now = rt.now()  # before the instant of the database: what is read back after a restore begins there
    target = folders.free_place(folder, now)
    previous = folders.find_previous(rt, folder)
    # Read all media from time to time, and whenever the clock was set back since.
    read_at = previous.media_read_at if previous else None
    read_all = read_at is None or not timedelta(0) <= now - parse(read_at) < READ_ALL_AFTER
    unfinished = folder / (UNFINISHED + target.name)
    unfinished.mkdir(mode=0o700)
    try:
        with closing(HardlinkWriter(rt, unfinished, previous, read_all=read_all)) as writer:
            database = unfinished / DATABASE
            with (
                rt.files.reservations.reserve(create.rows_bytes(rt))
                if create.on_the_disk_of_media(rt, folder)
                else nullcontext()
            ):
                create.copy_database(rt, database)
            media_read_at = stamp(now) if read_all else str(read_at)
            summary = create.write_members(
                rt, writer, writer.add_media, database, now, with_secret=with_secret, media_read_at=media_read_at
            )
            writer.finish(rt.secrets.sign_copy)
            database_bytes = database.stat().st_size
        unfinished.rename(target)
        durable_files.flush_folder(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    scheduled = ScheduledBackup(
        summary.copied_at, str(target), writer.size_bytes + database_bytes, writer.new_bytes + database_bytes
    )
    return MadeBackup(target, summary, scheduled, writer.changed)


# --- the command afterwards ------------------------------------------------------------------------------------------


def run_post_backup_command(settings: BackupSection, backup: Path) -> None:
    """Run `[backup] after` for a backup, and wait for its end. Raises OperatorError if it fails."""
    command = [part.replace(FOLDER_PLACEHOLDER, str(backup)) for part in settings.after]
    # It gets none of our settings, as some are secrets. It may need the path of the configuration.
    inherited = {
        name: os.environ[name] for name in os.environ if name == CONFIG_VARIABLE or not name.startswith(PREFIX)
    }
    with tempfile.TemporaryFile() as output:
        try:
            code = _run_command(
                command, inherited | {COPY_VARIABLE: str(backup)}, output, settings.after_timeout.total_seconds()
            )
        except OSError as error:
            raise _command_failed(backup, f"{command[0]!r} cannot be run: {error.strerror}", output) from None
        if code is None:
            raise _command_failed(backup, f"it took longer than {units.duration(settings.after_timeout)}", output)
        if code != 0:
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            raise _command_failed(backup, how, output)


def _run_command(command: Sequence[str], environment: dict[str, str], output: IO[bytes], seconds: float) -> int | None:
    """Return the exit code, or None if it took too long."""
    process = subprocess.Popen(  # noqa: S603  # the owner's own command
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


def _command_failed(backup: Path, how: str, output: IO[bytes]) -> OperatorError:
    text = _readable(output, 0)
    if len(text) > _MAX_OUTPUT:
        half = _MAX_OUTPUT // 2
        size = output.seek(0, os.SEEK_END)
        text = f"{text[:half]} … {_readable(output, max(0, size - 4 * _MAX_OUTPUT))[-half:]}"
    said = f" It said: {text}" if text else ""
    return OperatorError(
        f"The backup is in {backup}, but the command after it (backup.after) failed: {how}.{said}",
        f"Fix the cause, then run `{commands.line('backup')}` again.",
    )


def _readable(output: IO[bytes], start: int) -> str:
    """Return the output from this place, as much as a message can contain."""
    output.seek(start)
    return visible(redact(output.read(4 * _MAX_OUTPUT + 4).decode("utf-8", "replace")), keep="\n").strip()
