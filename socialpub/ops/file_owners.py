"""Whose the files in `data_dir` are: all of one user, who can write them."""

import grp
import os
import pwd
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from socialpub.core import commands
from socialpub.core.settings.loader import Settings

SHOWN = 3


@dataclass(frozen=True, slots=True)
class FileFault:
    """Why files cannot be used, in a sentence, and what to do about it."""

    message: str
    remedy: str


def find(settings: Settings) -> FileFault | None:
    """Return the first fault, with the command that fixes all its files. Changes nothing."""
    data_dir = settings.data_dir
    uid, gid = _owner(settings)
    if os.geteuid() not in (0, uid) and not _can_be_written(data_dir):
        user = user_name(uid)
        as_owner = commands.this_line_as(user, settings.config_file)
        return FileFault(f"{data_dir} belongs to {user}, and only {user} may use it.", f"Run `{as_owner}`.")
    strangers = [path for path in _everything(data_dir) if path.lstat().st_uid != uid]
    if strangers:
        # A command that was run as root leaves such files. The service cannot write them.
        users = " and ".join(sorted({user_name(path.lstat().st_uid) for path in strangers}))
        verb = "belongs" if len(strangers) == 1 else "belong"
        to = f"{user_name(uid)}:{_group_name(gid)}"
        return FileFault(
            f"{_some(strangers, data_dir)} {verb} to {users}, not to {user_name(uid)}.",
            f"Run `{commands.system_line('chown', '-R', to, str(data_dir), root=True)}`.",
        )
    locked = [path for path in _needed(settings) if not _can_be_written(path)]
    if not locked:
        return None
    message = f"{_some(locked, data_dir)} cannot be written."
    if all(path.stat().st_mode & 0o200 for path in locked):
        look = commands.system_line("lsattr", "-d", str(locked[0]))
        return FileFault(message, f"Its mode allows it. `{look}` shows attributes, such as i, that forbid it.")
    return FileFault(message, f"Run `{commands.system_line('chmod', '-R', 'u+rwX', str(data_dir))}`.")


def is_closed(folder: Path) -> bool:
    """Whether this user must not enter the folder."""
    return not os.access(folder, os.X_OK, effective_ids=True)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _owner(settings: Settings) -> tuple[int, int]:
    """Return the user and group that all files should have.

    This is the service's user, or the container's. Elsewhere it is the folder's owner; if that is root, the database's.
    """
    with suppress(KeyError):
        if (user := commands.service_user()) is not None:
            entry = pwd.getpwnam(user)
            return entry.pw_uid, entry.pw_gid
    if commands.is_container() and os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    found, database = settings.data_dir.stat(), settings.database_file
    if found.st_uid == 0 and os.path.exists(database):  # noqa: PTH110  # a Path's own raises in a folder that is closed
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
        if os.path.exists(path):  # noqa: PTH110  # a Path's own raises in a folder that is closed
            yield path


def _can_be_written(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0), effective_ids=True)


def _some(paths: list[Path], data_dir: Path) -> str:
    """The first of them, and how many more."""
    if len(paths) == 1:
        return str(paths[0])
    names = [str(path.relative_to(data_dir)) if path != data_dir else "the folder itself" for path in paths]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"In {data_dir} {len(names)} files ({', '.join(names[:SHOWN])}{more})"
