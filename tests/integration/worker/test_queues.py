"""Huey's queues: every wake-up is answered once, tasks are JSON, and the file can be replaced at any time."""

import os
import pickle
import queue
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.db.states import State
from socialpub.worker.queues import Queues
from socialpub.worker.reconciler import Reconciler
from tests.support.appliance import accept, add_profile, state_of
from tests.support.queue_threads import answering, background_tasks, listening_tasks

WAIT_SECONDS = 30


class Planted:
    """Code that runs when a reader unpickles this object."""

    def __init__(self, mark):
        self._mark = mark

    def __reduce__(self):
        return Path.touch, (self._mark,)


@pytest.fixture
def queue_file(tmp_path):
    return tmp_path / "queue.db"


@pytest.fixture
def run_dir(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def delivered():
    return queue.SimpleQueue()


@pytest.fixture
def worker(run_dir, queue_file, delivered):
    with closing(Queues(queue_file, run_dir, ["x", "pinterest"])) as queues:
        queues.listen(deliver=lambda *task: delivered.put(task), run=delivered.put)
        yield queues


@pytest.fixture
def web(run_dir, queue_file):
    """Another process than the worker."""
    with closing(Queues(queue_file, run_dir, ["x", "pinterest"])) as queues:
        yield queues


def plant(queue_file, *values, queue="x"):
    with closing(sqlite3.connect(queue_file)) as database, database:
        for value in values:
            database.execute("INSERT INTO task (queue, data, priority) VALUES (?, ?, 0)", (queue, value))


def rows(queue_file):
    with closing(sqlite3.connect(queue_file)) as database:
        return [(queue, bytes(data)) for queue, data in database.execute("SELECT queue, data FROM task ORDER BY id")]


def test_a_wake_up_of_another_process_reaches_a_thread_of_its_network(worker, web, delivered):
    with answering(worker, "x", 2):
        web.notify("x", "profile")
        assert delivered.get(timeout=WAIT_SECONDS) == ("x", "profile")


def test_a_profile_waits_once_in_the_queue_of_its_network(web, queue_file):
    for _ in range(3):
        web.deliver("x", "one")
    web.deliver("x", "other")
    web.deliver("pinterest", "one")
    web.run("retention")
    web.run("retention")
    assert [(queue, data.count(b"one"), data.count(b"retention")) for queue, data in rows(queue_file)] == [
        ("x", 2, 0), ("x", 0, 0), ("pinterest", 2, 0), ("background", 0, 2)
    ]  # fmt: skip


def test_a_planted_task_runs_no_code_and_stops_no_thread(worker, web, queue_file, tmp_path, delivered, monkeypatch):
    mark = tmp_path / "mark"
    monkeypatch.setattr("socialpub.worker.process.ERROR_SECONDS", 0.0)
    plant(queue_file, pickle.dumps(Planted(mark)), b"", b"[1]", b"{}", b'["i","os.system",null]', b"\xff\x80")
    web.notify("x", "profile")
    with answering(worker, "x", 1):
        assert delivered.get(timeout=WAIT_SECONDS) == ("x", "profile")
    assert rows(queue_file) == []
    assert not mark.exists()


def test_the_worker_starts_with_empty_queues(web, queue_file, run_dir, delivered):
    """Its reconciler enqueues everything that is due."""
    plant(queue_file, b"anything")
    web.deliver("x", "profile")
    with closing(Queues(queue_file, run_dir, ["x", "pinterest"])) as worker:
        worker.listen(deliver=lambda *task: delivered.put(task), run=delivered.put)
    assert rows(queue_file) == []
    assert delivered.empty()


def test_a_worker_that_stops_leaves_the_socket_of_its_successor(queue_file, run_dir, delivered):
    worker = Queues(queue_file, run_dir, ["x"])
    worker.listen(deliver=print, run=print)
    with closing(Queues(queue_file, run_dir, ["x"])) as successor:
        successor.listen(deliver=lambda *task: delivered.put(task), run=delivered.put)
        worker.close()
        with answering(successor, "x", 1):
            successor.notify("x", "profile")
            assert delivered.get(timeout=WAIT_SECONDS) == ("x", "profile")
    assert not (run_dir / "x.sock").exists()


def test_a_worker_gets_its_wake_ups_again_after_a_second_worker_has_stopped(
    queue_file, run_dir, delivered, monkeypatch
):
    monkeypatch.setattr("socialpub.worker.queues.FALLBACK_SECONDS", 1)
    with closing(Queues(queue_file, run_dir, ["x"])) as worker:
        worker.listen(deliver=lambda *task: delivered.put(task), run=print)
        second = Queues(queue_file, run_dir, ["x"])
        second.listen(deliver=print, run=print)
        second.close()
        with answering(worker, "x", 1):
            worker.notify("x", "first")  # without a socket, the thread finds it at the end of its wait
            assert delivered.get(timeout=WAIT_SECONDS) == ("x", "first")
        assert (run_dir / "x.sock").exists()


# --- a damaged file --------------------------------------------------------------------------------------------------


def damage(queue_file):
    for suffix in ("", "-wal", "-shm"):
        path = queue_file.with_name(queue_file.name + suffix)
        if path.exists():
            path.write_bytes(b"damaged" * 2000)


def test_a_damaged_file_is_replaced_at_start(queue_file, run_dir, delivered):
    Queues(queue_file, run_dir, ["x"]).close()
    damage(queue_file)
    with closing(Queues(queue_file, run_dir, ["x"])) as queues:
        queues.listen(deliver=lambda *task: delivered.put(task), run=delivered.put)
        with answering(queues, "x", 1):
            queues.notify("x", "profile")
            assert delivered.get(timeout=WAIT_SECONDS) == ("x", "profile")


def test_a_file_that_is_damaged_at_run_time_ends_the_worker_and_no_caller(rt, monkeypatch):
    """The start of the next worker replaces the file."""
    ended = []
    monkeypatch.setattr(os, "kill", lambda _, number: ended.append(number))
    profile = add_profile(rt)
    with background_tasks(rt) as tasks:
        queues = rt.wakeup = tasks.queues
        queues.deliver("x", profile)
        damage(rt.settings.queue_file)
        accept(rt, profile)  # its wake-up is lost
        Reconciler(rt, tasks).once()
    assert ended == [signal.SIGTERM]
    assert rt.stopping.is_set()


# --- threads ---------------------------------------------------------------------------------------------------------


def test_no_wake_up_is_lost(rt, network, clock):
    """No reconciler: only the wake-ups, sent after each acceptance, from many threads."""
    profiles = [add_profile(rt, account_id=str(n)) for n in range(6)]
    made = []

    def accepts(profile):
        made.extend(accept(rt, profile, body=f"{profile} {number}") for number in range(15))

    with listening_tasks(rt) as tasks, answering(tasks.queues, "x", 4):
        callers = [threading.Thread(target=accepts, args=(profile,)) for profile in profiles]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until and not all(state_of(rt, post).final for post in made):
            time.sleep(0.05)
    stuck = [post for post in made if state_of(rt, post) is not State.PUBLISHED]
    assert stuck == []
    assert len(network.effects) == 90
