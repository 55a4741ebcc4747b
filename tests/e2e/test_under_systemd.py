"""What systemd does to the web server and the worker, done by the test: it holds their socket, and listens to them."""

import contextlib
import fcntl
import json
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.installation import Installation
from tests.e2e.load import Load
from tests.e2e.processes import Process, until

CONNECTIONS = 6
RESTARTS = 2

TAKES_ITS_PLACE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid()), "LISTEN_FDNAMES": "socialpub-web.socket"}
os.execv(sys.argv[2], sys.argv[2:])
"""


class Held:
    """The socket of the web server, held open beyond its end."""

    def __init__(self, installation: Installation) -> None:
        address = urlsplit(installation.url)
        self._installation = installation
        self._socket = socket.create_server((address.hostname, address.port), backlog=2048)

    def begin(self, role: str) -> Process:
        within = [sys.executable, "-c", TAKES_ITS_PLACE, str(self._socket.fileno())]
        return self._installation.begin(role, within=within, handed=[self._socket.fileno()])

    def close(self) -> None:
        self._socket.close()


class Reports:
    """What the services say about themselves."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)

    def has(self, line: str) -> bool:
        with contextlib.suppress(BlockingIOError):
            while True:
                self.lines += self._socket.recv(4096).decode().splitlines()
        return line in self.lines

    def forget(self) -> None:
        self.has("")
        self.lines.clear()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[Reports]:
    heard = Reports(tmp_path / "notify")
    yield heard
    heard.close()


def test_a_restart_over_a_held_socket_refuses_no_connection(make_installation):
    # Every one of them has asked again long before its connection is given up as idle, however busy the machine is.
    installation = make_installation(idle_grace_seconds=60)
    held = Held(installation)
    web = held.begin("web")
    reserve = json.dumps({"fileName": "a.png", "mimeType": "image/png", "fileSize": 1}).encode()
    requests: list[tuple[str, str, bytes | None]] = [
        ("GET", "/api/v1/posts", None),
        ("POST", "/api/v1/uploads", reserve),
        ("GET", "/healthz", None),
    ]
    load = [Load(installation.url, installation.key, number, requests) for number in range(CONNECTIONS)]
    for one in load:
        one.start()

    def answers() -> int:
        return sum(one.answered.total() for one in load)

    for _ in range(RESTARTS):
        before = answers()
        until(lambda before=before: answers() > before + 100, "the load runs")  # type: ignore[misc]
        assert web.stop() == 0
        web = held.begin("web")
    until(lambda: answers() > before + 200, "the load runs again")
    for one in load:
        one.enough.set()
    for one in load:
        one.join(120)
    held.close()
    assert [said for one in load for said in one.broken] == []
    assert sum(one.refused for one in load) == 0
    assert set(sum((one.answered for one in load), Counter[int]())) == {200, 201}


def test_web_and_worker_report_that_they_work_until_they_hang(make_installation, reports):
    installation = make_installation(pace=0)
    installation.env |= {"NOTIFY_SOCKET": str(reports.path), "WATCHDOG_USEC": "400000"}
    for role, status in (("serve", "STATUS=Serving"), ("worker", "STATUS=Nothing is due")):
        process = installation.begin(role)
        until(lambda: reports.has("READY=1"), f"{role} is ready")
        for child in process.children():
            assert b"NOTIFY_SOCKET" not in Path(f"/proc/{child}/environ").read_bytes(), "it would speak for its parent"
        assert any(line.startswith("EXTEND_TIMEOUT_USEC=") for line in reports.lines)
        for _ in range(2):
            reports.forget()
            until(lambda: reports.has("WATCHDOG=1"), f"{role} goes on reporting")
        assert status in reports.lines
        reports.forget()
        assert process.stop() == 0
        assert reports.has("STOPPING=1")
        reports.forget()


@pytest.mark.endurance
def test_a_database_that_refuses_is_no_reason_to_be_ended(make_installation, reports):
    """The worker must keep reporting: a restart fixes nothing and makes the outcome of calls unknown."""
    installation = make_installation()
    installation.env |= {"NOTIFY_SOCKET": str(reports.path), "WATCHDOG_USEC": "400000"}
    worker = installation.start("worker")
    until(lambda: reports.has("READY=1"), "the worker is ready")
    with (installation.data / "run" / "write.lock").open("rb") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        until(lambda: "the reconciler could not finish a round" in worker.output, "a round was refused")
        reports.forget()
        until(lambda: reports.has("WATCHDOG=1"), "it goes on reporting")
    assert worker.stop() == 0
