"""Bluesky's own server and its front: what the stories build on."""

import http.client
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.bluesky.front import Answer, answering, changing, drop_after, drop_before
from tests.bluesky.servers import POST, Account, RealServer
from tests.support.hand_clock import HandClock

pytestmark = pytest.mark.bluesky

PUT = "com.atproto.repo.putRecord"
RECORD = {"$type": POST, "text": "Hello", "createdAt": "2026-10-12T09:00:00.000Z"}


@pytest.fixture
def account(real_server: RealServer) -> Account:
    return real_server.add_account("alice")


class Caller:
    """Puts the same record again and again, by the front."""

    def __init__(self, server: RealServer, account: Account) -> None:
        self._server = server
        token = server.session(account)["accessJwt"]
        self._headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        body = {"repo": account.did, "collection": POST, "rkey": "3mxo5qpa7r227", "record": RECORD}
        self._body = json.dumps({**body, "swapRecord": None})

    def put(self) -> tuple[int, dict[str, Any]]:
        """Return status and body. The status is 0 without a response."""
        connection = http.client.HTTPConnection("127.0.0.1", self._server.front.port, timeout=30)
        try:
            connection.request("POST", f"/xrpc/{PUT}", self._body, self._headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read() or b"{}")
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            connection.close()


@pytest.fixture
def caller(real_server: RealServer, account: Account) -> Iterator[Caller]:
    return Caller(real_server, account)


def test_a_lost_response_leaves_the_record_and_a_lost_request_does_not(
    real_server: RealServer, account: Account, caller: Caller
) -> None:
    real_server.front.next(PUT, drop_before)
    assert caller.put() == (0, {})
    assert real_server.records(account) == []

    real_server.front.next(PUT, drop_after)
    assert caller.put() == (0, {})
    assert [one.value for one in real_server.records(account)] == [RECORD]

    status, answer = caller.put()
    assert (status, "commit" in answer) == (200, False)
    assert [(one.status, one.is_faulty) for one in real_server.front.calls_of(PUT)] == [
        (None, True),
        (200, True),
        (200, False),
    ]


def test_a_fault_waits_for_its_turn_and_is_used_up(real_server: RealServer, caller: Caller) -> None:
    real_server.front.next(PUT, answering(503, b"{}"), times=2, skipping=1)
    assert [caller.put()[0] for _ in range(4)] == [200, 503, 503, 200]


def test_a_response_can_be_replaced_after_its_effect(real_server: RealServer, account: Account, caller: Caller) -> None:
    real_server.front.next(PUT, answering(502, b'{"a": 1}', after_effect=True))
    assert caller.put() == (502, {"a": 1})
    assert len(real_server.records(account)) == 1
    real_server.front.next(PUT, changing(lambda answer: Answer(answer.status, b'{"b": 2}')))
    assert caller.put() == (200, {"b": 2})


def test_a_held_request_takes_effect_when_it_is_released(
    real_server: RealServer, account: Account, caller: Caller
) -> None:
    held = real_server.front.hold(PUT, "before")
    calling = threading.Thread(target=caller.put)
    calling.start()
    held.wait_until_arrived()
    assert real_server.records(account) == []
    held.release()
    calling.join()
    assert len(real_server.records(account)) == 1


def test_a_server_that_is_down_refuses_connections(real_server: RealServer, caller: Caller) -> None:
    with real_server.front.stopped():
        assert caller.put() == (0, {})
        assert real_server.front.calls == []
    assert caller.put()[0] == 200


def test_the_clock_of_the_server_ends_a_session(real_server: RealServer, caller: Caller, clock: HandClock) -> None:
    assert caller.put()[0] == 200
    clock.forward(timedelta(hours=2, minutes=1).total_seconds())
    real_server.set_clock(clock.now())
    status, answer = caller.put()
    assert (status, answer["error"]) == (400, "ExpiredToken")


def test_the_owner_and_the_moderators_act_on_an_account(
    real_server: RealServer, account: Account, caller: Caller
) -> None:
    assert caller.put()[0] == 200
    (record,) = real_server.records(account)
    assert record.uri == f"at://{account.did}/{POST}/3mxo5qpa7r227"

    real_server.take_down(account, record)
    assert real_server.records(account) == []

    before = account.handle
    real_server.change_handle(account, "renamed")
    assert real_server.session(account)["handle"] == account.handle != before

    real_server.revoke_app_password(account)
    sign_in = {"identifier": account.did, "password": account.app_password}
    assert real_server.call("com.atproto.server.createSession", sign_in).status == 401

    real_server.deactivate(account)
    assert caller.put()[1]["error"] == "AccountDeactivated"
    real_server.activate(account)
    assert caller.put()[0] == 200


def test_a_session_names_the_server_of_the_account(real_server: RealServer, account: Account) -> None:
    (service,) = real_server.session(account)["didDoc"]["service"]
    assert service["serviceEndpoint"] == real_server.url
