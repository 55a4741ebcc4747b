"""The folder for scheduled copies: which copies lie there, which of them stay, and the removal of the others.

Nothing is removed but folders that say in their first file that this `secret.key` or a former one made them, and
never the copy that was just made.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.settings.backup_section import BackupSection
from socialpub.ops.copies import archive

log = logging.get_logger("socialpub.copies")

UNFINISHED = ".unfinished-"
"""How the name of a folder begins that is no copy yet, or none any more: whoever comes next removes it."""

KEEP_LAST = 3
"""A backup after a mistake does not remove the backup of the same morning."""

_NAME = "%Y-%m-%dT%H-%M-%SZ"
_MOST_INFO_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class DatedCopy:
    """A copy in the folder for them. Whether it is whole is not known before it was read."""

    path: Path
    copied_at: datetime
    media_read_at: str | None = None
    """When all of its media were last read, rather than known from the copy before."""


def free_place(folder: Path, copied_at: datetime) -> Path:
    """Where a copy of this instant goes. Two of one second, or a clock that was set back, meet no name twice."""
    while (place := folder / copied_at.strftime(_NAME)).exists():
        copied_at += timedelta(seconds=1)
    return place


def list_all(folder: Path, keys: Collection[str]) -> list[DatedCopy]:
    """The copies that a secret.key with one of these check values made, oldest first."""
    found = (_read(path, keys) for path in folder.glob("[0-9]*") if _is_name(path.name))
    return sorted((copy for copy in found if copy is not None), key=lambda copy: (copy.copied_at, copy.path))


def kept(copies: Sequence[DatedCopy], settings: BackupSection) -> list[DatedCopy]:
    """Those of copies, oldest first, that stay: the newest of each of the last days, weeks and months that have any,
    and the last three of all."""
    chosen = {copy.path for copy in copies[-KEEP_LAST:]}
    for most, period in (
        (settings.keep_days, _day),
        (settings.keep_weeks, _week),
        (settings.keep_months, _month),
    ):
        newest = {period(copy.copied_at): copy.path for copy in copies}  # a later one takes the earlier one's place
        chosen.update(newest[one] for one in sorted(newest, reverse=True)[:most])
    return [copy for copy in copies if copy.path in chosen]


def prune(folder: Path, keys: Collection[str], settings: BackupSection, just_made: Path) -> int:
    """Remove the copies that need not stay; how many."""
    copies = list_all(folder, keys)
    stay = {copy.path for copy in kept(copies, settings)} | {just_made}
    return _remove(copy.path for copy in copies if copy.path not in stay)


def clear_unfinished(folder: Path, keys: Collection[str]) -> int:
    """Remove what killed runs have left; how many. Only for whoever keeps others from making copies here meanwhile."""
    left = [path for path in folder.glob(f"{UNFINISHED}*") if path.is_dir() and not path.is_symlink()]
    return _remove(path for path in left if not any(path.iterdir()) or _read(path, keys) is not None)


def _remove(paths: Iterable[Path]) -> int:
    removed = 0
    for path in paths:
        gone = path
        try:
            if not path.name.startswith(UNFINISHED):
                # Half a copy never stands under a copy's name, whenever the power fails.
                gone = path.rename(path.with_name(UNFINISHED + path.name))
            # What tells whose it is goes last.
            for inside in sorted(gone.iterdir(), key=lambda one: one.name == archive.FIRST):
                shutil.rmtree(inside) if inside.is_dir() and not inside.is_symlink() else inside.unlink()
            gone.rmdir()
            removed += 1
        except OSError as error:
            log.warning("an old copy could not be removed", copy=str(gone), reason=error.strerror)
    return removed


def _read(path: Path, keys: Collection[str]) -> DatedCopy | None:
    """What a folder tells of itself; None when it is no copy that one of these keys made."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        if path.is_symlink():
            return None
        with archive.open_regular(path / archive.FIRST, follow=False) as file:
            told = json.loads(file.read(_MOST_INFO_BYTES))
        if told["secret_key"] in keys:
            read_at = told.get("media_read_at")
            return DatedCopy(path, parse(told["copied_at"]), read_at if isinstance(read_at, str) else None)
    return None


def _is_name(name: str) -> bool:
    try:
        datetime.strptime(name, _NAME)
    except ValueError:
        return False
    return True


Period = Callable[[datetime], tuple[int, ...]]


def _day(at: datetime) -> tuple[int, ...]:
    return at.timetuple()[:3]


def _week(at: datetime) -> tuple[int, ...]:
    return tuple(at.isocalendar())[:2]


def _month(at: datetime) -> tuple[int, ...]:
    return at.timetuple()[:2]
