"""The scheduled backup: a dated folder, and the command that runs afterwards.

A folder gets its name when it is complete and on the disk. One backup is made at a time. The next run removes the
leftovers of a killed run. A folder is removed only if its first file refers to this `secret.key` or an earlier one, and
never if the backup was just made.

Media are hard links if the disk supports them, so a backup takes space only for new files. A stored file never changes
(`media/files.py`), so one file on the disk serves the appliance and every backup. On another disk, the link leads to
the previous backup. While a file is unchanged, its SHA-256 is taken from the previous backup.

The command takes the backup to another place. It runs without a shell and ends after `backup.after_timeout`. If the
command fails, the backup counts as failed, because the owner has no backup in that place.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from socialpub.core import commands, durable_files, logging, progress, units
from socialpub.core.clock import parse, stamp
from socialpub.core.commands import CONFIG_VARIABLE
from socialpub.core.errors import OperatorError
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.loader import BACKUP_VARIABLE, PREFIX
from socialpub.core.settings.schema import FOLDER_PLACEHOLDER, BackupSection
from socialpub.db import secret_key
from socialpub.ops.backup import create, format, verify
from socialpub.ops.backup.format import DATABASE, BackupSummary, FolderWriter, NameTable
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

UNFINISHED = ".unfinished-"
"""The prefix of an incomplete backup's folder."""
KEEP_LAST = 3
"""The number of newest backups that always stay. A backup after a mistake must not remove that of the same morning."""
READ_ALL_AFTER = timedelta(days=30)
"""The time for which checksums of media are taken from the previous backup. Then every file is read again."""
END_SECONDS = 10.0

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_MAX_OUTPUT = 600
"""The number of characters of the command's output in a message. Half are from the beginning, where restic and rclone
print causes."""

log = logging.get_logger("socialpub.backup")


class BackupInProgress(OperatorError):
    """Another process is making a scheduled backup."""


@dataclass(frozen=True, slots=True)
class MadeBackup:
    path: Path
    summary: BackupSummary
    scheduled: ScheduledBackup
    changed: int
    """The number of stored media files that differ from earlier backups."""
    removed: int = 0
    """The number of older backups that were removed."""


def make_backup(rt: Runtime, *, with_secret: bool = False) -> MadeBackup:
    """Make a backup, remove old backups, run the command and record the result. Raises OperatorError."""
    folder = rt.settings.backup_dir
    with _exclusive_backup(rt, folder), create.failure_recorded(rt):
        with create.failures_explained(rt, folder):
            _make_folder(rt, folder)
            keys = secret_key.own_keys(rt.reader, rt.secrets)
            _clear_unfinished(folder, keys)
            made = _write(rt, folder, with_secret)
        removed = _prune(folder, keys, rt.settings.backup, made.path)
        if rt.settings.backup.after:
            run_post_backup_command(rt.settings.backup, made.path)
        create.record_made(rt, made.summary, made.scheduled)
    return replace(made, removed=removed)


def remove_unfinished(rt: Runtime) -> None:
    """Remove the leftovers of a killed run, unless a backup is being made."""
    folder = rt.settings.backup_dir
    if folder.is_dir():
        with suppress(BackupInProgress), _exclusive_backup(rt, folder):
            _clear_unfinished(folder, secret_key.own_keys(rt.reader, rt.secrets))


def _make_folder(rt: Runtime, folder: Path) -> None:
    """Create the folder if it is in `data_dir`. Elsewhere, the folder must exist, since its disk may not be mounted."""
    if rt.settings.data_dir in folder.parents:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    elif not folder.is_dir():
        make = ("install", "-d", "-m", "700", "-o", str(os.geteuid()), str(folder))
        raise OperatorError(
            f"The folder {folder} (backup.folder) does not exist.",
            f"Mount its disk, or create the folder once: `{commands.system_line(*make, root=True)}`.",
        )


def _exclusive_backup(rt: Runtime, folder: Path) -> AbstractContextManager[None]:
    busy = BackupInProgress(f"A backup into {folder} is already being made.", "Wait until it is complete.")
    return create.one_at_a_time(rt, "scheduled-copy.lock", busy)


def _write(rt: Runtime, folder: Path, with_secret: bool) -> MadeBackup:
    now = rt.now()  # before the instant of the database: read-backs after a restore begin here
    target = _free_place(folder, now)
    previous = _find_previous(rt, folder)
    # Read all media every 30 days, and after the clock was set back.
    read_at = previous.media_read_at if previous else None
    read_all = read_at is None or not timedelta(0) <= now - parse(read_at) < READ_ALL_AFTER
    unfinished = folder / (UNFINISHED + target.name)
    unfinished.mkdir(mode=0o700)
    try:
        with closing(HardlinkWriter(rt, unfinished, previous, read_all=read_all)) as writer:
            database = unfinished / DATABASE
            with create.reserve_space(rt, folder, create.rows_bytes(rt)):
                create.copy_database(rt, database)
            media_read_at = stamp(now) if read_all else str(read_at)
            summary = create.write_members(
                rt, writer, database, now, with_secret=with_secret, media_read_at=media_read_at
            )
            writer.finish(rt.secrets.sign_backup)
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


# --- dated folders ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatedBackup:
    """A backup in the folder, perhaps incomplete."""

    path: Path
    copied_at: datetime
    media_read_at: str | None = None
    """The instant at which all media were last read, without checksums from the previous backup."""


def _free_place(folder: Path, copied_at: datetime) -> Path:
    """Return a free name for a backup of this instant, even after another in the same second."""
    while (place := folder / copied_at.strftime(_NAME)).exists():
        copied_at += timedelta(seconds=1)
    return place


def _list_backups(folder: Path, keys: Collection[str]) -> list[DatedBackup]:
    """Return the backups of the `secret.key` with one of these check values, oldest first."""
    found = (_read_backup(path, keys) for path in folder.glob("[0-9]*") if _is_name(path.name))
    return sorted((one for one in found if one is not None), key=lambda one: (one.copied_at, one.path))


def choose_kept(backups: Sequence[DatedBackup], settings: BackupSection) -> list[DatedBackup]:
    """Return the last three backups, and the newest of each of the last days, weeks and months with a backup."""
    chosen = {backup.path for backup in backups[-KEEP_LAST:]}
    days, weeks, months = settings.keep_days, settings.keep_weeks, settings.keep_months
    for limit, period in ((days, "%Y-%m-%d"), (weeks, "%G-%V"), (months, "%Y-%m")):
        newest = {one.copied_at.strftime(period): one.path for one in backups}  # a later one replaces an earlier one
        chosen.update(newest[one] for one in sorted(newest, reverse=True)[:limit])
    return [backup for backup in backups if backup.path in chosen]


def _prune(folder: Path, keys: Collection[str], settings: BackupSection, just_made: Path) -> int:
    backups = _list_backups(folder, keys)
    stay = {backup.path for backup in choose_kept(backups, settings)} | {just_made}
    return _remove_backups(backup.path for backup in backups if backup.path not in stay)


def _clear_unfinished(folder: Path, keys: Collection[str]) -> int:
    """Remove the leftovers of killed runs. Return their number. The caller holds the lock of scheduled backups."""
    left = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    return _remove_backups(path for path in left if not any(path.iterdir()) or _read_backup(path, keys) is not None)


def _remove_backups(paths: Iterable[Path]) -> int:
    removed = 0
    for path in paths:
        gone = path
        try:
            if not path.name.startswith(UNFINISHED):
                # After a power failure, no incomplete folder may have the name of a backup.
                gone = path.rename(path.with_name(UNFINISHED + path.name))
            # The file that refers to the key is removed last.
            for inside in sorted(gone.iterdir(), key=lambda one: one.name == format.FIRST):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
            gone.rmdir()
            removed += 1
        except OSError as error:
            log.warning("an old backup could not be removed", backup=str(gone), reason=error.strerror)
    return removed


def _read_backup(path: Path, keys: Collection[str]) -> DatedBackup | None:
    """Return the backup in a folder, or None if it does not belong to any of these keys."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if path.is_symlink():
            return None
        with format.open_regular(path / format.FIRST, follow=False) as file:
            info = json.loads(file.read(verify.MAX_INFO_BYTES))
        if info["secret_key"] in keys:
            read_at = info.get("media_read_at")
            return DatedBackup(path, parse(info["copied_at"]), read_at if isinstance(read_at, str) else None)
    return None


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, _NAME)
    except ValueError:
        return False
    return True


def _find_previous(rt: Runtime, folder: Path) -> DatedBackup | None:
    """Return the newest backup with a valid signature, whose checksums can be trusted."""
    ours = _list_backups(folder, {rt.secrets.check_value})
    return next((backup for backup in reversed(ours) if _is_trusted(rt, backup)), None)


def _is_trusted(rt: Runtime, backup: DatedBackup) -> bool:
    try:
        digest, seal = verify.read_seal(backup.path)
    except (OperatorError, OSError):
        return False
    return seal is not None and rt.secrets.has_signed_backup(seal, digest)


# --- hard links ------------------------------------------------------------------------------------------------------


class HardlinkWriter(FolderWriter):
    """Writes a backup whose media are hard links if the disk supports them."""

    def __init__(self, rt: Runtime, folder: Path, previous: DatedBackup | None, *, read_all: bool) -> None:
        """Begin a backup. The signature of `previous` is valid. `read_all`: do not use its checksums."""
        super().__init__(folder)
        self._rt = rt
        self._previous = previous
        self._read_all = read_all
        self._known = NameTable()
        for name, digest in verify.list_sums(previous.path) if previous else ():
            self._known.add(name, digest)
        self.size_bytes = 0
        self.new_bytes = 0
        self.changed = 0
        """The number of files that differ from their first backup."""

    def add_media(self, name: str, source: Path) -> None:
        """Add a media file. Raises FileNotFoundError."""
        found = source.stat()
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = earlier = None
        if self._previous is not None and found.st_mtime < self._previous.copied_at.timestamp():
            known = self._known.find(name)
            earlier = self._previous.path / name if known else None
        if _link(source, target):
            self.list(name, self._digest_linked(name, target, known if _is_same(earlier, found) else None))
        elif known is not None and earlier is not None and self._link_earlier(earlier, known, target, found):
            self.list(name, known)
            progress.advance(0 if self._read_all else found.st_size)
        else:
            self._copy(name, source, found.st_size)
        self.size_bytes += found.st_size

    def _digest_linked(self, name: str, target: Path, known: str | None) -> str:
        """Return the SHA-256 of a linked file. `known` is the SHA-256 of the same file in the previous backup."""
        if known is not None and not self._read_all:
            progress.advance(target.stat().st_size)
            return known
        digest = format.compute_digest(target)
        if known is not None and digest != known:
            self.changed += 1
            key = name.removeprefix(format.MEDIA)
            log.warning("a stored file has changed: its disk may be failing", key=key)
        return digest

    def _link_earlier(self, earlier: Path, known: str, target: Path, found: os.stat_result) -> bool:
        """Link to the file of the previous backup, which is on another disk than the stored file."""
        try:
            if earlier.stat().st_size != found.st_size:
                return False
        except OSError:
            return False
        if self._read_all and format.compute_digest(earlier) != known:
            key = str(target.relative_to(self.folder)).removeprefix(format.MEDIA)
            log.warning("a file of the previous backup is damaged and is copied again", key=key)
            return False
        return _link(earlier, target)

    def _copy(self, name: str, source: Path, size: int) -> None:
        with create.reserve_space(self._rt, self.folder, size) as room:
            if room is not None:
                room.spend(size)
            self.add_file(name, source)
        self.new_bytes += size

    def close(self) -> None:
        super().close()
        self._known.close()


def _link(source: Path, target: Path) -> bool:
    """Return False if the disk cannot link the files."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True


def _is_same(earlier: Path | None, found: os.stat_result) -> bool:
    try:
        return earlier is not None and os.path.samestat(earlier.stat(), found)
    except OSError:
        return False


# --- the command afterwards ------------------------------------------------------------------------------------------


def run_post_backup_command(settings: BackupSection, backup: Path) -> None:
    """Run `[backup] after` for a backup. Raises OperatorError if the command fails."""
    command = [part.replace(FOLDER_PLACEHOLDER, str(backup)) for part in settings.after]
    # Our settings may contain secrets. The command may need the path of the configuration.
    inherited = {
        name: os.environ[name] for name in os.environ if name == CONFIG_VARIABLE or not name.startswith(PREFIX)
    }
    with tempfile.TemporaryFile() as output:
        try:
            code = _run_command(
                command, inherited | {BACKUP_VARIABLE: str(backup)}, output, settings.after_timeout.total_seconds()
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
        start_new_session=True,  # so that it ends with all its child processes
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
    printed = f" Its output: {text}" if text else ""
    return OperatorError(
        f"The backup is in {backup}, but the command after the backup (backup.after) failed: {how}.{printed}",
        f"Fix the cause, then run `{commands.line('backup')}` again.",
    )


def _readable(output: IO[bytes], start: int) -> str:
    output.seek(start)
    return visible(redact(output.read(4 * _MAX_OUTPUT + 4).decode("utf-8", "replace")), keep="\n").strip()
