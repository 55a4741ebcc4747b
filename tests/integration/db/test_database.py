"""The database file: connections, free pages, and the write-ahead log."""

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.db import appliance_state, database
from socialpub.db.queries import api_json
from socialpub.ops import storage
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.appliance import accept, add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact
from tests.support.select import select_value


def test_a_reader_sees_signed_addresses_and_a_write_the_storage_key(rt, tmp_path):
    photo = artifact(rt, media.png(tmp_path / "a.png"), "image/png")
    post = accept(rt, add_profile(rt), media=(DraftMedia(photo),))
    storage_key = select_value(rt.db, "SELECT storage_key FROM artifact")

    assert url_in(rt.write(lambda _, tx: api_json.post(tx, post))) == storage_key
    seen = [url_in(api_json.post(rt.db, post))]
    thread = threading.Thread(target=lambda: seen.append(url_in(api_json.post(rt.db, post))))
    thread.start()
    thread.join()
    assert len(seen) == 2
    assert all(f"/storage/media/{storage_key}?expires=" in url for url in seen)


def url_in(shown: bytes | None) -> str:
    assert shown is not None
    return str(json.loads(shown)["media"][0]["url"])


def test_a_thread_that_has_ended_leaves_no_connection_behind(rt):
    select_value(rt.db, "SELECT 1")
    before = len(rt.db._connections)
    for _ in range(20):
        thread = threading.Thread(target=lambda: select_value(rt.db, "SELECT 1"))
        thread.start()
        thread.join()
    assert len(rt.db._connections) - before <= 1


def fill_and_empty(rt: Runtime, megabytes: int = 8) -> None:
    into = "INSERT INTO trail (at, actor, action, detail) VALUES (?, 'command', 'backup.made', ?)"
    rt.db.write(lambda tx: tx.connection().executemany(into, [(tx.stamp, "x" * 10_000)] * (100 * megabytes)))
    rt.db.write(lambda tx: tx.execute_sql("DELETE FROM trail"))


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MANY_FREE_BYTES", 1 << 20)


def test_a_new_database_shrinks_in_small_steps(rt):
    before = database.read_pages(rt.db)
    fill_and_empty(rt)
    filled = database.read_pages(rt.db)
    assert filled.many_free
    steps = -(-(filled.free_bytes - (1 << 20)) // (database.STEP_PAGES * 4096))
    assert storage.release_free_pages(rt) in (steps, steps + 1)
    after = database.read_pages(rt.db)
    assert not after.many_free
    assert after.size_bytes <= before.size_bytes + (1 << 20)
    assert storage.release_free_pages(rt) == 0


def test_few_free_pages_stay_for_new_rows(rt, monkeypatch):
    monkeypatch.setattr(database, "MANY_FREE_BYTES", 1 << 30)
    fill_and_empty(rt, 2)
    assert storage.release_free_pages(rt) == 0


MB = 1_000_000
USUAL = database._PRAGMAS["wal_autocheckpoint"] * 4096
"""The size at which the log restarts."""


def open_replicated(folder: Path, clock: HandClock) -> Runtime:
    (folder / "data" / ".socialpub.db-litestream").mkdir(parents=True)
    return open_appliance(folder, clock)


@pytest.fixture
def replicated(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    folder = tmp_path / "replicated"
    rt = open_replicated(folder, clock)
    yield rt
    rt.close()


def write(rt: Runtime, megabytes: int) -> None:
    for number in range(megabytes):
        rt.db.write(lambda tx, number=number: appliance_state.put(tx, "story", str(number % 10) * MB))


def log_of(rt: Runtime) -> Path:
    return rt.db.path.with_name(f"{rt.db.path.name}-wal")


def log_bytes(rt: Runtime) -> int:
    return log_of(rt).stat().st_size


def round_of(rt: Runtime) -> bytes:
    """The salt in the header of the log, which changes when the log restarts."""
    with log_of(rt).open("rb") as file:
        return file.read(24)[16:]


def test_a_long_reader_lets_the_log_grow_until_the_reader_ends(tmp_path, clock, monkeypatch):
    limit = 8 * MB
    monkeypatch.setitem(database._PRAGMAS, "journal_size_limit", limit)
    (tmp_path / "small").mkdir()
    rt = open_appliance(tmp_path / "small", clock)
    try:
        with closing(sqlite3.connect(rt.db.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM appliance").fetchone()
            write(rt, 20)
            assert log_bytes(rt) > 20 * MB
        write(rt, 6)
        assert log_bytes(rt) <= limit
    finally:
        rt.close()


def test_a_replica_always_finds_all_changes_in_the_log(rt, replicated):
    for one, is_kept in ((rt, False), (replicated, True)):
        write(one, 1)
        before = round_of(one)
        write(one, 2 * USUAL // MB)
        assert (round_of(one) == before) is is_kept


def test_a_missing_replica_does_not_fill_the_disk(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(database, "REPLICATED_LOG_PAGES", 2000)
    rt = open_replicated(tmp_path / "alone", clock)
    try:
        write(rt, 30)
        assert 8 * MB < log_bytes(rt) < 12 * MB
    finally:
        rt.close()


def test_writes_go_on_while_a_replica_holds_its_lock_and_empties_the_log(replicated):
    """Litestream has a read transaction nearly always, and forces checkpoints."""
    enough, emptied = threading.Event(), []

    def replicate() -> None:
        with (
            closing(sqlite3.connect(replicated.db.path, isolation_level=None, timeout=5)) as lock,
            closing(sqlite3.connect(replicated.db.path, isolation_level=None, timeout=5)) as own,
        ):
            while not enough.is_set():
                lock.execute("BEGIN")
                lock.execute("SELECT count(*) FROM appliance").fetchone()
                own.execute("PRAGMA wal_checkpoint(PASSIVE)")
                lock.execute("ROLLBACK")
                busy, _, _ = own.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                emptied.append(not busy)

    replica = threading.Thread(target=replicate)
    replica.start()
    try:
        write(replicated, 20)
    finally:
        enough.set()
        replica.join()
    assert any(emptied)
    assert select_value(replicated.db, "SELECT value FROM appliance WHERE name = 'story'") == "9" * MB
    assert log_bytes(replicated) < 20 * MB
