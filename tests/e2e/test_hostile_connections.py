"""Strangers who connect and do not behave: the process takes few of their bytes, and everybody else is answered.

No test waits for a timeout: connections do harm while they last. Bytes and responses are counted, because time and peak
memory depend on what else the machine does.
"""

import contextlib
import os
import resource
import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import Process, until
from tests.samples import media

MIB = 1 << 20
QUESTIONS = 40
MOST_BUFFERED = 16 * MIB
"""More than the kernel keeps of one connection, in both directions."""
MOST_OF_ONE_ADDRESS = 64
MOST_CONNECTIONS = 4096

Connect = Callable[..., list[socket.socket]]


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
    """Open a number of idle connections with small buffers."""
    assert web.running
    with connecting(installation) as connect:
        yield connect


@contextlib.contextmanager
def connecting(installation: Installation) -> Iterator[Connect]:
    """Makes connections from an address of this machine, and closes them at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    server = urlsplit(installation.url)
    with contextlib.ExitStack() as stack:

        def connect(count: int, address: str = "127.0.0.1") -> list[socket.socket]:
            found = []
            for _ in range(count):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.settimeout(60)
                one.bind((address, 0))
                one.connect((server.hostname, server.port))
                found.append(one)
            return found

        yield connect
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def check(installation: Installation, web: Process) -> None:
    """Somebody who comes now is served."""
    caller = installation.fresh_caller()
    for _ in range(QUESTIONS):
        assert caller.ask("GET", "/api/v1/posts").status_code == 200
    assert web.running


def test_of_a_file_for_clients_that_never_read_few_bytes_are_read_and_no_caller_is_blocked(
    installation, web, strangers, tmp_path
):
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
    before = web.read_bytes()
    for one in strangers(60):
        one.sendall(f"GET {address.path}?{address.query} HTTP/1.1\r\nhost: x\r\n\r\n".encode() * 20)
    check(installation, web)
    assert web.read_bytes() - before < 60 * MOST_BUFFERED, "of 60 times 150 MiB"


def are_open(connections: list[socket.socket]) -> list[socket.socket]:
    """Those that the server has not closed."""
    found = []
    for one in connections:
        one.setblocking(False)
        with contextlib.suppress(ConnectionError):
            try:
                while one.recv(65536):
                    pass
            except BlockingIOError:
                found.append(one)
    return found


def is_answered(one: socket.socket) -> bool:
    """Whether a refusal has come. It stays to be read."""
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionError):
        return one.recv(10, socket.MSG_PEEK).startswith(b"HTTP/1.1 4")
    return False


def begin_body(one: socket.socket, path: str, body: bytes) -> None:
    """Send a request whose body lacks its last byte. The server may refuse it meanwhile."""
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n"
    one.settimeout(10)
    with contextlib.suppress(OSError):
        one.sendall(f"{head}content-length: {len(body) + 1}\r\n\r\n".encode() + body)


def test_600_unfinished_bodies_and_4100_connections_do_not_stop_a_caller_from_publishing(installation):
    installation.sandbox()
    web = installation.start("serve")
    caller = installation.caller()
    published: list[str] = []

    def publish() -> None:
        """By a connection that is kept, and by a new one, which has to find room first."""
        for one in (caller, installation.fresh_caller()):
            text = f"Post {len(published)}"
            delivery = one.delivery(one.publish(text, installation.profiles[0]))
            assert delivery["status"] == "published", delivery
            published.append(text)

    publish()
    with connecting(installation) as connect:
        bodies = [*connect(400), *(one for last in range(2, 6) for one in connect(50, f"127.0.0.{last}"))]
        for number, one in enumerate(bodies):
            path = ("/login", "/api/v1/posts", "/nowhere")[number % 3]
            begin_body(one, path, b"a" * (8000 if number % 2 else (1 << 20) - 1))
        large = bodies[::2]
        until(lambda: not are_open([one for one in large if not is_answered(one)]), "no large body is kept")
        publish()
        of_one_address = connect(2 * MOST_OF_ONE_ADDRESS, "127.0.0.9")
        until(lambda: len(are_open(of_one_address)) == MOST_OF_ONE_ADDRESS, "an address has its share")
        publish()
        silent = connect(4100)
        publish()
        assert len(are_open(silent)) <= MOST_CONNECTIONS
        publish()
        assert web.running
    assert sorted(installation.x.texts()) == sorted(published)
    assert "an IP address exceeded the connection limit" in web.output
    assert "addresses=127.0.0.9" in web.output
    assert "the longest idle connection was closed for a new connection" in web.output
