"""Webhooks over 1,000 deliveries: real processes, a receiver that fails, hangs and is killed, and a killed worker.

The official library of Standard Webhooks verifies every try.
"""

import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import standardwebhooks.webhooks as library

from tests.e2e.conftest import MakeInstallation
from tests.e2e.installation import Installation
from tests.e2e.processes import until

pytestmark = pytest.mark.endurance

POSTS = 230
CANCELED = 20
"""With four deliveries each, 1,000 deliveries."""
KILLS = 5
SEED = 22


class FaultyReceiver:
    """Verifies every try, and accepts most of them. It can be killed and started again at the same port."""

    def __init__(self) -> None:
        self.secret = ""
        self.tries: list[tuple[str, bytes, bool]] = []
        """The id, the body and whether the try was accepted, in order of arrival."""
        self.wrong: list[str] = []
        self.faults: Counter[str] = Counter()
        self.random = random.Random(SEED)
        self.released = threading.Event()
        self._lock = threading.Lock()
        self.port = 0
        self.start()

    def start(self) -> None:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def kill(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["content-length"]))
        with self._lock:
            fault = self.random.choices(("none", "500", "hang", "cut"), (90, 5, 1, 4))[0]
            self.faults[fault] += 1
            try:
                library.Webhook(self.secret).verify(body, dict(request.headers))
            except library.WebhookVerificationError as error:
                self.wrong.append(str(error))
            self.tries.append((request.headers["webhook-id"], body, fault == "none"))
        if fault == "hang":
            self.released.wait()
        if fault in ("none", "500"):
            request.send_response(204 if fault == "none" else 500)
            request.end_headers()
        request.close_connection = True

    @property
    def accepted(self) -> list[str]:
        with self._lock:
            return [message_id for message_id, _, accepted in self.tries if accepted]


@pytest.fixture
def receiver() -> Iterator[FaultyReceiver]:
    receiver = FaultyReceiver()
    yield receiver
    receiver.released.set()
    receiver.kill()


@pytest.fixture
def dead() -> Iterator[socket.socket]:
    """An address that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield listener


@pytest.fixture
def installation(make_installation: MakeInstallation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    installation = make_installation(deadline_seconds=2.0)

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return installation.now().astimezone(tz or UTC)

    monkeypatch.setattr(library, "datetime", Now)
    return installation


def log_of(installation: Installation) -> list[dict[str, Any]]:
    """Return the outcomes in the order of writing, as the API shows them."""
    found: list[dict[str, Any]] = []
    after = "start"
    while page := installation.caller().ask("GET", f"/api/v1/publish/logs?after={after}&limit=100").json()["data"]:
        found += page
        after = page[-1]["id"]
    return [entry for entry in found if entry["type"] != "pending"]


def test_every_event_of_1000_deliveries_arrives_in_order_and_is_signed(
    installation: Installation, receiver: FaultyReceiver, dead: socket.socket
) -> None:
    installation.sandbox()
    installation.start("web")
    worker = installation.start("worker")
    assert "webhook" not in worker.output
    installation.admin("add-webhook", f"http://127.0.0.1:{dead.getsockname()[1]}/never")
    _, receiver.secret = installation.admin("add-webhook", f"http://127.0.0.1:{receiver.port}/hook?x=1").splitlines()
    caller = installation.caller()

    later = (installation.now() + timedelta(days=2)).isoformat()
    for number in range(CANCELED):
        post = {"body": f"canceled {number}", "scheduledAt": later}
        made = caller.ask("POST", "/api/v1/posts", json={"post": post, "profiles": installation.profiles})
        assert made.status_code == 201, made.text
        caller.ask("POST", f"/api/v1/posts/{made.json()['data']['id']}/cancel")
    for number in range(POSTS):
        caller.publish(f"post {number}", *installation.profiles)
        if number % (POSTS // KILLS) == POSTS // KILLS - 1:
            seen = len(receiver.tries)
            until(lambda seen=seen: len(receiver.tries) > seen, "events arrive")  # type: ignore[misc]
            if number % 2:
                receiver.kill()
            worker.kill(children=True)
            worker = installation.start("worker")
            if number % 2:
                receiver.start()
    until(lambda: not caller.posts(status="pending"), "no receiver delays a delivery", 300)
    entries = log_of(installation)
    assert len(entries) == 4 * (POSTS + CANCELED)
    until(lambda: set(receiver.accepted) == {entry["id"] for entry in entries}, "every event is accepted", 600)

    assert receiver.wrong == []
    assert {"500", "hang", "cut"} <= receiver.faults.keys()
    place = {entry["id"]: number for number, entry in enumerate(entries)}
    tried = [place[message_id] for message_id, _, _ in receiver.tries]
    assert tried == sorted(tried), "one event at a time, in the order of writing"
    bodies: dict[str, set[bytes]] = {}
    for message_id, body, _ in receiver.tries:
        bodies.setdefault(message_id, set()).add(body)
    assert all(len(same) == 1 for same in bodies.values()), "the same event on every try"
    repeated = len(receiver.accepted) - len(entries)
    assert repeated <= KILLS, "an accepted event is sent again only after a kill"
    last = Counter(entry["postId"] for entry in entries if b'"last":true' in next(iter(bodies[entry["id"]])))
    assert set(last.values()) == {1}
    assert len(last) == POSTS + CANCELED
    print(f"{len(receiver.tries)} tries of {len(entries)} events, {repeated} repeated, faults: {dict(receiver.faults)}")
    assert worker.stop() == 0
