"""The faults that prevent the appliance from using its files, each with a remedy.

The error codes of SQLite and of the system decide, and never the text of an error. If a code is ambiguous, this module
examines the mounts, the owners of files and the limit of open files.
"""

import errno
import grp
import os
import pwd
import resource
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from socialpub.core import commands, locks
from socialpub.core.errors import OperatorError, file_system_cannot
from socialpub.core.machine import user_name
from socialpub.core.settings.loader import Settings
from socialpub.db import errors

SHOWN = 3
DISK_ERRORS = "sudo dmesg --level=err,warn"
RAISE_FILE_LIMIT = "Raise the limit of open files to 4096: `ulimit -n 4096` in a shell, LimitNOFILE=4096 in a unit"
"""The limit is enough for every process, without the connections of callers."""


class FileFault(NamedTuple):
    message: str
    remedy: str


class WrongUser(OperatorError):
    """Another user must run this."""


def refuse_root(settings: Settings) -> None:
    """Raise WrongUser if this is root, and the data folder or its parent belongs to another user."""
    if os.geteuid() != 0:
        return
    folder = next(path for path in (settings.data_dir, *settings.data_dir.parents) if path.exists())
    uid = folder.stat().st_uid
    if uid == 0:
        return
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = f"#{uid}"
    raise WrongUser(
        f"{folder} is owned by {user}. Files created there by root would not be writable by {user}.",
        f"Run the command as {user}: {commands.this_line_as(user, settings.config_file)}",
    )


def find_owner_fault(settings: Settings) -> FileFault | None:
    """Return the first fault, with the command that fixes all its files. Changes nothing."""
    data_dir = settings.data_dir
    uid, gid = _find_owner(settings)
    if os.geteuid() not in (0, uid) and not _can_be_written(data_dir):
        user = user_name(uid)
        as_owner = commands.this_line_as(user, settings.config_file)
        return FileFault(f"{data_dir} is owned by {user}, and only {user} may use it.", f"Run `{as_owner}`.")
    strangers = [path for path in _everything(data_dir) if path.lstat().st_uid != uid]
    if strangers:
        # A command that ran as root created such files. The service cannot write them.
        users = " and ".join(sorted({user_name(path.lstat().st_uid) for path in strangers}))
        verb = "is" if len(strangers) == 1 else "are"
        to = f"{user_name(uid)}:{_group_name(gid)}"
        return FileFault(
            f"{_some(strangers, data_dir)} {verb} owned by {users}, not by {user_name(uid)}.",
            f"Run `{commands.system_line('chown', '-R', to, str(data_dir), root=True)}`.",
        )
    locked = [path for path in _needed(settings) if not _can_be_written(path)]
    if not locked:
        return None
    message = f"{_some(locked, data_dir)} cannot be written."
    if all(path.stat().st_mode & 0o200 for path in locked):
        show = commands.system_line("lsattr", "-d", str(locked[0]))
        return FileFault(
            message, f"The file mode allows writing. `{show}` shows attributes that prevent writing, such as i."
        )
    return FileFault(message, f"Run `{commands.system_line('chmod', '-R', 'u+rwX', str(data_dir))}`.")


def find_mode_fault(settings: Settings) -> FileFault | None:
    """Return the fault of a file system that lets other users read every file."""
    with suppress(OSError), tempfile.TemporaryFile(dir=settings.data_dir) as file:  # with the mode 600
        if os.fstat(file.fileno()).st_mode & 0o077:
            return _cannot("keep files from other users (chmod)")
    return None


def is_closed(folder: Path) -> bool:
    """Return whether this user cannot enter the folder."""
    return not os.access(folder, os.X_OK, effective_ids=True)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _find_owner(settings: Settings) -> tuple[int, int]:
    """Return the user and group that must own all files.

    This is the user of the service or container. Otherwise, it is the owner of the folder, or of the database if
    root owns the folder.
    """
    with suppress(KeyError):
        if commands.is_service():
            entry = pwd.getpwnam(commands.USER)
            return entry.pw_uid, entry.pw_gid
    if commands.manager() in ("podman", "docker") and os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    found, database = settings.data_dir.stat(), settings.database_file
    if found.st_uid == 0 and os.path.exists(database):  # noqa: PTH110  # Path.exists raises in a closed folder
        found = database.stat()
    return found.st_uid, found.st_gid


def _everything(data_dir: Path) -> Iterator[Path]:
    yield data_dir
    for folder, folders, files in os.walk(data_dir):
        for name in (*folders, *files):
            path = Path(folder, name)
            if os.path.lexists(path):  # locks and journals come and go
                yield path


def _needed(settings: Settings) -> Iterator[Path]:
    data_dir, database, media = settings.data_dir, settings.database_file, settings.media_dir
    journals = [database.with_name(f"{database.name}-{end}") for end in ("wal", "shm")]
    for path in (data_dir, database, *journals, settings.queue_file, media, media / "incoming", settings.run_dir):
        if os.path.exists(path):  # noqa: PTH110  # Path.exists raises in a closed folder
            yield path


def _can_be_written(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0), effective_ids=True)


def _some(paths: list[Path], data_dir: Path) -> str:
    """Return the first paths, and the number of others."""
    if len(paths) == 1:
        return str(paths[0])
    names = [str(path.relative_to(data_dir)) if path != data_dir else "the folder itself" for path in paths]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"In {data_dir} {len(names)} files ({', '.join(names[:SHOWN])}{more})"


FEW_FILES = 64
"""The lowest sufficient limit. A process with a lower limit reaches the limit when it opens the database."""
_SPARE_FILES = 8


@dataclass(frozen=True, slots=True)
class Mount:
    point: Path
    read_only: bool


def find_fault(error: BaseException, settings: Settings) -> FileFault | None:
    """Return the fault behind an error, or None if the error is not about files."""
    if (how := errors.find_damage(error)) is not None:
        return damaged_database(how, settings)
    for one in _chain(error):
        fault = None
        if isinstance(one, sqlite3.Error):
            fault = _of_sqlite(getattr(one, "sqlite_errorcode", sqlite3.SQLITE_ERROR), settings)
        elif isinstance(one, OSError):
            fault = _of_system(one, settings)
        if fault is not None:
            return fault
    return None


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


def find_read_only_mount(path: Path) -> FileFault | None:
    """Return the fault if the path is on a read-only mount."""
    mount = find_mount(path)
    if mount is None or not mount.read_only:
        return None
    on = "" if path == mount.point else f"{path} is on {mount.point}, which"
    return FileFault(f"{on or mount.point} is mounted read-only.", _mount_writable(mount.point))


def make_folder(folder: Path) -> str:
    """Return the command that creates a folder that only the appliance's user can enter."""
    owner = (f"--owner={commands.USER}", f"--group={commands.USER}") if commands.is_service() else ()
    return commands.system_line("install", "--directory", "--mode=700", *owner, str(folder))


def _mount_writable(point: Path) -> str:
    if "INVOCATION_ID" in os.environ:
        units = " ".join(commands.SERVICES)
        return (
            f"The unit does not allow writes there. Run `sudo systemctl edit {units}`, and add the lines “[Service]” "
            f"and “ReadWritePaths={point}”."
        )
    remount = commands.system_line("mount", "-o", "remount,rw", str(point), root=True)
    return (
        f"Run `{DISK_ERRORS}` to find the reason: after disk errors, the kernel makes a disk read-only. "
        f"Then run `{remount}`. In a container, mount the folder without “:ro”."
    )


def find_mount(path: Path, table: Path = Path("/proc/self/mountinfo")) -> Mount | None:
    """Return the mount of the path in this process's view."""
    try:
        lines = table.read_text("utf-8", "replace").splitlines()
        real = path.resolve()
    except OSError:
        return None
    found: Mount | None = None
    for fields in map(str.split, lines):
        point = Path(fields[4].encode().decode("unicode_escape"))
        # A later mount covers an earlier one.
        if real.is_relative_to(point) and (found is None or point.is_relative_to(found.point)):
            options = {*fields[5].split(","), *fields[-1].split(",")}
            found = Mount(point, "ro" in options)
    return found


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, because peewee and the writer raise their own errors."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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
"""What a file system lacks, by SQLite's extended code. A local disk has all of it, unless the disk is full."""


def _cannot(what: str) -> FileFault:
    error = file_system_cannot(what)
    return FileFault(error.message, error.hint or "")


def _of_sqlite(code: int, settings: Settings) -> FileFault | None:
    if code in _CANNOT:
        return _full_now(settings) or _cannot(_CANNOT[code])
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return _full(settings)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return _locked(settings)
        case sqlite3.SQLITE_IOERR:
            return _not_usable(settings) or _disk_error(settings.database_file)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            message = f"{settings.database_file} cannot be opened or written."
            return _not_usable(settings) or unknown_fault(message, settings)
    return None


def _of_system(error: OSError, settings: Settings) -> FileFault | None:
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else settings.data_dir
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return _full(settings)
        case errno.EROFS:
            return find_read_only_mount(path) or find_read_only_mount(path.parent) or _disk_error(path)
        case errno.EMFILE | errno.ENFILE:
            return _too_many_files()
        case errno.EIO:
            return _disk_error(path)
        case errno.EACCES | errno.EPERM:
            inside = path.absolute().is_relative_to(settings.data_dir.absolute())
            return _not_usable(settings) if inside else None
    return None


def _not_usable(settings: Settings) -> FileFault | None:
    """Return the reason why this process cannot write in data_dir."""
    if _are_files_short():
        return _too_many_files()
    try:
        return find_read_only_mount(settings.data_dir) or find_owner_fault(settings) or _full_now(settings)
    except OSError:
        return None


def _are_files_short() -> bool:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return False
    try:
        used = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return soft < FEW_FILES or used > soft - _SPARE_FILES


def _too_many_files() -> FileFault:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FileFault(
        f"Too many files are open: the limit of this process is {soft}.",
        f"{RAISE_FILE_LIMIT}. Then try again.",
    )


def _full_now(settings: Settings) -> FileFault | None:
    found = os.statvfs(settings.data_dir)
    return None if found.f_bavail and (found.f_favail or not found.f_files) else _full(settings)


def _full(settings: Settings) -> FileFault:
    mount = find_mount(settings.data_dir)
    where = f" ({mount.point})" if mount else ""
    free = commands.system_line("df", "-h", str(settings.data_dir))
    return FileFault(
        f"The disk of {settings.data_dir}{where} is full: the database cannot be written.",
        f"Free some space, and try again. `{free}` shows how much is free.",
    )


def _locked(settings: Settings) -> FileFault:
    with suppress(OSError):
        if not locks.has_record_locks(settings.data_dir):
            return _cannot("lock parts of files (POSIX locks)")
    users = commands.system_line("fuser", "-v", str(settings.database_file))
    return FileFault(
        f"Another program keeps {settings.database_file} locked.", f"Find the program: `{users}`. Stop that program."
    )


def _disk_error(path: Path) -> FileFault:
    mount = find_mount(path)
    where = f" {mount.point}" if mount else ""
    return FileFault(
        f"The disk{where} failed to read or write {path}.",
        f"To see the errors of the disk, run `{DISK_ERRORS}`. Replace a failing disk, and restore a "
        f"backup: `{commands.line('restore', 'FILE')}`",
    )


def unknown_fault(message: str, settings: Settings) -> FileFault:
    """Return the fault for an unknown cause."""
    listed = commands.system_line("ls", "-lan", str(settings.data_dir))
    return FileFault(message, f"Check the files: `{listed}`. `{DISK_ERRORS}` shows errors of the disk.")
