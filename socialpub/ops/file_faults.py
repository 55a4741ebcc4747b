"""The faults that prevent the appliance from using its files, each with a remedy.

The error codes of SQLite and of the system decide, and never the text of an error.
"""

import errno
import grp
import os
import pwd
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from socialpub.core import commands
from socialpub.core.errors import OperatorError, file_system_cannot
from socialpub.core.machine import user_name
from socialpub.core.settings.loader import Settings
from socialpub.db import errors

DISK_ERRORS = "sudo dmesg --level=err,warn"
FEW_FILES = 64
"""The lowest sufficient limit. A process with a lower limit reaches the limit when it opens the database."""
SPARE_FILES = 8


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


_CANNOT = {
    sqlite3.SQLITE_IOERR_SHMOPEN: "share memory between processes",
    sqlite3.SQLITE_IOERR_SHMSIZE: "share memory between processes",
    sqlite3.SQLITE_IOERR_SHMMAP: "share memory between processes",
    sqlite3.SQLITE_IOERR_SHMLOCK: "lock parts of files (POSIX locks)",
    sqlite3.SQLITE_IOERR_LOCK: "lock parts of files (POSIX locks)",
    sqlite3.SQLITE_IOERR_RDLOCK: "lock parts of files (POSIX locks)",
    sqlite3.SQLITE_IOERR_UNLOCK: "lock parts of files (POSIX locks)",
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK: "lock parts of files (POSIX locks)",
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
            return _cannot_use(settings) or _disk_error(settings.database_file)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            message = f"{settings.database_file} cannot be opened or written."
            return _cannot_use(settings) or unknown_fault(message, settings)
    return None


def _of_system(error: OSError, settings: Settings) -> FileFault | None:
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else settings.data_dir
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return _full(settings)
        case errno.EROFS:
            return find_read_only_mount(path) or _disk_error(path)
        case errno.EMFILE | errno.ENFILE:
            return _too_many_files()
        case errno.EIO:
            return _disk_error(path)
        case errno.EACCES | errno.EPERM if path.absolute().is_relative_to(settings.data_dir.absolute()):
            return _cannot_use(settings)
    return None


def _cannot_use(settings: Settings) -> FileFault | None:
    """Return the reason why this process cannot write in data_dir."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        if soft < FEW_FILES or len(os.listdir("/proc/self/fd")) > soft - SPARE_FILES:  # noqa: PTH208
            return _too_many_files()
        return find_read_only_mount(settings.data_dir) or find_owner_fault(settings)
    except OSError as error:
        return _too_many_files() if error.errno in (errno.EMFILE, errno.ENFILE) else None


# --- the faults ------------------------------------------------------------------------------------------------------


def find_owner_fault(settings: Settings) -> FileFault | None:
    """Return which files of data_dir this user cannot write, with the command that fixes all of them."""
    data_dir = settings.data_dir
    uid, gid = _find_owner(settings)
    user = user_name(uid)
    if os.geteuid() not in (0, uid) and not _is_usable(data_dir):
        as_owner = commands.this_line_as(user, settings.config_file)
        return FileFault(f"{data_dir} is owned by {user}, and only {user} may use it.", f"Run `{as_owner}`.")
    paths = [data_dir, *_list_files(data_dir)]
    strangers = [path for path in paths if path.lstat().st_uid != uid]
    if strangers:
        # A command that ran as root created such files. The service cannot write them.
        others = " and ".join(sorted({user_name(path.lstat().st_uid) for path in strangers}))
        verb = "is" if len(strangers) == 1 else "are"
        group = str(gid)
        with suppress(KeyError):
            group = grp.getgrgid(gid).gr_name
        return FileFault(
            f"{_name(strangers, data_dir)} {verb} owned by {others}, not by {user_name(uid)}.",
            f"Run `{commands.system_line('chown', '-R', f'{user}:{group}', str(data_dir), root=True)}`.",
        )
    needed = (data_dir, settings.database_file, settings.queue_file, settings.media_dir, settings.run_dir)
    locked = [path for path in needed if os.path.exists(path) and not _is_usable(path)]  # noqa: PTH110  closed folder
    if not locked:
        return None
    remedy = f"Run `{commands.system_line('chmod', '-R', 'u+rwX', str(data_dir))}`."
    return FileFault(f"{_name(locked, data_dir)} cannot be written.", remedy)


def _find_owner(settings: Settings) -> tuple[int, int]:
    """Return the user and group that must own all files.

    This is the user of the service or container. Otherwise, it is the owner of data_dir, or of the database if root
    owns data_dir.
    """
    with suppress(KeyError):
        if commands.is_service():
            entry = pwd.getpwnam(commands.USER)
            return entry.pw_uid, entry.pw_gid
    if commands.manager() in ("podman", "docker") and os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    owner = settings.data_dir.stat()
    if owner.st_uid == 0:
        with suppress(OSError):
            owner = settings.database_file.stat()
    return owner.st_uid, owner.st_gid


def _is_usable(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0), effective_ids=True)


def _list_files(data_dir: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(data_dir):
        for name in (*folders, *files):
            path = Path(folder, name)
            if os.path.lexists(path):  # locks and journals come and go
                yield path


def _name(paths: list[Path], data_dir: Path) -> str:
    if len(paths) == 1:
        return str(paths[0])
    return f"{paths[0]} and {len(paths) - 1} other files in {data_dir}"


def find_read_only_mount(path: Path) -> FileFault | None:
    """Return the fault if the path is on a read-only mount."""
    folder = next(one for one in (path, *path.parents) if one.exists())
    if not os.statvfs(folder).f_flag & os.ST_RDONLY:
        return None
    return FileFault(
        f"{path} is on a file system that is mounted read-only.",
        f"Run `{DISK_ERRORS}` to find the reason: after disk errors, the kernel makes a disk read-only. "
        f"In a container, mount the folder without “:ro”. In a unit, add ReadWritePaths={path}.",
    )


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
    with suppress(OSError):
        names = sorted(path for path in settings.backup_dir.iterdir() if path.name[:1].isdecimal())
        if names:
            inside = names[-1].is_relative_to(settings.data_dir)
            return str(aside / names[-1].relative_to(settings.data_dir) if inside else names[-1])
    return "FILE"


def make_folder(folder: Path) -> str:
    """Return the command that creates a folder that only the appliance's user can enter."""
    owner = (f"--owner={commands.USER}", f"--group={commands.USER}") if commands.is_service() else ()
    return commands.system_line("install", "--directory", "--mode=700", *owner, str(folder))


def _too_many_files() -> FileFault:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    message = f"Too many files are open: the limit of this process is {soft}."
    # Enough for every process, without the connections of callers.
    remedy = "Raise the limit of open files to 4096: `ulimit -n 4096` in a shell, LimitNOFILE=4096 in a unit."
    return FileFault(message, f"{remedy} Then try again.")


def _full(settings: Settings) -> FileFault:
    free = commands.system_line("df", "-h", str(settings.data_dir))
    return FileFault(
        f"The disk of {settings.data_dir} is full: the database cannot be written.",
        f"Free some space, and try again. `{free}` shows how much is free.",
    )


def _disk_error(path: Path) -> FileFault:
    return FileFault(
        f"The disk failed to read or write {path}.",
        f"To see the errors of the disk, run `{DISK_ERRORS}`. Replace a failing disk, and restore a "
        f"backup: `{commands.line('restore', 'FILE')}`",
    )


def unknown_fault(message: str, settings: Settings) -> FileFault:
    """Return the fault for an unknown cause."""
    listed = commands.system_line("ls", "-lan", str(settings.data_dir))
    return FileFault(message, f"Check the files: `{listed}`. `{DISK_ERRORS}` shows errors of the disk.")
