"""`db/models.py` is the schema that the migrations make."""

import re
import sqlite3
from typing import Any

import pytest
from peewee import SqliteDatabase

from socialpub.db import models
from socialpub.runtime import Runtime

MODELS = models.TableRow.__subclasses__()


def table(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    """Return the columns, indexes and foreign keys of a table. The order of columns is left out."""
    columns = {
        # A primary key is never null here: every insert gives one.
        column: (type, bool(required or key), default, key, hidden)
        for _, column, type, required, default, key, hidden in connection.execute(f"PRAGMA table_xinfo({name})")
    }
    ((_, _, _, _, without_rowid, _),) = connection.execute(f"PRAGMA table_list({name})")
    indexes = set()
    for _, index, unique, origin, _ in connection.execute(f"PRAGMA index_list({name})"):
        indexed = tuple(row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?)", (index,)))
        sql = connection.execute("SELECT ifnull(max(sql), '') FROM sqlite_master WHERE name = ?", (index,)).fetchone()[
            0
        ]
        condition = re.sub(r"\s+", " ", sql.partition("WHERE")[2]).strip()
        indexes.add((index if origin == "c" else "", unique, indexed, condition))
    foreign = connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
    return {"columns": columns, "without_rowid": without_rowid, "indexes": indexes, "foreign": foreign}


@pytest.fixture(scope="module")
def declared() -> sqlite3.Connection:
    database = SqliteDatabase(":memory:")
    database.connect()
    with database.bind_ctx(MODELS):
        database.create_tables(MODELS)
    connection: sqlite3.Connection = database.connection()
    return connection


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.table_name)
def test_a_model_is_the_table_that_the_migrations_make(model: Any, rt: Runtime, declared: sqlite3.Connection) -> None:
    name = model._meta.table_name
    migrated = sqlite3.connect(rt.settings.database_file)
    assert table(declared, name) == table(migrated, name)


def test_every_table_has_a_model(rt: Runtime) -> None:
    tables = {row[0] for row in rt.db.reader.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables - {"schema_migration"} == {model._meta.table_name for model in MODELS}
