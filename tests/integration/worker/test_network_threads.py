"""One network that hangs starves nobody, and a burst to one network uses all of its threads."""

import threading
from pathlib import Path

import pytest

from socialpub.providers.http import Http
from socialpub.worker.network_threads import NetworkThreads

WAIT_SECONDS = 30


class Hanging:
    """Work that begins and does not end before it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.begun: list[str] = []
        self._change = threading.Condition()

    def __call__(self, delivery_id: str) -> None:
        with self._change:
            self.begun.append(delivery_id)
            self._change.notify_all()
        assert self.let_go.wait(WAIT_SECONDS)

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
        threads.put(f"delivery {number}")
    hanging.until(4)
    assert len(threads._threads) == 4
    hanging.let_go.set()
    hanging.until(20)
    assert sorted(set(hanging.begun)) == sorted(f"delivery {number}" for number in range(20))
    assert ended(threads)


def test_a_network_that_hangs_leaves_the_threads_of_another_free(hanging: Hanging) -> None:
    done = threading.Event()
    x, pinterest = NetworkThreads("x", 2, hanging), NetworkThreads("pinterest", 2, lambda _: done.set())
    for number in range(20):
        x.put(f"hangs {number}")
    hanging.until(2)
    pinterest.put("a pin")
    assert done.wait(WAIT_SECONDS)
    hanging.let_go.set()
    assert ended(x)
    assert ended(pinterest)


def test_a_wake_up_that_waits_already_is_not_put_in_twice(hanging: Hanging) -> None:
    threads = NetworkThreads("x", 1, hanging)
    threads.put("first")
    hanging.until(1)
    for _ in range(5):
        threads.put("second")
    threads.put("first")  # it may have more to do by now
    hanging.let_go.set()
    hanging.until(3)
    assert ended(threads)
    assert hanging.begun == ["first", "second", "first"]


def test_an_idle_network_has_no_threads_and_a_thread_that_is_free_is_used_again(hanging: Hanging) -> None:
    hanging.let_go.set()
    threads = NetworkThreads("x", 8, hanging)
    assert threads._threads == []
    for number in range(50):
        threads.put(f"delivery {number}")
        hanging.until(number + 1)
    assert len(threads._threads) <= 2
    assert ended(threads)


def test_a_thread_outlives_an_error_that_nobody_foresaw() -> None:
    done = threading.Event()

    def work(delivery_id: str) -> None:
        if delivery_id == "bad":
            raise RuntimeError("nobody foresaw it")
        done.set()

    threads = NetworkThreads("x", 1, work)
    threads.put("bad")
    threads.put("good")
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
