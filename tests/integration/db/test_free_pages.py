"""What was removed is given back to the disk: in small steps, or all at once when the owner says so."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.errors import OperatorError
from socialpub.db import database
from socialpub.db.locks import ProcessLock
from socialpub.ops import storage
from socialpub.runtime import Runtime
from tests.support.appliance import accept, open_appliance, status_of
from tests.support.hand_clock import HandClock


def fill_and_empty(rt: Runtime, megabytes: int = 8) -> None:
    """Much was stored, and removed."""
    into = "INSERT INTO trail (at, actor, action, detail) VALUES (?, 'command', 'copy.made', ?)"
    rt.db.write(lambda tx: tx.many(into, [(tx.stamp, "x" * 10_000)] * (100 * megabytes)))
    rt.db.write(lambda tx: tx.execute("DELETE FROM trail"))


@pytest.fixture(autouse=True)
def _little_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MANY_FREE_BYTES", 1 << 20)


def test_a_new_database_shrinks_in_small_steps(rt: Runtime) -> None:
    before = database.read_pages(rt.reader)
    fill_and_empty(rt)
    filled = database.read_pages(rt.reader)
    assert filled.in_steps
    assert filled.many_free
    steps = -(-(filled.free_bytes - (1 << 20)) // (database.STEP_PAGES * 4096))
    assert storage.give_back(rt) in (steps, steps + 1)
    after = database.read_pages(rt.reader)
    assert not after.many_free
    assert after.size_bytes <= before.size_bytes + (1 << 20)
    assert storage.give_back(rt) == 0


def test_little_that_is_free_stays_for_what_comes_next(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MANY_FREE_BYTES", 1 << 30)
    fill_and_empty(rt, 2)
    assert storage.give_back(rt) == 0


@pytest.fixture
def old_database(tmp_path: Path, clock: HandClock) -> Runtime:
    """Made by a version that did not know of it."""
    (tmp_path / "old").mkdir()
    rt = open_appliance(tmp_path / "old", clock)
    rt.close()
    with closing(sqlite3.connect(rt.settings.database_file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = delete")
        connection.execute("PRAGMA auto_vacuum = none")
        connection.execute("VACUUM")
    return open_appliance(tmp_path / "old", clock)


def test_an_old_one_is_written_anew_once_and_shrinks_by_itself_then(old_database: Runtime) -> None:
    rt = old_database
    from tests.support.appliance import add_profile

    post = accept(rt, add_profile(rt))
    fill_and_empty(rt)
    assert not database.read_pages(rt.reader).in_steps
    assert storage.give_back(rt) == 0
    (found,) = storage.check_database_file(rt)
    assert "socialpub admin compact" in str(found.remedy)
    done = storage.compact(rt)
    assert done.before_bytes > 8_000_000 > done.after_bytes
    assert rt.settings.database_file.stat().st_size == done.after_bytes
    assert list(storage.check_database_file(rt)) == []
    assert database.read_pages(rt.reader).in_steps
    assert status_of(rt, post) == "pending"
    assert rt.reader.value("PRAGMA integrity_check") == "ok"
    fill_and_empty(rt)
    assert storage.give_back(rt) > 0
    rt.close()


def test_nothing_is_written_anew_under_a_process_that_works(rt: Runtime) -> None:
    other = ProcessLock(rt.settings.run_dir / "owners", "worker-1")
    with pytest.raises(OperatorError) as refused:
        storage.compact(rt)
    assert "worker-1" in refused.value.message
    assert refused.value.hint == "Stop `socialpub serve`, run `socialpub admin compact`, and start it again."
    other.close()


def test_nothing_is_written_anew_without_room_for_it(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rt.files), "free_bytes", lambda _: int(rt.settings.health.disk_floor_bytes) + 1000)
    with pytest.raises(OperatorError, match="beside what is kept free"):
        storage.compact(rt)
