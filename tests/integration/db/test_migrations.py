"""One migration creates the tables of `db/models.py`. Databases of other versions are refused."""

import json
import re
import sqlite3
from typing import Any

import pytest
from peewee import SqliteDatabase

from socialpub.db import models, states
from socialpub.db.delivery import Progress
from socialpub.db.states import Phase
from socialpub.db.tables import delivery_rows
from socialpub.runtime import Runtime
from tests.support.select import select_all, select_one

AT = "2026-10-12T09:00:00.000Z"


KEYED = models.KeyedRow
MODELS = [*KEYED.__subclasses__(), *(model for model in models.TableRow.__subclasses__() if model is not KEYED)]


def table(connection: sqlite3.Connection, name: str) -> dict[str, Any]:
    columns = {
        # A primary key is never null here: every insert gives one.
        column: (type, bool(required or key), default, key, hidden)
        for _, column, type, required, default, key, hidden in connection.execute(f"PRAGMA table_xinfo({name})")
    }
    ((_, _, _, _, without_rowid, _),) = connection.execute(f"PRAGMA table_list({name})")
    indexes = set()
    for _, index, unique, origin, _ in connection.execute(f"PRAGMA index_list({name})"):
        indexed = tuple(row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?)", (index,)))
        (sql,) = connection.execute("SELECT max(sql) FROM sqlite_master WHERE name = ?", (index,)).fetchone()
        condition = re.sub(r"\s+", " ", (sql or "").partition("WHERE")[2]).strip()
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
    tables = {row[0] for row in select_all(rt.db, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables - {"schema_migration"} == {model._meta.table_name for model in MODELS}


# --- the queue -------------------------------------------------------------------------------------------------------

PLAN = [["upload", "prepare"], ["await", "poll"], ["create", "commit"], ["settle", "poll"]]
NO_PLAN, PREPARES, ASKS, COMMITS, SETTLES = None, 0, 1, 2, 3
DOUBT: dict[str, Any] = {"commits": 1, "why": "timed out", "since": AT}
PHASES: list[tuple[int | None, Phase, bool]] = [
    (NO_PLAN, states.Preparing(), False),
    (PREPARES, states.Preparing(), False),
    (PREPARES, states.Preparing(), True),
    (ASKS, states.Preparing(), True),
    (COMMITS, states.Committing(), False),
    (SETTLES, states.Processing(), False),
    (COMMITS, states.ReadingBack(**DOUBT), False),
    (COMMITS, states.ReadingBack(**DOUBT), True),
    (COMMITS, states.Confirming(**DOUBT), False),
    (COMMITS, states.CommittingAgain(**DOUBT), False),
    (ASKS, states.PreparingAgain(**DOUBT), False),
    (COMMITS, states.Closing(**DOUBT, message="Late."), False),
    (NO_PLAN, states.Confirming(since=AT, restored=True, then=states.PhaseName.PREPARING), False),
    (COMMITS, states.Closing(since=AT, restored=True), False),
    (SETTLES, states.Processing(since=AT, restored=True), False),
]
"""The next step, the phase, and whether the owner stopped the post."""


@pytest.mark.parametrize(("step", "phase", "stopped"), PHASES)
def test_the_queue_knows_what_each_phase_waits_on(step: int | None, phase: Phase, stopped: bool, rt: Runtime) -> None:
    progress = json.dumps(Progress(phase=phase, stopped=stopped).as_dict())
    rt.db.write(
        lambda tx: (
            tx.execute_sql(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                options, due_at, run_at, content_key, plan, step, progress)
                VALUES ('d', 'p', 0, 'a', 'x', 'n', 'a', 'queued', '{}', ?1, ?1, '', ?2, ?3, ?4)""",
                (AT, None if step is None else json.dumps(PLAN), step or 0, progress),
            ).rowcount
        )
    )
    delivery, row = (
        delivery_rows.find(rt.db, "d"),
        select_one(rt.db, "SELECT phase, line FROM delivery"),
    )
    assert delivery is not None and row is not None
    assert row.phase == delivery.phase.name
    assert row.line.startswith("?") == delivery.asks
    assert row.line[1:] == delivery.step_name
