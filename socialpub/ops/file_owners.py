"""Whose the files in `data_dir` are: all of one user, who can write them."""

import os
import pwd
import shlex
from collections.abc import Iterator
from pathlib import Path

from socialpub.core.settings.loader import Settings
from socialpub.ops.finding import Finding, problem

SHOWN = 3


def check(settings: Settings) -> Iterator[Finding]:
    """At most one finding, with the command that puts all of them right; changes nothing."""
    data_dir, owner = settings.data_dir, _owner(settings)
    strangers = [path for path in _everything(data_dir) if path.lstat().st_uid != owner.st_uid]
    if strangers:
        # A command that was run as root leaves such files, and the service cannot write them any more.
        users = " and ".join(sorted({user_name(path.lstat().st_uid) for path in strangers}))
        verb = "belongs" if len(strangers) == 1 else "belong"
        yield problem(
            "data_dir",
            f"{_some(strangers, data_dir)} {verb} to {users}, not to {user_name(owner.st_uid)}.",
            f"sudo chown -R {owner.st_uid}:{owner.st_gid} {shlex.quote(str(data_dir))}",
        )
        return
    locked = [path for path in _needed(settings) if not _can_be_written(path)]
    if locked:
        remedy = f"Run as {user_name(owner.st_uid)}, who owns it, or: chmod -R u+rwX {shlex.quote(str(data_dir))}"
        yield problem("data_dir", f"{_some(locked, data_dir)} cannot be written.", remedy)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _owner(settings: Settings) -> os.stat_result:
    """Who is meant to own all: whoever owns the folder; where that is root, a service's database tells more."""
    folder, database = settings.data_dir.stat(), settings.database_file
    return database.stat() if folder.st_uid == 0 and database.exists() else folder


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
        if path.exists():
            yield path


def _can_be_written(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK | (os.X_OK if path.is_dir() else 0))


def _some(paths: list[Path], data_dir: Path) -> str:
    """The first of them, and how many more."""
    if len(paths) == 1:
        return str(paths[0])
    names = [str(path.relative_to(data_dir)) if path != data_dir else "the folder itself" for path in paths]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"In {data_dir} {len(names)} files ({', '.join(names[:SHOWN])}{more})"
