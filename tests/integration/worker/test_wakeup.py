"""Wake-ups: the queue file has ids and nothing else, and every wake-up is answered."""

import pickle
import queue
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.clock import new_id
from socialpub.db.states import State
from socialpub.worker.tasks import NetworkQueue
from socialpub.worker.wakeup import QUEUE, HueyWakeup, QueueFile
from tests.support.appliance import accept, add_profile, state_of
from tests.support.hand_clock import START
from tests.support.queue_threads import DirectWakeup, answering

WAIT_SECONDS = 30


class Planted:
    """What runs when somebody unpickles it."""

    def __init__(self, mark):
        self._mark = mark

    def __reduce__(self):
        return Path.touch, (self._mark,)


@pytest.fixture
def queue_file(tmp_path):
    return tmp_path / "queue.db"


@pytest.fixture
def woken():
    return queue.SimpleQueue()


@pytest.fixture
def worker(tmp_path, queue_file, woken):
    wakeup = HueyWakeup(queue_file, tmp_path)
    wakeup.listen(woken.put)
    yield wakeup
    wakeup.close()


@pytest.fixture
def web(tmp_path, queue_file):
    """Another process than the worker."""
    wakeup = HueyWakeup(queue_file, tmp_path)
    yield wakeup
    wakeup.close()


def plant(queue_file, *values, queue=QUEUE):
    with closing(sqlite3.connect(queue_file)) as database, database:
        for value in values:
            database.execute("INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", (queue, value))


def rows(queue_file):
    with closing(sqlite3.connect(queue_file)) as database:
        return [row[0] for row in database.execute("SELECT data FROM task")]


def test_the_queue_file_contains_ids_and_nothing_else(web, queue_file):
    wanted = new_id(START)
    web.notify(wanted)
    web.close()
    assert rows(queue_file) == [wanted.encode()]


def test_a_planted_pickle_is_never_unpickled(worker, web, queue_file, tmp_path, woken):
    mark, wanted = tmp_path / "mark", new_id(START)
    plant(queue_file, pickle.dumps(Planted(mark)), b"", b"[1]", b"{}", b'{"delivery": 1}', 5, "text", b"\xff\x80")
    plant(queue_file, b"../../etc/passwd", b"[" * 100_000, queue="socialpub")
    web.notify(wanted)
    assert woken.get(timeout=WAIT_SECONDS) == wanted
    assert rows(queue_file) == []
    assert not mark.exists()


def test_the_worker_starts_with_an_empty_queue_file(web, queue_file, tmp_path, woken):
    """Its reconciler wakes it for everything that is due, and former versions pickled their wake-ups."""
    mark = tmp_path / "mark"
    plant(queue_file, pickle.dumps(Planted(mark)), new_id(START).encode(), queue="socialpub")
    worker = HueyWakeup(queue_file, tmp_path)
    worker.listen(woken.put)
    worker.close()
    assert rows(queue_file) == []
    assert woken.empty()
    assert not mark.exists()


def test_a_burst_of_wake_ups_is_read_in_order_and_in_a_few_transactions(queue_file):
    wanted = [new_id(START) for _ in range(700)]
    file = QueueFile(queue_file)
    file.add(wanted)
    first, more = file.take()
    assert more
    rest, more = file.take()
    assert (first + rest, more) == (wanted, False)
    file.close()


# --- threads ---------------------------------------------------------------------------------------------------------


def test_no_wake_up_is_lost(rt, network, clock):
    """No reconciler: only the wake-ups, sent after each acceptance, from many threads."""
    queue = NetworkQueue(rt, "x")
    rt.wakeup = DirectWakeup(rt, queue)
    profiles = [add_profile(rt, account_id=str(n)) for n in range(6)]
    made = []

    def accepts(profile):
        made.extend(accept(rt, profile, body=f"{profile} {number}") for number in range(15))

    with answering(queue, 4):
        workers = [threading.Thread(target=accepts, args=(profile,)) for profile in profiles]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        until = time.monotonic() + 20
        while time.monotonic() < until and not all(state_of(rt, post).final for post in made):
            time.sleep(0.05)
    stuck = [post for post in made if state_of(rt, post) is not State.PUBLISHED]
    assert stuck == []
    assert len(network.effects) == 90
