"""The faults that prevent the appliance from using its files, each with a remedy.

The error codes of SQLite and of the system decide, and never the text of an error.
"""

import errno
import os
import sqlite3
from pathlib import Path

from socialpub.core import commands
from socialpub.core.errors import OperatorError, file_system_cannot
from socialpub.core.machine import user_name
from socialpub.core.settings.loader import Settings
from socialpub.db import sqlite_errors

DISK_ERRORS = "sudo dmesg --level=err,warn"


class WrongUser(OperatorError):
    """Another user must run this."""


def refuse_root(settings: Settings) -> None:
    """Raise WrongUser if this is root, and the data folder or its parent belongs to another user."""
    folder = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    uid = folder.stat().st_uid
    if os.geteuid() != 0 or uid == 0:
        return
    user = user_name(uid)
    raise WrongUser(
        f"{folder} is owned by {user}. Files created there by root would not be writable by {user}.",
        f"Run the command as {user}: {commands.this_line_as(user, settings.config_file)}",
    )


def find_fault(error: BaseException, settings: Settings) -> OperatorError | None:
    """Return the fault behind an error, or None if the error is not about files."""
    if (how := sqlite_errors.find_damage(error)) is not None:
        return damaged_database(how, settings)
    cause: BaseException | None = error
    fault = None
    while cause is not None and fault is None:  # peewee and the writer raise their own errors
        if isinstance(cause, sqlite3.Error):
            fault = _of_sqlite(getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR), settings)
        elif isinstance(cause, OSError):
            fault = _of_system(cause, settings)
        cause = cause.__cause__ or cause.__context__
    return fault


_CANNOT = {
    "share memory between processes": ("IOERR_SHMOPEN", "IOERR_SHMMAP"),
    "lock parts of files (POSIX locks)": (
        "IOERR_SHMLOCK", "IOERR_LOCK", "IOERR_RDLOCK", "IOERR_UNLOCK", "IOERR_CHECKRESERVEDLOCK",
    ),
    "store large files": ("NOLFS",),
}  # fmt: skip
"""What a file system lacks, with the names of SQLite's extended codes."""


def _of_sqlite(code: int, settings: Settings) -> OperatorError | None:
    for what, names in _CANNOT.items():
        if code in [getattr(sqlite3, f"SQLITE_{name}") for name in names]:
            return file_system_cannot(what)
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:  # there is no space for the shared memory of the journal
        return _full(settings)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(settings)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            users = commands.system_line("fuser", "-v", str(settings.database_file))
            message = f"Another program keeps {settings.database_file} locked."
            return OperatorError(message, f"Find the program: `{users}`. Stop that program.")
        case sqlite3.SQLITE_IOERR:
            return _disk_error(settings.database_file)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            cannot = f"{settings.database_file} cannot be opened or written."
            return find_owner_fault(settings) or _unknown(cannot, settings)
    return None


def _of_system(error: OSError, settings: Settings) -> OperatorError | None:
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else settings.data_dir
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return _full(settings)
        case errno.EIO | errno.EROFS:
            return _disk_error(path)
        case errno.EMFILE | errno.ENFILE:
            # Enough for every process, without the connections of callers.
            remedy = "Raise the limit to 4096: `ulimit -n 4096` in a shell, LimitNOFILE=4096 in a unit."
            return OperatorError("Too many files are open.", remedy)
        case errno.EACCES | errno.EPERM if path.absolute().is_relative_to(settings.data_dir.absolute()):
            return find_owner_fault(settings)
    return None


# --- the faults ------------------------------------------------------------------------------------------------------


def find_owner_fault(settings: Settings) -> OperatorError | None:
    """Return which files this user cannot write, with the commands that fix all of them."""
    data_dir, own_id = settings.data_dir, os.geteuid()
    # A service or a container owns its files. Elsewhere, the owner of data_dir must run socialpub.
    owner_id = own_id if commands.manager() and own_id != 0 else data_dir.stat().st_uid
    owner = user_name(owner_id)
    if own_id not in (0, owner_id):
        as_owner = commands.this_line_as(owner, settings.config_file)
        return OperatorError(f"{data_dir} is owned by {owner}, and only {owner} may use it.", f"Run `{as_owner}`.")
    paths = [data_dir]
    if os.access(data_dir, os.X_OK, effective_ids=True):
        inside = (settings.database_file, settings.queue_file, settings.run_dir, settings.media_dir)
        paths += [path for path in inside if path.exists()]
    closed = [str(path) for path in paths if not os.access(path, os.W_OK, effective_ids=True)]
    if not closed:
        return None
    own = commands.system_line("chown", "-R", owner, str(data_dir), root=True)
    allow = commands.system_line("chmod", "-R", "u+rwX", str(data_dir), root=True)
    # A command that ran as root created such files. The service cannot write them.
    return OperatorError(f"{', '.join(closed)} cannot be written by {owner}.", f"Run `{own}` and `{allow}`.")


def damaged_database(how: str, settings: Settings) -> OperatorError:
    """Return the fault of a damaged database: the only fault whose remedy moves data_dir."""
    data_dir = settings.data_dir
    aside = data_dir.with_name(f"{data_dir.name}.damaged")
    steps = (
        commands.system_line("mv", str(data_dir), str(aside)),
        make_folder(data_dir),
        commands.system_line("cp", "-p", str(aside / "secret.key"), str(data_dir)),
        commands.line("restore", _newest_backup(settings, aside)),
    )
    typed = ", ".join(f"`{step}`" for step in steps)
    return OperatorError(
        f"{settings.database_file} is damaged: {how}.",
        f"{commands.stop()}. Move data_dir, and restore a backup with its secret.key: {typed}. {commands.start()}.",
    )


def _newest_backup(settings: Settings, aside: Path) -> str:
    """Return the scheduled backup to restore, at its path after the move."""
    backup = max(settings.backup_dir.glob("[0-9]*"), default=Path("FILE"))
    return str(aside / backup.relative_to(settings.data_dir) if settings.data_dir in backup.parents else backup)


def make_folder(folder: Path) -> str:
    """Return the command that creates a folder that only the appliance's user can enter."""
    owner = (f"--owner={commands.USER}", f"--group={commands.USER}") if commands.is_service() else ()
    return commands.system_line("install", "--directory", "--mode=700", *owner, str(folder))


def _full(settings: Settings) -> OperatorError:
    free = commands.system_line("df", "-h", str(settings.data_dir))
    return OperatorError(
        f"The disk of {settings.data_dir} is full: the database cannot be written.",
        f"Free some space, and try again. `{free}` shows how much is free.",
    )


def _disk_error(path: Path) -> OperatorError:
    return OperatorError(
        f"The disk failed to read or write {path}.",
        f"To see the errors of the disk, run `{DISK_ERRORS}`. After an error, the kernel makes a disk read-only. "
        f"Replace a failing disk, and restore a backup: `{commands.line('restore', 'FILE')}`",
    )


def explain(error: BaseException, message: str, settings: Settings) -> OperatorError:
    """Return the fault behind an error, or `message` with the ways to find an unknown cause."""
    return find_fault(error, settings) or _unknown(message, settings)


def _unknown(message: str, settings: Settings) -> OperatorError:
    listed = commands.system_line("ls", "-lan", str(settings.data_dir))
    return OperatorError(
        message,
        f"Check the files: `{listed}`. `{DISK_ERRORS}` shows errors of the disk. The folder may also be mounted "
        "read-only, or too many files may be open.",
    )
