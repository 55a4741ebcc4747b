"""Strangers who connect and do not behave: the process stays as small as it was, and everybody else is answered.

Nobody waits for a limit of time here: while these connections last is when they could do harm.
"""

import contextlib
import os
import resource
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.samples import media

MIB = 1 << 20
MOST_ADDED_BYTES = 24 * MIB
MOST_TIMES_SLOWER = 10.0
"""A request among them, against a calm one. Each takes a few milliseconds; what is starved takes seconds."""
QUESTIONS = 40


@pytest.fixture
def installation(make_installation: MakeInstallation) -> Installation:
    return make_installation(pace=0)


@pytest.fixture
def web(installation: Installation) -> Process:
    """Started with the soft limit of descriptors that most systems give."""
    process = installation.begin("web", within=("sh", "-c", 'ulimit -Sn 1024; exec "$@"', "sh"))
    installation.wait_until_up(process, "web")
    return process


@pytest.fixture
def strangers(installation: Installation, web: Process) -> Iterator[Callable[[int], list[socket.socket]]]:
    """So many connections that say nothing yet, and take little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address = urlsplit(installation.url)
    with contextlib.ExitStack() as stack:

        def connect(count: int) -> list[socket.socket]:
            found = []
            for _ in range(count):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.connect((address.hostname, address.port))
                found.append(one)
            return found

        yield connect
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def pace(caller: Caller) -> float:
    """How long a request takes, in seconds: the median of some."""

    def ask() -> float:
        began = time.perf_counter()
        assert caller.ask("GET", "/api/v1/posts").status_code == 200
        return time.perf_counter() - began

    return statistics.median(ask() for _ in range(QUESTIONS))


def check(installation: Installation, web: Process, calm: float, before: int) -> None:
    """Somebody who comes now is served as before, and memory is what it was."""
    assert pace(installation.fresh_caller()) < calm * MOST_TIMES_SLOWER
    assert web.peak_bytes() - before < MOST_ADDED_BYTES
    assert web.running


def settled(installation: Installation, web: Process) -> tuple[float, int]:
    """A calm request's time, and the memory of a process that has answered some."""
    pace(installation.caller())
    calm = pace(installation.caller())
    web.forget_peak()
    return calm, web.peak_bytes()


def test_silent_connections_cost_little_and_shut_nobody_out(
    installation: Installation, web: Process, strangers: Callable[[int], list[socket.socket]]
) -> None:
    calm, before = settled(installation, web)
    silent = strangers(1100)
    for one in silent[:500]:
        one.sendall(b"GET /api/v1/posts HTTP/1.1\r\nhost: x\r\nx-slow: ")
    check(installation, web, calm, before)


def test_a_header_of_200_mib_is_refused_before_it_takes_room(
    installation: Installation, web: Process, strangers: Callable[[int], list[socket.socket]]
) -> None:
    calm, before = settled(installation, web)
    (stranger,) = strangers(1)
    sent = 0
    with contextlib.suppress(ConnectionError):
        stranger.sendall(b"GET / HTTP/1.1\r\nhost: x\r\nx-large: ")
        while sent < 200 * MIB:
            sent += stranger.send(b"v" * MIB)
    assert sent < 200 * MIB
    check(installation, web, calm, before)
    until(lambda: "the head of a request was too large" in web.output, "the log says so")


def test_readers_that_never_read_cost_little_and_shut_nobody_out(
    installation: Installation, web: Process, strangers: Callable[[int], list[socket.socket]], tmp_path: Path
) -> None:
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    artifact_id = installation.caller().upload(png, "a.png", "image/png")
    (stored,) = installation.data.glob(f"media/**/{artifact_id}*")
    os.truncate(stored, 150 * MIB)
    post = installation.caller().ask(
        "POST",
        "/api/v1/posts",
        json={
            "post": {"body": "Hello", "scheduledAt": "2100-01-01T00:00:00Z"},
            "profiles": installation.profiles[:1],
            "media": [{"artifactId": artifact_id}],
        },
    )
    address = urlsplit(post.json()["data"]["media"][0]["url"])
    calm, before = settled(installation, web)
    for one in strangers(60):
        one.sendall(f"GET {address.path}?{address.query} HTTP/1.1\r\nhost: x\r\n\r\n".encode() * 20)
    check(installation, web, calm, before)
