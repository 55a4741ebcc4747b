"""Bring a database to this version's shape, one starter at a time, and refuse one from the future.

Migrations are numbered, append-only, and say why. A history row without a file was written by a newer socialpub: what
that one changed is unknown here, so this one does not touch the database at all.
"""

import sqlite3
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from peewee import PeeweeException, SqliteDatabase
from playhouse.migrations import Runner

from socialpub.core import commands, logging, version
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, upgrade_backups
from socialpub.db.connection import Reader, prepared
from socialpub.db.locks import living_processes

MIGRATIONS = Path(__file__).parent / "migrations"

log = logging.get_logger("socialpub.upgrade")


@contextmanager
def exclusive(run_dir: Path) -> Iterator[None]:
    """Two processes that start together would both apply the same migration."""
    run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(run_dir / "upgrade.lock"):
        yield


def list_applied(connection: sqlite3.Connection) -> list[str]:
    """The names of the migrations that a database has."""
    return [row[0] for row in connection.execute("SELECT name FROM schema_migration")]


def list_unknown(applied: Iterable[str]) -> list[str]:
    """Those of the applied migrations that this version does not know: a newer one made them."""
    return sorted(set(applied) - list_known())


def describe_newer(what: str, unknown: Iterable[str], made_by: str = upgrade_backups.FIRST_VERSION) -> str:
    """The sentence for a database with migrations that this version does not know. `made_by` is the newer version."""
    newer = "a newer socialpub" if made_by == upgrade_backups.FIRST_VERSION else f"a newer socialpub, {made_by}"
    return f"{what} was made by {newer}: it has {', '.join(unknown)}, unknown to {version.current()}."


def list_missing(applied: Iterable[str]) -> list[str]:
    """The migrations that the next start applies."""
    return sorted(list_known() - set(applied))


def list_known() -> set[str]:
    """The names of the migrations of this version."""
    # A glob hides that a folder cannot be opened, such as with too many open files: every database would be newer.
    names = (path.name for path in MIGRATIONS.iterdir())
    return {name.removesuffix(".py") for name in names if name[0].isdecimal() and name.endswith(".py")}


def apply_missing(database: SqliteDatabase, secrets: Secrets, run_dir: Path, now: datetime) -> list[str]:
    """Apply what is missing, after a copy; the names applied. Inside `exclusive`.

    Each migration is one transaction. Raises OperatorError for a newer database, and while a process of a former
    version works on an older one. Statements of migrations may call `reseal(sealed, table, id, column)`, which is
    `Secrets.reseal`.
    """
    connection = database.connection()  # type: ignore[no-untyped-call]
    connection.create_function("reseal", 4, secrets.reseal)
    with warnings.catch_warnings():
        # The runner stores a naive `datetime.now` through sqlite3's deprecated default adapter (Python 3.12).
        warnings.simplefilter("ignore", DeprecationWarning)
        runner = Runner(database, str(MIGRATIONS))
        before = sorted(runner.applied())
        newer = list_unknown(before)
        if newer:
            raise OperatorError(
                describe_newer("The database", newer, upgrade_backups.read_version(Reader(connection))),
                "Install the newer version again, or restore a backup that this version made.",
            )
        if not list_missing(before):
            return []
        if not before:
            names = list(runner.up())
            appliance_state.put(connection, appliance_state.VERSION, version.current())
            return names
        _refuse_former_processes(run_dir)
        copy = upgrade_backups.create(connection, Path(database.database), max(before), now, version.current())
        try:
            names = list(runner.up())
        except (PeeweeException, sqlite3.Error) as error:
            raise OperatorError(
                f"The database could not be brought up to date: {error}.",
                f"The failed update was undone. Check the disk and start again. To go back: run "
                f"`{commands.line('restore', str(copy.path))}`, then install {copy.version} again.",
            ) from error
    appliance_state.put(connection, appliance_state.VERSION, version.current())
    log.info(
        "brought the database up to date",
        migrations=names,
        from_version=copy.version,
        to_version=version.current(),
        copy=str(copy.path),
    )
    return names


def _refuse_former_processes(run_dir: Path) -> None:
    # What it reads next would have a shape that it does not know: a token that it cannot open fails a post for good.
    names = living_processes(run_dir / "owners")
    if names:
        raise OperatorError(
            f"A process of a former version still runs: {', '.join(names)}.",
            f"{commands.here().restart()}. The update begins when that process has ended.",
        )


# --- databases from elsewhere ----------------------------------------------------------------------------------------

_IS_NO_ID = "length({0}) <> 36 OR {0} GLOB '*[^0-9a-f-]*'"
_IS_NO_PROCESS = "{0} GLOB '*[^A-Za-z0-9_-]*'"
_FILE_NAMES = {
    ("profile", "id"): _IS_NO_ID,
    ("delivery", "id"): _IS_NO_ID,
    ("artifact", "id"): _IS_NO_ID,
    ("delivery", "owner"): _IS_NO_PROCESS,
    ("idempotency", "owner"): _IS_NO_PROCESS,
}
"""Columns whose values become names of files, and what no value of ours looks like."""


@prepared("columns by name")
def find_foreign_name(reader: Reader) -> str | None:
    """Return a value of these columns that is not ours. None: there is none."""
    for (table, column), wrong in _FILE_NAMES.items():
        found = reader.value(
            f"""SELECT quote({column}) FROM {table} WHERE {column} IS NOT NULL
                AND (typeof({column}) <> 'text' OR {wrong.format(column)}) LIMIT 1"""
        )
        if found is not None:
            return f"{table}.{column} = {found}"
    return None
