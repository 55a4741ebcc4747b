"""A network that hangs delays no other, a burst to one network uses all of its threads, and its profiles take turns."""

import threading

import pytest

from socialpub.providers.http import Http
from socialpub.publishing.delivery import engine, resume
from socialpub.worker.tasks import NetworkQueue, wake
from tests.support.appliance import accept, add_profile
from tests.support.queue_threads import answering

WAIT_SECONDS = 30


class Hanging:
    """Deliveries that begin and do not end before `release` is set."""

    def __init__(self):
        self.release = threading.Event()
        self.begun = []
        self.threads = set()
        self._change = threading.Condition()

    def __call__(self, rt, delivery_id, others_wait):
        with self._change:
            self.begun.append(delivery_id)
            self.threads.add(threading.get_ident())
            self._change.notify_all()
        assert delivery_id.startswith("ends") or self.release.wait(WAIT_SECONDS)
        return False

    def until(self, count):
        with self._change:
            assert self._change.wait_for(lambda: len(self.begun) >= count, WAIT_SECONDS), self.begun


@pytest.fixture
def hanging(monkeypatch):
    hanging = Hanging()
    monkeypatch.setattr(engine, "work", hanging)
    return hanging


def test_a_burst_uses_all_threads_of_its_network_and_no_more(rt, hanging):
    queue = NetworkQueue(rt, "x")
    with answering(queue, 4):
        for number in range(20):
            queue.put(f"profile {number}", f"delivery {number}")
        hanging.until(4)
        hanging.release.set()
        hanging.until(20)
    assert len(hanging.threads) == 4
    assert sorted(set(hanging.begun)) == sorted(f"delivery {number}" for number in range(20))


def test_a_network_that_hangs_leaves_the_threads_of_another_free(rt, hanging):
    x, pinterest = NetworkQueue(rt, "x"), NetworkQueue(rt, "pinterest")
    with answering(x, 2), answering(pinterest, 2):
        for number in range(20):
            x.put(f"profile {number}", f"hangs {number}")
        hanging.until(2)
        pinterest.put("its profile", "ends at once")
        hanging.until(3)
        assert hanging.begun[-1] == "ends at once"
        hanging.release.set()


def test_a_profile_waits_once_however_often_it_is_woken(rt, hanging):
    queue = NetworkQueue(rt, "x")
    with answering(queue, 1):
        queue.put("busy", "first")
        hanging.until(1)
        for number in range(1000):
            queue.put("other", f"{number}")
        hanging.release.set()
        hanging.until(2)
    assert hanging.begun == ["first", "0"]


def test_a_wake_up_for_a_profile_that_is_being_worked_on_counts_once(rt, hanging):
    queue = NetworkQueue(rt, "x")
    with answering(queue, 1):
        queue.put("busy", "first")
        hanging.until(1)
        for number in range(1000):
            queue.put("busy", f"{number}")
        hanging.release.set()
        hanging.until(2)
    assert hanging.begun == ["first", "0"], "it may have more to do by now"


def test_a_busy_profile_goes_to_the_end_of_the_queue(rt, monkeypatch):
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
    queue = NetworkQueue(rt, "x")
    for profile in left:
        queue.put(profile, profile)
    with answering(queue, 1):
        assert done.wait(WAIT_SECONDS)
    assert turns == ["long", "short", "other", "long", "other", "long alone", "long alone"]


def test_while_paused_a_wake_up_costs_no_thread_and_no_write(rt):
    queues = {"x": NetworkQueue(rt, "x")}
    accept(rt, add_profile(rt))
    delivery = rt.reader.value("SELECT id FROM delivery")
    rt.write(resume.pause)
    wake(rt, queues, delivery)
    assert queues["x"].huey.pending_count() == 0
    rt.write(resume.resume)
    wake(rt, queues, delivery)
    assert queues["x"].huey.pending_count() == 1


def test_a_thread_that_is_free_is_used_again(rt, hanging):
    """Each thread that has worked keeps a database connection."""
    queue = NetworkQueue(rt, "x")
    with answering(queue, 8):
        for number in range(50):
            queue.put(f"profile {number}", f"ends {number}")
            hanging.until(number + 1)
    assert len(hanging.threads) <= 3


def test_a_thread_survives_an_unexpected_error(rt, monkeypatch):
    done = threading.Event()

    def work(rt, delivery_id, others_wait):
        if delivery_id == "bad":
            raise RuntimeError("unexpected")
        done.set()
        return False

    monkeypatch.setattr(engine, "work", work)
    queue = NetworkQueue(rt, "x")
    with answering(queue, 1):
        queue.put("one", "bad")
        queue.put("another", "good")
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
