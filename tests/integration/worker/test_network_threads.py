"""A network that hangs delays no other, a burst to one network uses all of its threads, and its profiles take turns."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from socialpub.providers.http import Http
from socialpub.worker.process import NetworkThreads

WAIT_SECONDS = 30


class Hanging:
    """Work that begins and does not end before it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.begun: list[str] = []
        self._change = threading.Condition()

    def __call__(self, delivery_id: str, _others_wait: Callable[[], bool]) -> bool:
        with self._change:
            self.begun.append(delivery_id)
            self._change.notify_all()
        assert self.let_go.wait(WAIT_SECONDS)
        return False

    def until(self, count: int) -> None:
        with self._change:
            assert self._change.wait_for(lambda: len(self.begun) >= count, WAIT_SECONDS), self.begun


@pytest.fixture
def hanging() -> Hanging:
    return Hanging()


def ended(threads: NetworkThreads) -> bool:
    import time

    threads.stop()
    threads.join(time.monotonic() + WAIT_SECONDS)
    return not any(thread.is_alive() for thread in threads._threads)


def test_a_burst_uses_all_threads_of_its_network_and_no_more(hanging: Hanging) -> None:
    threads = NetworkThreads("x", 4, hanging)
    for number in range(20):
        threads.put(f"profile {number}", f"delivery {number}")
    hanging.until(4)
    assert len(threads._threads) == 4
    hanging.let_go.set()
    hanging.until(20)
    assert sorted(set(hanging.begun)) == sorted(f"delivery {number}" for number in range(20))
    assert ended(threads)


def test_a_network_that_hangs_leaves_the_threads_of_another_free(hanging: Hanging) -> None:
    done = threading.Event()

    def publishes(_delivery_id: str, _others_wait: Callable[[], bool]) -> bool:
        done.set()
        return False

    x, pinterest = NetworkThreads("x", 2, hanging), NetworkThreads("pinterest", 2, publishes)
    for number in range(20):
        x.put(f"profile {number}", f"hangs {number}")
    hanging.until(2)
    pinterest.put("its profile", "a pin")
    assert done.wait(WAIT_SECONDS)
    hanging.let_go.set()
    assert ended(x)
    assert ended(pinterest)


def test_a_profile_waits_once_however_often_it_is_woken(hanging: Hanging) -> None:
    threads = NetworkThreads("x", 1, hanging)
    threads.put("busy", "first")
    hanging.until(1)
    for number in range(1000):
        threads.put("other", f"{number}")
    assert list(threads._line.items()) == [("other", "0")]
    hanging.let_go.set()
    hanging.until(2)
    assert ended(threads)
    assert hanging.begun == ["first", "0"]


def test_a_wake_up_for_a_profile_that_is_being_worked_on_is_answered_once_and_by_no_second_thread(
    hanging: Hanging,
) -> None:
    threads = NetworkThreads("x", 4, hanging)
    threads.put("busy", "first")
    hanging.until(1)
    for number in range(1000):
        threads.put("busy", f"{number}")
    assert (list(threads._line), threads._at_work) == ([], {"busy": "999"})
    hanging.let_go.set()
    hanging.until(2)
    assert ended(threads)
    assert hanging.begun == ["first", "999"], "it may have more to do by now"


def test_a_profile_with_much_to_do_goes_to_the_end_of_the_line() -> None:
    left = {"long": 4, "short": 1, "other": 2}
    turns: list[str] = []
    all_in_line, done = threading.Event(), threading.Event()

    def one_delivery(profile: str, others_wait: Callable[[], bool]) -> bool:
        assert all_in_line.wait(WAIT_SECONDS)
        turns.append(f"{profile}{'' if others_wait() else ' alone'}")
        left[profile] -= 1
        if not any(left.values()):
            done.set()
        return left[profile] > 0

    threads = NetworkThreads("x", 1, one_delivery)
    for profile in left:
        threads.put(profile, profile)
    all_in_line.set()
    assert done.wait(WAIT_SECONDS)
    assert ended(threads)
    assert turns == ["long", "short", "other", "long", "other", "long alone", "long alone"]


def test_an_idle_network_has_no_threads_and_a_thread_that_is_free_is_used_again(hanging: Hanging) -> None:
    hanging.let_go.set()
    threads = NetworkThreads("x", 8, hanging)
    assert threads._threads == []
    for number in range(50):
        threads.put(f"profile {number}", f"delivery {number}")
        hanging.until(number + 1)
    assert len(threads._threads) <= 2
    assert ended(threads)


def test_a_thread_outlives_an_error_that_nobody_foresaw() -> None:
    done = threading.Event()

    def work(delivery_id: str, _others_wait: Callable[[], bool]) -> bool:
        if delivery_id == "bad":
            raise RuntimeError("nobody foresaw it")
        done.set()
        return False

    threads = NetworkThreads("x", 1, work)
    threads.put("one", "bad")
    threads.put("another", "good")
    assert done.wait(WAIT_SECONDS)
    assert ended(threads)


def test_names_that_are_looked_up_for_one_network_hold_up_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import socket

    let_go, stuck = threading.Event(), threading.Semaphore(0)
    look_up = socket.getaddrinfo

    def slow(host: str, *args: object, **kwargs: object) -> object:
        if host in ("slow.test", b"slow.test"):
            stuck.release()
            let_go.wait(WAIT_SECONDS)
            raise socket.gaierror(socket.EAI_AGAIN, "temporary")
        return look_up(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    server = socket.create_server(("127.0.0.1", 0))
    http = Http(lookups=3)

    def answer() -> None:
        connection, _ = server.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        connection.close()

    def hangs() -> None:
        with pytest.raises(Exception, match=r"slow\.test could not be reached"):
            http.of("x").call("GET", "http://slow.test/")

    waiting = [threading.Thread(target=hangs) for _ in range(6)]
    try:
        for thread in (*waiting, threading.Thread(target=answer, daemon=True)):
            thread.start()
        for _ in range(3):
            assert stuck.acquire(timeout=WAIT_SECONDS)
        port = server.getsockname()[1]
        assert http.of("pinterest").call("GET", f"http://localhost:{port}/").status == 200
    finally:
        let_go.set()
        for thread in waiting:
            thread.join(WAIT_SECONDS)
        http.close()
        server.close()
