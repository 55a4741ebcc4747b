"""The faults that prevent the appliance from using its files, each with a remedy.

The error codes of SQLite and of the system decide, and never the text of an error.
"""

import errno
import grp
import os
import pwd
import sqlite3
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from socialpub.core import commands
from socialpub.core.errors import OperatorError, file_system_cannot
from socialpub.core.machine import user_name
from socialpub.core.settings.loader import Settings
from socialpub.db import errors

DISK_ERRORS = "sudo dmesg --level=err,warn"


class FileFault(NamedTuple):
    message: str
    remedy: str


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


def find_fault(error: BaseException, settings: Settings) -> FileFault | None:
    """Return the fault behind an error, or None if the error is not about files."""
    if (how := errors.find_damage(error)) is not None:
        return damaged_database(how, settings)
    cause: BaseException | None = error
    while cause is not None:  # peewee and the writer raise their own errors
        fault = None
        if isinstance(cause, sqlite3.Error):
            fault = _of_sqlite(getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR), settings)
        elif isinstance(cause, OSError):
            fault = _of_system(cause, settings)
        if fault is not None:
            return fault
        cause = cause.__cause__ or cause.__context__
    return None


_MEMORY, _LOCKS = "share memory between processes", "lock parts of files (POSIX locks)"
_CANNOT = {
    sqlite3.SQLITE_IOERR_SHMOPEN: _MEMORY,
    sqlite3.SQLITE_IOERR_SHMSIZE: _MEMORY,
    sqlite3.SQLITE_IOERR_SHMMAP: _MEMORY,
    sqlite3.SQLITE_IOERR_SHMLOCK: _LOCKS,
    sqlite3.SQLITE_IOERR_LOCK: _LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: _LOCKS,
    sqlite3.SQLITE_IOERR_UNLOCK: _LOCKS,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: _LOCKS,
    sqlite3.SQLITE_NOLFS: "store large files",
}
"""What a file system lacks, by SQLite's extended code."""


def _of_sqlite(code: int, settings: Settings) -> FileFault | None:
    if code in _CANNOT:
        if not os.statvfs(settings.data_dir).f_bavail:
            return _full(settings)
        error = file_system_cannot(_CANNOT[code])
        return FileFault(error.message, error.hint or "")
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(settings)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            users = commands.system_line("fuser", "-v", str(settings.database_file))
            message = f"Another program keeps {settings.database_file} locked."
            return FileFault(message, f"Find the program: `{users}`. Stop that program.")
        case sqlite3.SQLITE_IOERR:
            return _disk_error(settings.database_file)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            message = f"{settings.database_file} cannot be opened or written."
            return find_owner_fault(settings) or unknown_fault(message, settings)
    return None


def _of_system(error: OSError, settings: Settings) -> FileFault | None:
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else settings.data_dir
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return _full(settings)
        case errno.EIO | errno.EROFS:
            return _disk_error(path)
        case errno.EMFILE | errno.ENFILE:
            # Enough for every process, without the connections of callers.
            remedy = "Raise the limit to 4096: `ulimit -n 4096` in a shell, LimitNOFILE=4096 in a unit."
            return FileFault("Too many files are open.", remedy)
        case errno.EACCES | errno.EPERM if path.absolute().is_relative_to(settings.data_dir.absolute()):
            return find_owner_fault(settings)
    return None


# --- the faults ------------------------------------------------------------------------------------------------------


def find_owner_fault(settings: Settings) -> FileFault | None:
    """Return which files of data_dir their user cannot write, with the command that fixes all of them."""
    data_dir = settings.data_dir
    uid, gid = _find_owner(data_dir)
    user, group = user_name(uid), str(gid)
    with suppress(KeyError):
        group = grp.getgrgid(gid).gr_name
    if os.geteuid() not in (0, uid):
        as_owner = commands.this_line_as(user, settings.config_file)
        return FileFault(f"{data_dir} is owned by {user}, and only {user} may use it.", f"Run `{as_owner}`.")
    inside = (Path(folder, name) for folder, folders, files in os.walk(data_dir) for name in (*folders, *files))
    paths = [path for path in (data_dir, *inside) if not _is_writable_by(uid, path, settings)]
    if not paths:
        return None
    others = f" and {len(paths) - 1} other files in {data_dir}" if paths[1:] else ""
    own = commands.system_line("chown", "-R", f"{user}:{group}", str(data_dir), root=True)
    allow = commands.system_line("chmod", "-R", "u+rwX", str(data_dir), root=True)
    # A command that ran as root created such files. The service cannot write them.
    return FileFault(f"{paths[0]}{others} cannot be written by {user}.", f"Run `{own}` and `{allow}`.")


def _find_owner(data_dir: Path) -> tuple[int, int]:
    """Return the user and group that must own all files: those of the service or container, else of data_dir."""
    if commands.is_service():
        with suppress(KeyError):
            entry = pwd.getpwnam(commands.USER)
            return entry.pw_uid, entry.pw_gid
    if commands.manager() and os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    owner = data_dir.stat()
    return owner.st_uid, owner.st_gid


def _is_writable_by(uid: int, path: Path, settings: Settings) -> bool:
    try:
        status = path.lstat()
    except FileNotFoundError:  # locks and journals come and go
        return True
    needed = stat.S_IRWXU if stat.S_ISDIR(status.st_mode) else 0
    if path in (settings.database_file, settings.queue_file):
        needed = stat.S_IRUSR | stat.S_IWUSR
    return status.st_uid == uid and status.st_mode & needed == needed


def damaged_database(how: str, settings: Settings) -> FileFault:
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
    return FileFault(
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


def _full(settings: Settings) -> FileFault:
    free = commands.system_line("df", "-h", str(settings.data_dir))
    return FileFault(
        f"The disk of {settings.data_dir} is full: the database cannot be written.",
        f"Free some space, and try again. `{free}` shows how much is free.",
    )


def _disk_error(path: Path) -> FileFault:
    return FileFault(
        f"The disk failed to read or write {path}.",
        f"To see the errors of the disk, run `{DISK_ERRORS}`. After an error, the kernel makes a disk read-only. "
        f"Replace a failing disk, and restore a backup: `{commands.line('restore', 'FILE')}`",
    )


def unknown_fault(message: str, settings: Settings) -> FileFault:
    """Return the fault for an unknown cause."""
    listed = commands.system_line("ls", "-lan", str(settings.data_dir))
    return FileFault(
        message,
        f"Check the files: `{listed}`. `{DISK_ERRORS}` shows errors of the disk. The folder may also be mounted "
        "read-only, or too many files may be open.",
    )
