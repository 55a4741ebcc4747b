"""Upgrades a database to the schema of this version, and rejects a database of a newer version.

Migrations have numbers and never change. An applied migration that this version does not know comes from a newer
socialpub, so this version does not write to the database.
"""

import sqlite3
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from peewee import PeeweeException, SqliteDatabase, Table
from playhouse.migrations import Migration, Runner

from socialpub.core import commands, logging, progress, version
from socialpub.core.errors import OperatorError
from socialpub.core.locks import FileLock
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.file_check import interruptible
from socialpub.db.process_lock import living_processes

MIGRATIONS = Path(__file__).parent / "migrations"

_HISTORY = Table("schema_migration")

log = logging.get_logger(__name__)


@contextmanager
def exclusive(run_dir: Path) -> Iterator[None]:
    """Keep other processes from starting or migrating."""
    run_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(run_dir / "upgrade.lock"):
        yield


def list_applied(db: Database) -> list[str]:
    return [name for (name,) in _HISTORY.select(_HISTORY.c.name).order_by(_HISTORY.c.id).tuples().execute(db)]


def refuse_unreadable(db: Database, what: str) -> None:
    """Raise OperatorError for a database of a newer version."""
    if unknown := list_unknown(list_applied(db)):
        from socialpub.db import upgrade_backups

        made_by = upgrade_backups.read_version(db)
        raise OperatorError(
            f"{what} was made by a newer socialpub, {made_by}: {version.VERSION} does not know the migrations "
            f"{', '.join(unknown)}.",
            "Use the newer version, or restore a backup that this version made.",
        )


def list_unknown(applied: Iterable[str]) -> list[str]:
    """Return the applied migrations of a newer version."""
    return sorted(set(applied) - list_known())


def list_missing(applied: Iterable[str]) -> list[str]:
    """Return the migrations that the next start applies."""
    return sorted(list_known() - set(applied))


def list_known() -> set[str]:
    # A glob would hide the error of a folder that cannot be opened, and every database would seem newer.
    names = (path.name for path in MIGRATIONS.iterdir())
    return {name.removesuffix(".py") for name in names if name[0].isdecimal() and name.endswith(".py")}


def apply_missing(db: Database, run_dir: Path, secrets: Secrets, now: datetime) -> None:
    """Back up the database and apply the missing migrations. Call this inside `exclusive`.

    Each migration is one transaction. Raise OperatorError for a database that this version cannot read, and while a
    process of the previous version is running.
    """
    with suppress(sqlite3.Error):  # a new database has no such table
        refuse_unreadable(db, "The database")
        # Most starts end here. peewee's runner would take longer than the rest of the start of the database.
        if set(list_applied(db)) == list_known():
            return
    with warnings.catch_warnings():
        # The runner stores a naive `datetime.now` through sqlite3's deprecated default adapter (Python 3.12).
        warnings.simplefilter("ignore", DeprecationWarning)
        runner = Runner(db, str(MIGRATIONS))
        before = sorted(runner.applied())
        missing = list_missing(before)
        if not missing:
            return
        if not before:
            runner.up()
            appliance_state.put(db, appliance_state.VERSION, version.VERSION)
            return
        from socialpub.db import upgrade_backups  # most starts have no migration to apply

        _refuse_old_processes(run_dir)
        backup = upgrade_backups.create(db, Path(db.database), secrets, max(before), now)
        names: list[str] = []
        try:
            for number, name in enumerate(missing, 1):
                progress.begin(f"Updating the database, step {number} of {len(missing)}")
                with interruptible(db.connection()):
                    names += runner.up(name)
        except (PeeweeException, sqlite3.Error) as error:
            raise OperatorError(
                f"The upgrade of the database failed: {error}.",
                "The failed migration was undone. Check the disk and start again. To return to the previous version, "
                f"run `{commands.line('restore', str(backup.path))}`, then install {backup.version} again.",
            ) from error
    appliance_state.put(db, appliance_state.VERSION, version.VERSION)
    log.info(
        "upgraded the database",
        migrations=names,
        from_version=backup.version,
        to_version=version.VERSION,
        backup=str(backup.path),
    )


def _refuse_old_processes(run_dir: Path) -> None:
    # Such a process would read the new schema: a token that it cannot decrypt would make a post fail.
    names = living_processes(run_dir / "owners")
    if names:
        raise OperatorError(
            f"A process of the previous version is still running: {', '.join(names)}.",
            f"{commands.restart()}. The upgrade begins when that process has ended.",
        )


# --- foreign databases -----------------------------------------------------------------------------------------------

_OTHER_TABLES = [
    ("table", name, name, f"CREATE TABLE {name}{columns}")
    for name, columns in (
        ("sqlite_stat1", "(tbl,idx,stat)"),  # ANALYZE and PRAGMA optimize create these two
        ("sqlite_stat4", "(tbl,idx,neq,nlt,ndlt,sample)"),
        ("_litestream_seq", " (id INTEGER PRIMARY KEY, seq INTEGER)"),
        ("_litestream_lock", " (id INTEGER)"),
    )
]


def find_foreign_object(db: Database) -> str | None:
    """Return the name of an object that the applied migrations did not create in this form, or None.

    SQLite runs the statements of `sqlite_schema`, so each one must be what the migrations write. Return None for a
    database of a newer version, and raise sqlite3.Error for one that cannot be read.
    """
    objects = _read_schema(db)
    if wrong := _find_difference([row for row in objects if "schema_migration" in row[1:3]], _create_schema([])):
        return wrong  # a view could answer with any names, or without an end
    applied = list_applied(db)
    if not all(isinstance(name, str) for name in applied):
        return "schema_migration"
    if list_unknown(applied):
        return None
    try:
        expected = _create_schema(applied)
    except PeeweeException:
        return "schema_migration"
    return _find_difference([row for row in objects if row not in _OTHER_TABLES], expected)


def _create_schema(applied: list[str]) -> list[tuple[str, ...]]:
    """Return the schema that these migrations create in this order, perhaps not the order of their numbers."""
    with closing(SqliteDatabase(":memory:")) as memory:
        memory.connect()
        runner = Runner(memory, str(MIGRATIONS))
        runner.History.create_table()
        migrations: dict[str, Migration] = {migration.name: migration for migration in runner.migrations()}
        for name in applied:
            migrations[name].load().up(runner.migrator, memory)
        return _read_schema(memory)


def _read_schema(db: SqliteDatabase) -> list[tuple[str, ...]]:
    schema = Table("sqlite_schema").c
    query = Table("sqlite_schema").select(schema.type, schema.name, schema.tbl_name, schema.sql)
    return [tuple(row) for row in query.order_by(schema.name, schema.type).tuples().execute(db)]


def _find_difference(found: list[tuple[str, ...]], expected: list[tuple[str, ...]]) -> str | None:
    different = (Counter(found) - Counter(expected)) or (Counter(expected) - Counter(found))
    return next((name for _, name, _, _ in different), None)
