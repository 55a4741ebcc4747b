"""Bluesky's own server and its front: what the stories build on."""

import http.client
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.bluesky.servers import POST, Account, RealServer

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


def test_the_clock_of_the_server_ends_a_session(real_server, caller, clock):
    assert caller.put()[0] == 200
    clock.forward(timedelta(hours=2, minutes=1).total_seconds())
    real_server.set_clock(clock.now())
    status, answer = caller.put()
    assert (status, answer["error"]) == (400, "ExpiredToken")


def test_the_owner_and_the_moderators_act_on_an_account(real_server, account, caller):
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


def test_a_session_names_the_server_of_the_account(real_server, account):
    (service,) = real_server.session(account)["didDoc"]["service"]
    assert service["serviceEndpoint"] == real_server.url
