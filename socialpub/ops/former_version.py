"""The version before an upgrade: what is left of it on this machine, and what going back to it needs.

`install-service` keeps the environment that was in use before. The former version itself is never imported: its files
say which migrations it knows. A former version that knows all migrations of the database works with it as it is. If it
does not, the backup from before the upgrade has the shape that it knows.
"""

import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from socialpub.core.errors import OperatorError
from socialpub.core.settings.loader import Settings
from socialpub.db import migrate, upgrade_copies
from socialpub.db.upgrade_copies import UpgradeCopy

_STATED = re.compile(r"^Version: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of an installed service, with socialpub in it."""

    folder: Path
    version: str
    package: Path
    """The folder of its package `socialpub`."""
    built_at: float

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "socialpub"

    @property
    def migrations(self) -> frozenset[str]:
        """The names of the migrations that this version knows."""
        return frozenset(path.stem for path in (self.package / "db" / "migrations").glob("[0-9]*.py"))

    @property
    def units(self) -> frozenset[str]:
        """The names of the units that this version installs."""
        return frozenset(
            path.name for path in (self.package / "cli" / "examples").glob("socialpub-*.*")
            if path.suffix in (".service", ".socket", ".timer")
        )  # fmt: skip


def read(folder: Path) -> Environment | None:
    """Return what a folder of environments holds, or None if there is no socialpub in it."""
    package = next(folder.glob("lib/python3*/site-packages/socialpub"), None)
    stated = next(folder.glob("lib/python3*/site-packages/socialpub-*.dist-info/METADATA"), None)
    built, found = folder / "pyvenv.cfg", _STATED.search(stated.read_text("utf-8")) if stated else None
    if package is None or found is None or not built.exists() or folder.suffix == ".partial":
        return None
    return Environment(folder, found[1], package, built.stat().st_mtime)


def find(in_use: Path) -> Environment | None:
    """Return the newest environment of another version that is older than the one in use, or None.

    `in_use` is the folder of that one. The others are beside it.
    """
    present = read(in_use)
    if present is None:
        return None
    others = [found for folder in sorted(in_use.parent.iterdir()) if (found := read(folder)) is not None]
    older = [one for one in others if one.built_at < present.built_at and one.version != present.version]
    return max(older, key=lambda one: one.built_at, default=None)


def of_this_service() -> Environment | None:
    """Return what `go-back` returns to, if this process is of an installed service that has a former version."""
    in_use = Path(sys.prefix)
    is_service = in_use.parent.name == "environments" and (in_use.parents[1] / ".venv").is_symlink()
    return find(in_use) if is_service else None


def backup_needed(former: Environment, settings: Settings) -> UpgradeCopy | None:
    """Return the backup that the former version needs, or None if it works with the present database.

    Raises OperatorError if it needs one that is not there.
    """
    database = settings.database_file
    if not database.exists():
        return None
    with closing(sqlite3.connect(f"file:{quote(str(database))}?mode=rw", uri=True)) as connection:
        unknown = sorted(set(migrate.applied(connection)) - former.migrations)
    if not unknown:
        return None
    schema = max(former.migrations)
    for copy in upgrade_copies.list_all(database):
        if copy.schema == schema:
            return copy
    raise OperatorError(
        f"{former.version} does not know the present database ({', '.join(unknown)}), and no backup from before the "
        f"upgrade ({schema}) is in {upgrade_copies.folder_of(database)}.",
        "Stay with the present version, or restore a backup that the former version made into an empty data_dir.",
    )
