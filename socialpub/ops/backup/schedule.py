"""The scheduled backup: a dated folder, and the command that runs afterwards.

A folder gets its name when it is complete and on the disk. One backup is made at a time. The next run removes the
leftovers of a killed run. Only backups of this `secret.key` are removed, so two installations may share a folder.

Media are hard links if the disk supports them, so a backup takes space only for new files. A stored file never changes
(`media/files.py`), so one file on the disk serves the appliance and every backup. On another disk, the link leads to
the previous backup. The SHA-256 of a linked file is taken from the previous backup. `verify-backup` reads all files.

The command takes the backup to another place. It runs without a shell and ends after `AFTER_SECONDS`. If the command
fails, the backup counts as failed, because the owner has no backup in that place.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from socialpub.core import commands, durable_files, logging, progress
from socialpub.core.errors import OperatorError
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.loader import BACKUP_VARIABLE, environment_without_settings
from socialpub.core.settings.schema import FOLDER_PLACEHOLDER
from socialpub.db.backup_format import DATABASE, FIRST, SEAL, SUMS, BackupSummary, FolderWriter, compute_digest
from socialpub.ops.backup import create, verify
from socialpub.ops.backup.last_backup import ScheduledBackup
from socialpub.runtime import Runtime

UNFINISHED = ".unfinished-"
"""The prefix of an incomplete backup's folder. The check value of the key and the name follow."""
AFTER_SECONDS = 6 * 3600.0

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_NO_LINK = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_MAX_OUTPUT = 600
"""The characters of the command's last output in a message."""

log = logging.get_logger(__name__)


class BackupInProgress(OperatorError):
    """Another process is making a scheduled backup."""


@dataclass(frozen=True, slots=True)
class MadeBackup:
    path: Path
    summary: BackupSummary
    scheduled: ScheduledBackup
    removed: int
    """The number of older backups that were removed."""


def make_backup(rt: Runtime, *, with_secret: bool = False) -> MadeBackup:
    """Make a backup, remove old backups, run the command and record the result. Raises OperatorError."""
    folder = rt.settings.backup_dir
    with _exclusive_backup(rt, folder), create.failures_recorded(rt, folder):
        _make_folder(rt, folder)
        _clear_unfinished(rt, folder)
        path, summary, scheduled = _write(rt, folder, with_secret)
        removed = _remove_old(rt, folder, path)
        if rt.settings.backup.after:
            run_post_backup_command(rt.settings.backup.after, path)
        create.record_made(rt, summary, scheduled)
    return MadeBackup(path, summary, scheduled, removed)


def remove_unfinished(rt: Runtime) -> None:
    """Remove the leftovers of a killed run, unless a backup is being made."""
    folder = rt.settings.backup_dir
    if folder.is_dir():
        with suppress(BackupInProgress), _exclusive_backup(rt, folder):
            _clear_unfinished(rt, folder)


def _clear_unfinished(rt: Runtime, folder: Path) -> None:
    for path in folder.glob(f"{_unfinished(rt)}*"):
        shutil.rmtree(path, ignore_errors=True)


def _unfinished(rt: Runtime) -> str:
    return f"{UNFINISHED}{rt.secrets.check_value[:8]}-"


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
    return create.one_at_a_time(rt, "backup.lock", busy)


def _write(rt: Runtime, folder: Path, with_secret: bool) -> tuple[Path, BackupSummary, ScheduledBackup]:
    now = named_at = rt.now()  # before the instant of the database: read-backs after a restore begin here
    while (target := folder / named_at.strftime(_NAME)).exists():  # another backup in the same second
        named_at += timedelta(seconds=1)
    unfinished = folder / f"{_unfinished(rt)}{target.name}"
    unfinished.mkdir(mode=0o700)
    try:
        with closing(HardlinkWriter(rt, unfinished, _find_previous(rt, folder))) as writer:
            database = unfinished / DATABASE
            create.check_space(rt, folder, create.rows_bytes(rt))
            create.copy_database(rt, database)
            summary = create.write_members(rt, writer, database, now, with_secret=with_secret)
            writer.finish(rt.secrets)
            rows = database.stat().st_size
        unfinished.rename(target)
        durable_files.flush_folder(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    scheduled = ScheduledBackup(summary.copied_at, str(target), writer.size_bytes + rows, writer.new_bytes + rows)
    return target, summary, scheduled


# --- earlier backups -------------------------------------------------------------------------------------------------


def _list_backups(rt: Runtime, folder: Path) -> list[Path]:
    """Return the backups of this `secret.key`, oldest first."""
    backups = []
    for path in folder.glob("[0-9]*"):
        with suppress(OSError, ValueError, TypeError, KeyError):
            datetime.strptime(path.name, _NAME)
            info = json.loads((path / FIRST).read_bytes())
            if info["secret_key"] == rt.secrets.check_value and not path.is_symlink():
                backups.append(path)
    return sorted(backups)


def _remove_old(rt: Runtime, folder: Path, made: Path) -> int:
    """Remove all backups except the newest `[backup] keep`. Return their number."""
    older = [path for path in _list_backups(rt, folder) if path != made]
    removed = 0
    for path in older[: max(len(older) - (rt.settings.backup.keep - 1), 0)]:
        try:
            # After a power failure, no incomplete folder may have the name of a backup.
            shutil.rmtree(path.rename(folder / f"{_unfinished(rt)}{path.name}"))
            removed += 1
        except OSError as error:
            log.warning("an old backup could not be removed", backup=str(path), reason=error.strerror)
    return removed


def _find_previous(rt: Runtime, folder: Path) -> Path | None:
    """Return the newest backup, if its signature is valid, so its checksums can be trusted."""
    for path in reversed(_list_backups(rt, folder)):
        with suppress(OSError):
            if rt.secrets.has_signed_backup((path / SEAL).read_text().strip(), compute_digest(path / SUMS)):
                return path
    return None


class HardlinkWriter(FolderWriter):
    """Writes a backup whose media are hard links if the disk supports them."""

    def __init__(self, rt: Runtime, folder: Path, previous: Path | None) -> None:
        super().__init__(folder)
        self._rt = rt
        self._previous = previous
        self._previous_sums = dict(verify.list_sums(previous)) if previous else {}
        self.size_bytes = 0
        self.new_bytes = 0

    def add_media(self, name: str, path: Path) -> None:
        """Add a media file. Raises FileNotFoundError."""
        stored, target = path.stat(), self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.size_bytes += stored.st_size
        digest = self._previous_sums.get(name)
        previous = self._previous / name if self._previous and digest else None
        before = previous.stat() if previous and previous.exists() else None
        if _link(path, target):
            is_same = before is not None and os.path.samestat(before, stored)
            self.list(name, digest if digest and is_same else compute_digest(target))
        elif previous and digest and before and before.st_size == stored.st_size and _link(previous, target):
            self.list(name, digest)
        else:
            create.check_space(self._rt, self.folder, stored.st_size)
            self.add_file(name, path)
            self.new_bytes += stored.st_size
            return
        progress.reach(self.size_bytes)


def _link(source: Path, target: Path) -> bool:
    """Return False if the disk cannot link the files."""
    try:
        target.hardlink_to(source)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    return True


# --- the command afterwards ------------------------------------------------------------------------------------------


def run_post_backup_command(after: Sequence[str], backup: Path) -> None:
    """Run `[backup] after` for a backup. Raises OperatorError if the command fails."""
    command = [part.replace(FOLDER_PLACEHOLDER, str(backup)) for part in after]
    environment = environment_without_settings() | {BACKUP_VARIABLE: str(backup)}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603  # the owner's own command
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, start_new_session=True
            )  # fmt: skip
        except OSError as error:
            raise _command_failed(backup, f"{command[0]!r} cannot be run: {error.strerror}", output) from None
        try:
            code = process.wait(AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            raise _command_failed(backup, f"it took longer than {AFTER_SECONDS / 3600:.0f} hours", output) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)  # with everything that it started
                process.wait()
        if code != 0:
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
            raise _command_failed(backup, how, output)


def _command_failed(backup: Path, how: str, output: IO[bytes]) -> OperatorError:
    # More is read than shown, because half of a secret would not be recognized.
    output.seek(max(0, output.seek(0, os.SEEK_END) - 4 * _MAX_OUTPUT))
    text = visible(redact(output.read().decode("utf-8", "replace")), keep="\n").strip()[-_MAX_OUTPUT:]
    printed = f" Its output: {text}" if text else ""
    return OperatorError(
        f"The backup is in {backup}, but the command after the backup (backup.after) failed: {how}.{printed}",
        f"Fix the cause, then run `{commands.line('backup')}` again.",
    )
