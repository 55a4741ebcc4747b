"""Migrations create the tables of `db/models.py` and keep the data of former versions."""

import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from peewee import SqliteDatabase

from socialpub.accounts.api_keys import OWNER
from socialpub.core.settings.loader import Settings
from socialpub.db import models, states, upgrade
from socialpub.db.connection import Tx
from socialpub.db.queries import api_json, post_list
from socialpub.db.queries.post_list import PostFilter
from socialpub.db.states import Phase, WaitingForReconnect
from socialpub.db.tables import audit_log, counters, delivery_rows, log_entries
from socialpub.ops import audit_text, storage
from socialpub.ops.backup import restore
from socialpub.runtime import Runtime
from tests.support.appliance import add_profile, open_appliance
from tests.support.copies import copy_of_former_tables
from tests.support.hand_clock import HandClock

AT = "2026-10-12T09:00:00.000Z"


@contextmanager
def former_version(folder: Path, clock: HandClock, *migrations: str) -> Iterator[Runtime]:
    """Open an appliance that knows only these migrations."""
    known = folder / "former"
    known.mkdir()
    for pattern in migrations:
        for path in upgrade.MIGRATIONS.glob(pattern):
            shutil.copy(path, known)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(upgrade, "MIGRATIONS", known)
        rt = open_appliance(folder, clock)
        yield rt
        rt.close()


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
    tables = {row[0] for row in rt.db.reader.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables - {"schema_migration"} == {model._meta.table_name for model in MODELS}


def test_the_restore_of_a_former_backup_is_logged_once(tmp_path: Path, clock: HandClock) -> None:
    new = tmp_path / "new"
    new.mkdir()
    with former_version(tmp_path, clock, "000[1-7]_*.py") as rt:
        assert not audit_log.exists(rt.reader)
        copy = copy_of_former_tables(rt, tmp_path)
        clock.forward(60)
        restore.restore(copy, Settings(data_dir=new / "data"), clock)
    for _ in range(2):
        rt = open_appliance(new, clock)
        entries = audit_log.load_page(rt.reader).entries
        rt.close()
    assert [(entry.at, audit_text.describe(entry)) for entry in entries] == [
        ("2026-10-12T09:01:00.000Z", "Restored a backup of 2026-10-12T09:00:00.000Z, paused.")
    ]


def test_posts_of_the_former_version_get_the_key_that_is_known_and_the_name_of_their_profile(
    tmp_path: Path, clock: HandClock
) -> None:
    with former_version(tmp_path, clock, "00[0-2]*.py", "003[0-4]_*.py") as rt:
        profile = add_profile(rt, name="New name")
        common = {"post_id": "p1", "provider": "x", "account_id": "acct", "profile_id": profile, "options": "{}"}
        common |= {"profile_name": "Old name", "due_at": AT, "run_at": AT, "content_key": "c"}

        def insert(tx: Tx) -> None:
            for post in ("p1", "p2"):
                times = {"created_at": AT, "updated_at": AT}
                tx.insert("post", id=post, status="pending", audience_id=1, **times)
            tx.insert("key_use", key_id="k1", accepted_at=AT, post_id="p1", profiles=1)
            for position, state in enumerate(("queued", "running", "published", "canceled")):
                tx.insert("delivery", id=f"d{position}", position=position, state=state, **common)

        rt.db.write(insert)
    rt = open_appliance(tmp_path, clock)
    keys = [tuple(row) for row in rt.reader.all("SELECT id, key_id FROM post ORDER BY id")]
    names = [row[0] for row in rt.reader.all("SELECT profile_name FROM delivery ORDER BY id")]
    rt.close()
    assert keys == [("p1", "k1"), ("p2", None)]
    assert names == ["New name", "New name", "Old name", "Old name"]


POSTS = {
    "p1": ("settled", ["published", "failed"]),
    "p2": ("settled", ["published", "unconfirmed"]),
    "p3": ("pending", ["running", "published"]),
    "p4": ("canceled", ["canceled", "canceled"]),
    "p5": ("scheduled", ["queued", "queued"]),
}
"""Status, and the states of the deliveries to the profiles b and a, in this order."""


def test_posts_of_the_former_version_are_found_by_their_outcomes(tmp_path: Path, clock: HandClock) -> None:
    with former_version(tmp_path, clock, "000[1-5]_*.py") as rt:
        database = rt.settings.database_file
    with sqlite3.connect(database) as rows:
        rows.execute('INSERT INTO audience VALUES (1, \'["a","b"]\')')
        rows.executemany("INSERT INTO audience_member VALUES (1, ?, 'x')", [("a",), ("b",)])
        for post, (status, states) in POSTS.items():
            rows.execute(
                "INSERT INTO post (id, status, created_at, updated_at, audience_id) VALUES (?, ?, ?, ?, 1)",
                (post, status, AT, AT),
            )
            rows.executemany(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                    options, due_at, run_at, content_key) VALUES (?, ?, ?, ?, 'x', 'n', 'a', ?, '{}', ?, ?, '')""",
                [
                    (f"{post}{n}", post, n, profile, state, AT, AT)
                    for n, (profile, state) in enumerate(zip("ba", states, strict=True))
                ],
            )
        rows.execute("INSERT INTO audience_count SELECT audience_id, status, count(*) FROM post GROUP BY 1, 2")
    rows.close()
    rt = open_appliance(tmp_path, clock)
    days = rt.reader.all("SELECT day, status, outcomes, posts FROM post_day ORDER BY 3")
    assert [tuple(row) for row in days] == [
        ("2026-10-12", "scheduled", "..", 1),
        ("2026-10-12", "canceled", "cc", 1),
        ("2026-10-12", "settled", "fp", 1),
        ("2026-10-12", "pending", "p.", 1),
        ("2026-10-12", "settled", "up", 1),
    ]
    found = {row["id"]: row["outcomes"] for row in rt.reader.all("SELECT id, outcomes FROM post")}
    assert found == {"p1": "fp", "p2": "up", "p3": "p.", "p4": "cc", "p5": ".."}
    for outcome, profile, count in (("failed", "a", 1), ("failed", "b", 0), ("unknown", "a", 1), ("published", "b", 2)):
        page = post_list.load_page(rt.reader, PostFilter(outcome=outcome, profiles=(profile,)))
        assert (page.total, len(page.shown)) == (count, count)
    assert post_list.load_page(rt.reader, PostFilter(status="settled")).total == 2
    assert post_list.load_page(rt.reader, PostFilter()).total == 5
    assert counters.outcomes(rt.reader) == {
        ("x", "published"): 3,
        ("x", "failed"): 1,
        ("x", "unknown"): 1,
        ("x", "canceled"): 2,
    }
    rt.close()


LOGGED = {
    "same": ("a text", "a text"),
    "edited": ("before the edit", "after the edit"),
    "added later": (None, "added"),
    "only media": (None, None),
    "removed": ("of a removed post", ...),
}
"""The text in the log entry of a former version, and the text of the post."""


def test_former_log_entries_keep_their_texts_and_compacting_removes_the_repeated_ones(
    tmp_path: Path, clock: HandClock
) -> None:
    with former_version(tmp_path, clock, "00[0-2]*_*.py", "003[0-2]_*.py") as before:
        database = before.settings.database_file
    with sqlite3.connect(database) as rows:
        for post, (in_log, body) in LOGGED.items():
            if body is not ...:
                rows.execute(
                    """INSERT INTO post (id, status, body, created_at, updated_at, audience_id)
                        VALUES (?, 'pending', ?, ?, ?, 1)""",
                    (post, body, AT, AT),
                )
            rows.execute(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                    options, due_at, run_at, content_key)
                    VALUES (?1, ?1, 0, 'p', 'x', 'n', 'a', 'queued', '{}', ?2, ?2, '')""",
                (post, AT),
            )
            rows.execute(
                """INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at, post_body)
                    VALUES (?1, ?1, ?1, 'p', 'x', 'pending', ?2, ?3)""",
                (post, AT, in_log),
            )
    rows.close()
    rt = open_appliance(tmp_path, clock)

    def texts() -> list[str | None]:
        return [one.get("postBody") for one in json.loads(api_json.log_entries_after(rt.reader, OWNER, 0, 100))]

    former = [in_log for in_log, _ in LOGGED.values()]
    assert texts() == former
    for post in ("same", "edited", "added later"):
        rt.db.write(log_entries.record, "published", post)
    expected = [*former, "a text", "after the edit", "added"]
    assert texts() == expected
    storage.compact(rt)
    assert texts() == expected
    kept = rt.reader.all("SELECT post_body FROM log_entry WHERE post_body IS NOT NULL ORDER BY n")
    assert [row[0] for row in kept] == ["before the edit", "of a removed post"]
    rt.close()


def test_a_former_log_knows_how_far_it_is_out_of_order(tmp_path: Path, clock: HandClock) -> None:
    with former_version(tmp_path, clock, "00[0-2]*_*.py", "003[01]_*.py") as rt:
        database = rt.settings.database_file
    with sqlite3.connect(database) as rows:
        rows.executemany(
            "INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at)"
            " VALUES ('e', 'd', 'p', 'a', 'x', 'pending', ?)",
            [(f"2026-10-12T{at}.000Z",) for at in ("09:00:00", "10:00:00", "08:30:00", "09:59:59", "11:00:00")],
        )
    rows.close()
    rt = open_appliance(tmp_path, clock)
    order = log_entries.load_order(rt.reader)
    rt.close()
    assert order.latest == "2026-10-12T10:00:00.000Z"
    assert 5400 < order.behind < 5402


BEFORE = "2026-10-12T08:00:00.000Z"
PLAN = [["upload", "prepare"], ["await", "poll"], ["create", "commit"], ["settle", "poll"]]
NO_PLAN, PREPARES, ASKS, COMMITS, SETTLES = None, 0, 1, 2, 3
UNKNOWN = {"commits": 1, "unknown": "timed out", "since": BEFORE, "dated_since": AT}
DOUBT: dict[str, Any] = {"commits": 1, "why": "timed out", "since": BEFORE, "dated_since": AT}
RESTORED = {"restored": True, "since": BEFORE, "unknown": "the installation may have"}
EARLIER = {"body": "Before", "media": [["m", None]], "options": {}}
ROUND = {"looks": 2, "looked_seconds": 20.5}
ROUND_NOW: dict[str, Any] = {"readbacks": 2, "read_back_seconds": 20.5}

FORMER: list[tuple[int | None, dict[str, Any], Phase]] = [
    (NO_PLAN, {}, states.Preparing()),
    (PREPARES, {"tries": 2}, states.Preparing()),
    (ASKS, {"again": {"expired": 1}}, states.Preparing()),
    (COMMITS, {}, states.Committing()),
    (COMMITS, {"dated_since": AT, "stopped": True}, states.Committing(AT)),
    (SETTLES, {"dated_since": AT}, states.Processing(dated_since=AT)),
    (SETTLES, {"commits": 1, "since": BEFORE, "dated_since": AT}, states.Processing(1, BEFORE, AT)),
    (SETTLES, {"commits": 1, "since": BEFORE, "closing": "Late."}, states.Processing(1, BEFORE, None, "Late.")),
    (COMMITS, {**UNKNOWN, **ROUND, "reading_back": True}, states.ReadingBack(**DOUBT, **ROUND_NOW)),
    (COMMITS, {**UNKNOWN, "reading_back": True, "confirming": True}, states.Confirming(**DOUBT)),
    (COMMITS, UNKNOWN, states.CommittingAgain(**DOUBT)),
    (COMMITS, {**UNKNOWN, "commits": 2, "reading_back": True}, states.ReadingBack(**{**DOUBT, "commits": 2})),
    (PREPARES, UNKNOWN, states.PreparingAgain(**DOUBT)),
    (ASKS, UNKNOWN, states.PreparingAgain(**DOUBT)),
    (
        COMMITS,
        {**UNKNOWN, **ROUND, "reading_back": True, "closing": "Stopped by the owner.", "stopped": True},
        states.Closing(**DOUBT, message="Stopped by the owner.", **ROUND_NOW),
    ),
    (NO_PLAN, {"look_first": True, "since": BEFORE}, states.Inherited(BEFORE)),
    (PREPARES, {"look_first": True, "since": BEFORE, "earlier": [EARLIER]}, states.Inherited(BEFORE, (EARLIER,))),
    (COMMITS, {"look_first": True, "since": BEFORE}, states.Inherited(BEFORE)),
    (
        NO_PLAN,
        {"look_first": True, "reading_back": True, "confirming": True, "since": BEFORE},
        states.ConfirmingInherited(BEFORE),
    ),
    (COMMITS, {**UNKNOWN, "look_first": True, "reading_back": True}, states.ReadingBack(**DOUBT)),
    (COMMITS, {**UNKNOWN, "look_first": True}, states.CommittingAgain(**DOUBT)),
    (
        SETTLES,
        {"look_first": True, "since": BEFORE},
        states.ProcessingInherited(BEFORE, "the installation that the backup was made of may have published it"),
    ),
    (
        NO_PLAN,
        {**RESTORED, **ROUND, "reading_back": True, "earlier": [EARLIER]},
        states.ReadingBackInherited(BEFORE, (EARLIER,), RESTORED["unknown"], **ROUND_NOW),  # type: ignore[arg-type]
    ),
    (
        COMMITS,
        {**RESTORED, "commits": 1, "reading_back": True, "closing": "Late."},
        states.ReadingBackInherited(BEFORE, (), RESTORED["unknown"], 1, "Late."),  # type: ignore[arg-type]
    ),
    (SETTLES, RESTORED, states.ProcessingInherited(BEFORE, RESTORED["unknown"])),  # type: ignore[arg-type]
    (SETTLES, {"restored": True}, states.ProcessingInherited()),
    (NO_PLAN, {"waits_for_owner": True}, WaitingForReconnect(states.Preparing())),
    (COMMITS, {"waits_for_owner": True, "reconnected_at": AT}, WaitingForReconnect(states.Committing())),
    (
        COMMITS,
        {**UNKNOWN, "reading_back": True, "waits_for_owner": True},
        WaitingForReconnect(states.ReadingBack(**DOUBT)),
    ),
    (
        NO_PLAN,
        {"look_first": True, "since": BEFORE, "earlier": [EARLIER], "waits_for_owner": True},
        WaitingForReconnect(states.Inherited(BEFORE, (EARLIER,))),
    ),
]


@pytest.fixture
def upgraded(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    """An upgraded appliance with a delivery for each combination of flags, and one ended delivery."""
    with former_version(tmp_path, clock, "00[01]*_*.py", "002[0-4]_*.py") as before:
        database = before.settings.database_file
    with sqlite3.connect(database) as rows:
        rows.execute(
            "INSERT INTO post (id, status, created_at, updated_at, audience_id) VALUES ('p', 'pending', ?, ?, 1)",
            (AT, AT),
        )
        for number, (step, flags, _) in enumerate([*FORMER, (SETTLES, UNKNOWN, states.Preparing())]):
            rows.execute(
                """INSERT INTO delivery (id, post_id, position, profile_id, provider, profile_name, account_id, state,
                    options, due_at, run_at, content_key, plan, step, progress, committed_at)
                    VALUES (?, 'p', ?, 'a', 'x', 'n', 'a', ?, '{}', ?, ?, '', ?, ?, ?, ?)""",
                (
                    f"d{number}", number, "queued" if number < len(FORMER) else "published", AT, AT,
                    None if step is None else json.dumps(PLAN), step or 0, json.dumps(flags),
                    AT if flags.get("reading_back") else None,
                ),
            )  # fmt: skip
    rows.close()
    now = open_appliance(tmp_path, clock)
    yield now
    now.close()


def test_every_combination_of_flags_becomes_the_phase_with_the_same_next_action(upgraded: Runtime) -> None:
    for number, (step, flags, phase) in enumerate(FORMER):
        delivery = delivery_rows.find(upgraded.reader, f"d{number}")
        assert delivery is not None
        assert delivery.progress.phase == phase, (step, flags)
        kept = {name: flags[name] for name in ("tries", "stopped", "reconnected_at", "again") if name in flags}
        assert {name: getattr(delivery.progress, name) for name in kept} == kept
        assert delivery.past_commit or not delivery.unknown_calls


def test_ended_deliveries_do_not_change(upgraded: Runtime) -> None:
    delivery = delivery_rows.find(upgraded.reader, f"d{len(FORMER)}")
    assert delivery is not None and delivery.phase == states.Preparing()


def test_the_queue_knows_what_each_phase_waits_on(upgraded: Runtime) -> None:
    for row in upgraded.reader.all("SELECT id, phase, next_scope, waits_on FROM delivery WHERE state = 'queued'"):
        delivery = delivery_rows.find(upgraded.reader, row["id"])
        assert delivery is not None
        assert row["phase"] == delivery.phase.name
        assert row["next_scope"] == ("questions" if delivery.asks else delivery.step_name)
        assert row["waits_on"].lstrip("+") == ("" if ends_without_a_call(delivery) else delivery.step_name)


def ends_without_a_call(delivery: Any) -> bool:
    return bool(delivery.progress.stopped and not delivery.asks)
