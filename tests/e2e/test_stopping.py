"""A stop breaks no request, answers waiting callers, and leaves open calls to recovery."""

import json
import os
import pty
import signal
import sys
from collections import Counter
from contextlib import closing

import pytest

from tests.e2e.caller import Caller
from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.load import Load
from tests.e2e.processes import lives, until

CONNECTIONS = 12
WARM = 60


def test_a_restart_under_load_breaks_no_kept_connection(make_installation: MakeInstallation) -> None:
    # Every one of them has asked again long before its connection is given up as idle, however busy the machine is.
    installation = make_installation(idle_grace_seconds=60)
    installation.sandbox()
    serve = installation.start("serve")
    with closing(Caller(installation.url, installation.key)) as caller:
        post = caller.publish("Read again and again", installation.profiles[0])
    validate = json.dumps({"post": {"body": "Is this right?"}, "profiles": [installation.profiles[0]]}).encode()
    reserve = json.dumps({"fileName": "a.png", "mimeType": "image/png", "fileSize": 1}).encode()
    requests: list[tuple[str, str, bytes | None]] = [
        ("GET", f"/api/v1/posts/{post}", None),
        ("POST", "/api/v1/posts/validate", validate),
        ("GET", "/api/v1/posts", None),
        ("POST", "/api/v1/uploads", reserve),
        ("GET", "/api/v1/nowhere", None),
    ]
    load = [Load(installation.url, installation.key, number, requests) for number in range(CONNECTIONS)]
    for one in load:
        one.start()

    def answers() -> int:
        return sum(one.answered.total() for one in load)

    until(lambda: answers() > WARM, "the load runs")
    (worker,) = serve.children()
    assert serve.stop() == 0
    assert not lives(worker)
    before = answers()
    installation.start("serve")
    until(lambda: answers() > before + WARM, "the load runs again")
    for one in load:
        one.enough.set()
    for one in load:
        one.join(120)
    assert [said for one in load for said in one.broken] == []
    statuses = sum((one.answered for one in load), Counter[int]())
    assert set(statuses) <= {200, 201, 404, 503}, statuses
    assert sum(one.refused for one in load) > 0, "no connection was refused, so the load proves nothing"


def test_a_second_stop_signal_prints_no_stack_trace(installation: Installation) -> None:
    web = installation.start("web")
    os.kill(web.pid, signal.SIGINT)
    os.kill(web.pid, signal.SIGTERM)
    assert web.wait(45) == 0
    assert "Traceback" not in web.output


def test_a_worker_ends_with_a_serve_that_was_killed(installation: Installation) -> None:
    serve = installation.start("serve")
    (worker,) = serve.children()
    serve.kill()
    until(lambda: not lives(worker), "the orphan has ended")


TAKES_THE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@pytest.mark.parametrize(
    "role", ["serve", *(pytest.param(role, marks=pytest.mark.endurance) for role in ("web", "worker"))]
)
def test_a_terminal_that_is_closed_is_a_clean_stop(installation: Installation, role: str) -> None:
    ours, its = pty.openpty()
    within = [sys.executable, "-c", TAKES_THE_TERMINAL]
    process = installation.begin(role, within=within, terminal=its)
    os.close(its)
    seen = b""
    while (b"the worker is up" if role in ("serve", "worker") else b"listening") not in seen:
        seen += os.read(ours, 4096)
    if role != "worker":
        until(lambda: installation.caller().ask("GET", "/healthz").status_code == 200, "the web server is up")
    (*children,) = process.children()
    os.close(ours)
    # The shell may also send the signal. The stop still ends in order.
    os.kill(process.pid, signal.SIGHUP)
    assert process.wait(45) == 0
    assert not any(lives(child) for child in children)
