"""A network that hangs delays no other, a burst to one network uses all of its threads, and its profiles take turns."""

import threading
from contextlib import closing

import pytest

from socialpub.providers.http import Http
from socialpub.publishing.delivery import engine, resume
from socialpub.worker.queues import Queues
from socialpub.worker.tasks import Tasks
from tests.support.queue_threads import answering

WAIT_SECONDS = 30


class Hanging:
    """Deliveries that begin and do not end before `release` is set."""

    def __init__(self):
        self.release = threading.Event()
        self.begun = []
        self.threads = set()
        self._change = threading.Condition()

    def __call__(self, rt, profile_id, others_wait):
        with self._change:
            self.begun.append(profile_id)
            self.threads.add(threading.get_ident())
            self._change.notify_all()
        assert profile_id.startswith("ends") or self.release.wait(WAIT_SECONDS)
        return False

    def until(self, count):
        with self._change:
            assert self._change.wait_for(lambda: len(self.begun) >= count, WAIT_SECONDS), self.begun


@pytest.fixture
def hanging(monkeypatch):
    hanging = Hanging()
    monkeypatch.setattr(engine, "work", hanging)
    return hanging


@pytest.fixture
def queues(rt):
    """The queues of a worker, whose tasks run `engine.work`."""
    with closing(Queues(rt.settings.queue_file, rt.settings.run_dir, ["x", "pinterest"])) as queues:
        tasks = Tasks(rt, queues)
        queues.listen(deliver=tasks.deliver, run=tasks.run)
        yield queues


def test_a_burst_uses_all_threads_of_its_network_and_no_more(queues, hanging):
    with answering(queues, "x", 4):
        for number in range(20):
            queues.deliver("x", f"profile {number}")
        hanging.until(4)
        hanging.release.set()
        hanging.until(20)
    assert len(hanging.threads) == 4
    assert sorted(set(hanging.begun)) == sorted(f"profile {number}" for number in range(20))


def test_a_network_that_hangs_leaves_the_threads_of_another_free(queues, hanging):
    with answering(queues, "x", 2), answering(queues, "pinterest", 2):
        for number in range(20):
            queues.deliver("x", f"hangs {number}")
        hanging.until(2)
        queues.deliver("pinterest", "ends at once")
        hanging.until(3)
        assert hanging.begun[-1] == "ends at once"
        hanging.release.set()


def test_a_wake_up_for_a_profile_that_is_being_worked_on_counts_once(queues, hanging):
    with answering(queues, "x", 1):
        queues.deliver("x", "busy")
        hanging.until(1)
        for _ in range(100):
            queues.deliver("x", "busy")
        hanging.release.set()
        hanging.until(2)
    assert hanging.begun == ["busy", "busy"], "it may have more to do by now"


def test_a_busy_profile_goes_to_the_end_of_the_queue(queues, monkeypatch):
    left = {"long": 4, "short": 1, "other": 2}
    turns = []
    done = threading.Event()

    def one_delivery(rt, profile, others_wait):
        turns.append(f"{profile}{'' if others_wait() else ' alone'}")
        left[profile] -= 1
        if not any(left.values()):
            done.set()
        return left[profile] > 0

    monkeypatch.setattr(engine, "work", one_delivery)
    for profile in left:
        queues.deliver("x", profile)
    with answering(queues, "x", 1):
        assert done.wait(WAIT_SECONDS)
    assert turns == ["long", "short", "other", "long", "other", "long alone", "long alone"]


def test_while_paused_a_wake_up_reads_no_queue_of_a_profile(rt, queues, monkeypatch):
    ran = []
    monkeypatch.setattr(engine, "work", lambda _, profile, others: ran.append(profile))
    rt.write(resume.pause)
    queues.act("deliver", "x", "profile")
    rt.write(resume.resume)
    assert ran == []
    queues.act("deliver", "x", "profile")
    assert ran == ["profile"]


def test_a_thread_survives_an_unexpected_error(queues, monkeypatch):
    done = threading.Event()

    def work(rt, profile, others_wait):
        if profile == "bad":
            raise RuntimeError("unexpected")
        done.set()
        return False

    monkeypatch.setattr(engine, "work", work)
    with answering(queues, "x", 1):
        queues.deliver("x", "bad")
        queues.deliver("x", "good")
        assert done.wait(WAIT_SECONDS)


def test_names_that_are_looked_up_for_one_network_hold_up_no_other(monkeypatch, tmp_path):
    import socket

    let_go, stuck = threading.Event(), threading.Semaphore(0)
    look_up = socket.getaddrinfo

    def slow(host, *args, **kwargs):
        if host in ("slow.test", b"slow.test"):
            stuck.release()
            let_go.wait(WAIT_SECONDS)
            raise socket.gaierror(socket.EAI_AGAIN, "temporary")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    server = socket.create_server(("127.0.0.1", 0))
    http = Http(lookups=3)

    def answer():
        connection, _ = server.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        connection.close()

    def hangs():
        with pytest.raises(Exception, match=r"slow\.test could not be reached"):
            http.for_network("x").call("GET", "http://slow.test/")

    waiting = [threading.Thread(target=hangs) for _ in range(6)]
    try:
        for thread in (*waiting, threading.Thread(target=answer, daemon=True)):
            thread.start()
        for _ in range(3):
            assert stuck.acquire(timeout=WAIT_SECONDS)
        port = server.getsockname()[1]
        assert http.for_network("pinterest").call("GET", f"http://localhost:{port}/").status == 200
    finally:
        let_go.set()
        for thread in waiting:
            thread.join(WAIT_SECONDS)
        http.close()
        server.close()
