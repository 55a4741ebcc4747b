"""The write-ahead log levels off, whoever reads for long, and is left to a replica where one reads along."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.settings.schema import DatabaseSection
from socialpub.db import appliance_state, database
from socialpub.runtime import Runtime
from tests.support.appliance import open_appliance
from tests.support.hand_clock import HandClock

MB = 1_000_000
USUAL = 1000 * 4096
"""What SQLite itself lets the log grow to before it begins anew."""


@pytest.fixture
def replicated(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    folder = tmp_path / "replicated"
    folder.mkdir()
    rt = open_appliance(folder, clock, database=DatabaseSection(replicated=True))
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
    """Changes when the log begins anew: the salt in its header."""
    with log_of(rt).open("rb") as file:
        return file.read(24)[16:]


def test_the_log_begins_anew_when_nobody_reads(rt: Runtime) -> None:
    write(rt, 20)
    assert log_bytes(rt) < 2 * USUAL


def test_a_long_reader_lets_the_log_grow_and_its_room_comes_back(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 2 * USUAL
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


def test_a_replica_finds_everything_in_the_log_whenever_it_looks(rt: Runtime, replicated: Runtime) -> None:
    """It lets go of its own lock for a moment at each of its checkpoints."""
    for one, is_kept in ((rt, False), (replicated, True)):
        write(one, 1)
        before = round_of(one)
        write(one, 12)
        assert (round_of(one) == before) is is_kept


def test_a_replica_that_is_gone_does_not_fill_the_disk(
    tmp_path: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "REPLICATED_LOG_PAGES", 2000)
    (tmp_path / "alone").mkdir()
    rt = open_appliance(tmp_path / "alone", clock, database=DatabaseSection(replicated=True))
    try:
        write(rt, 30)
        assert USUAL < log_bytes(rt) < 3 * USUAL
    finally:
        rt.close()


def test_writes_go_on_while_a_replica_holds_its_lock_and_empties_the_log(replicated: Runtime) -> None:
    """As Litestream does: a read transaction that is nearly always open, and checkpoints of its own, also hard ones."""
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
    assert replicated.reader.value("SELECT value FROM appliance WHERE name = 'story'") == "9" * MB
    assert log_bytes(replicated) < 20 * MB
