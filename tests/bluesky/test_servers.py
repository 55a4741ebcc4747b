"""Servers that are down, slow, limited or hostile."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from socialpub.core.errors import OperatorError
from socialpub.db.states import State
from tests.bluesky.front import Answer, answering, changing
from tests.bluesky.servers import BlueskyServer, RealServer, StandIn
from tests.bluesky.stories import CREATE_SESSION, HOUR, FollowedClock, Story


@pytest.fixture
def second_server(server: BlueskyServer, clock: FollowedClock) -> Iterator[BlueskyServer]:
    """Another server of the same kind."""
    other = StandIn(clock) if isinstance(server, StandIn) else RealServer(clock.now())
    yield other
    other.close()


def test_each_account_is_served_by_its_own_server_and_no_token_reaches_the_other(
    tmp_path, server, second_server, clock
):
    story = Story(tmp_path, clock, server, private_servers=["localhost", "127.0.0.1"])
    try:
        second_server.add_account("first")  # the stand-ins number their accounts alike
        moved = second_server.add_account("bob")
        session = json.dumps(second_server.session(moved)).encode()
        assert story.profile
        # The service accepts the password and names the account's own server, as Bluesky's entryway does.
        story.front.next(CREATE_SESSION, answering(200, session, {"content-type": "application/json"}))
        profile = story.connect(moved)
        ours, theirs = story.accept("Ours"), story.accept("Theirs", profile=profile)
        story.drain(HOUR)
        assert story.texts() == ["Ours"], story.attempts(ours)
        assert [one.value["text"] for one in second_server.records(moved)] == ["Theirs"]
        assert {story.outcome(post)[0] for post in (ours, theirs)} == {State.PUBLISHED}
    finally:
        story.close()
    first, second = ({call.token for call in one.front.calls} - {""} for one in (server, second_server))
    assert first
    assert second
    assert not first & second


class Trap(HTTPServer):
    """A private server that notes every request."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        super().__init__(("127.0.0.1", 0), _Noting)


class _Noting(BaseHTTPRequestHandler):
    server: Trap

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


@pytest.fixture
def trap() -> Iterator[Trap]:
    trap = Trap()
    thread = threading.Thread(target=trap.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield trap
    trap.shutdown()
    thread.join()
    trap.server_close()


@pytest.mark.parametrize("address", ["http://127.0.0.1:{}", "https://127.0.0.1:{}", "http://[::ffff:127.0.0.1]:{}"])
def test_a_session_that_names_a_private_server_is_refused_without_a_request_there(story, trap, address):
    def lie(answer: Answer) -> Answer:
        session = json.loads(answer.body)
        session["didDoc"]["service"][0]["serviceEndpoint"] = address.format(trap.server_port)
        return Answer(200, json.dumps(session).encode(), {"content-type": "application/json"})

    story.front.next(CREATE_SESSION, changing(lie))
    with pytest.raises(OperatorError):
        story.connect(story.account)
    assert trap.paths == []
    assert story.profile_row() is None


def test_a_redirect_is_not_followed(story, trap):
    target = f"http://127.0.0.1:{trap.server_port}/xrpc/{CREATE_SESSION}"
    story.front.next(CREATE_SESSION, answering(307, b"", {"location": target}))
    with pytest.raises(OperatorError):
        story.connect(story.account)
    assert trap.paths == []
