"""The queue file: ids and nothing else, whoever wrote them."""

import pickle
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socialpub.core import ids
from socialpub.worker.wakeup import QUEUE_NAME, HueyWakeup


class Planted:
    """What runs when somebody unpickles it."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self._mark,)


@pytest.fixture
def queue_file(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
def worker(tmp_path: Path, queue_file: Path) -> Iterator[HueyWakeup]:
    wakeup = HueyWakeup(queue_file, tmp_path)
    wakeup.socket.listen()
    yield wakeup
    wakeup.close()


def plant(queue_file: Path, *values: object, queue: str = QUEUE_NAME) -> None:
    with closing(sqlite3.connect(queue_file)) as database, database:
        for value in values:
            database.execute("INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", (queue, value))


def rung(queue_file: Path, folder: Path, delivery_id: str) -> None:
    """A wake-up of another process, on the disk when this returns."""
    other = HueyWakeup(queue_file, folder)
    other.ring(delivery_id)
    other.close()


def taken(worker: HueyWakeup) -> str:
    """The next wake-up as the worker's consumer takes it."""
    return str(worker.huey.dequeue().args[0])


def test_what_lies_in_the_queue_file_is_an_id(worker: HueyWakeup, queue_file: Path, tmp_path: Path) -> None:
    wanted = ids.new(1)
    rung(queue_file, tmp_path, wanted)
    with closing(sqlite3.connect(queue_file)) as database:
        assert database.execute("SELECT data FROM task").fetchall() == [(f'{{"delivery": "{wanted}"}}'.encode(),)]
    assert taken(worker) == wanted


def test_a_planted_pickle_is_never_unpickled(worker: HueyWakeup, queue_file: Path, tmp_path: Path) -> None:
    mark, wanted = tmp_path / "mark", ids.new(1)
    plant(queue_file, pickle.dumps(Planted(mark)), b"", b"[1]", b"{}", b'{"delivery": 1}', 5, "text", b"\xff\x80")
    plant(queue_file, b'{"delivery": "../../etc/passwd"}', b"[" * 100_000)
    rung(queue_file, tmp_path, wanted)
    assert taken(worker) == wanted
    assert not mark.exists()


def test_what_a_former_version_left_is_thrown_away(worker: HueyWakeup, queue_file: Path, tmp_path: Path) -> None:
    mark, wanted = tmp_path / "mark", ids.new(1)
    bad = pickle.dumps(Planted(mark))
    plant(queue_file, bad, bad, queue="socialpub")
    with closing(sqlite3.connect(queue_file)) as database, database:
        database.execute("INSERT INTO kv VALUES ('socialpub', 'r:x', ?)", (bad,))
        database.execute("INSERT INTO schedule (queue, data, timestamp) VALUES (?, ?, 0)", (QUEUE_NAME, bad))
    rung(queue_file, tmp_path, wanted)
    with closing(sqlite3.connect(queue_file)) as database:
        for table, rows in (("task", 1), ("kv", 0), ("schedule", 0)):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (rows,), table
    assert taken(worker) == wanted
    assert not mark.exists()


def test_a_burst_of_wake_ups_is_taken_out_in_a_few_transactions(
    worker: HueyWakeup, queue_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = [ids.new(number) for number in range(1000)]
    other = HueyWakeup(queue_file, tmp_path)
    for delivery_id in wanted:
        other.ring(delivery_id)
    other.close()
    storage, transactions = worker.huey.storage, 0
    db = storage.db

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal transactions
        transactions += 1
        return db(*arguments, **named)

    monkeypatch.setattr(storage, "db", counted)
    assert [taken(worker) for _ in wanted] == wanted
    assert transactions <= 10
