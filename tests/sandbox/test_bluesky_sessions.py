"""Sessions, handles and the directory of the sandbox's Bluesky, compared with what the real server answers."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app
from tests.sandbox.clients import BlueskyClient, xrpc_error
from tests.support.hand_clock import HandClock

XRPC = "/bluesky/xrpc/com.atproto."
PASSWORD = "demo-demo-demo-demo"
HOUR, DAY = 3600, 86400


def sign_in(web: TestClient, identifier: str = "demo.test", password: str = PASSWORD) -> Response:
    return web.post(f"{XRPC}server.createSession", json={"identifier": identifier, "password": password})


def bearer(token: str) -> dict[str, dict[str, str]]:
    return {"headers": {"authorization": f"Bearer {token}"}}


def refresh(web: TestClient, token: str) -> Response:
    return web.post(f"{XRPC}server.refreshSession", **bearer(token))


def show(web: TestClient, token: str) -> Response:
    return web.get(f"{XRPC}server.getSession", **bearer(token))


def claims(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def error_of(answer: Response) -> tuple[int, str, str]:
    return (*xrpc_error(answer), answer.json()["message"])


# --- sign-in ----------------------------------------------------------------------------------------------------------


def test_a_session_names_the_account_and_its_server(world: World, web: TestClient) -> None:
    account = world.bluesky.existing_account("demo")
    for identifier in ("demo.test", "DEMO.test", account.did):
        session = sign_in(web, identifier).json()
        assert (session["did"], session["handle"], session["active"]) == (account.did, "demo.test", True)
    (service,) = session["didDoc"]["service"]
    assert service == {
        "id": "#atproto_pds",
        "type": "AtprotoPersonalDataServer",
        "serviceEndpoint": "http://testserver/bluesky",
    }
    access, later = claims(session["accessJwt"]), claims(session["refreshJwt"])
    assert (access["scope"], access["exp"] - access["iat"]) == ("com.atproto.appPass", 2 * HOUR)
    assert (later["scope"], later["exp"] - later["iat"]) == ("com.atproto.refresh", 90 * DAY)
    assert show(web, session["accessJwt"]).json()["handle"] == "demo.test"
    world.bluesky.sends_did_document = False
    assert "didDoc" not in sign_in(web).json()


def test_thirty_sign_ins_in_five_minutes_are_accepted(web: TestClient, clock: HandClock, world: World) -> None:
    for _ in range(30):
        assert sign_in(web, password="wrong").status_code == 401
    limited = sign_in(web)
    assert xrpc_error(limited) == (429, "RateLimitExceeded")
    assert (limited.headers["ratelimit-remaining"], limited.headers["ratelimit-policy"]) == ("0", "30;w=300")
    reset = int(limited.headers["ratelimit-reset"])
    assert int(limited.headers["retry-after"]) == reset - int(world.bluesky.timestamp()) == 300
    assert sign_in(web, "studio.test", "stud-iost-udio-stud").status_code == 200, "another account"
    clock.forward(300)
    assert sign_in(web).status_code == 200


# --- refresh ----------------------------------------------------------------------------------------------------------


def test_a_used_refresh_token_gives_the_same_successor_for_two_hours(web: TestClient, clock: HandClock) -> None:
    first = sign_in(web).json()
    second = refresh(web, first["refreshJwt"]).json()
    assert second["refreshJwt"] != first["refreshJwt"]
    assert show(web, first["accessJwt"]).status_code == 200, "the older access token still works"
    clock.forward(2 * HOUR - 1)
    again = refresh(web, first["refreshJwt"]).json()
    assert again["refreshJwt"] == second["refreshJwt"]
    clock.forward(1)
    assert error_of(refresh(web, first["refreshJwt"])) == (400, "ExpiredToken", "Token has been revoked")
    assert refresh(web, second["refreshJwt"]).status_code == 200


def test_tokens_expire_after_two_hours_and_ninety_days(web: TestClient, clock: HandClock) -> None:
    session = sign_in(web).json()
    clock.forward(2 * HOUR)
    assert error_of(show(web, session["accessJwt"])) == (400, "ExpiredToken", "Token has expired")
    clock.forward(90 * DAY)
    assert error_of(refresh(web, session["refreshJwt"])) == (400, "ExpiredToken", "Token has expired")


def test_sessions_survive_a_restart(restart: Callable[[], World]) -> None:
    web = TestClient(create_app(restart()))
    first = sign_in(web).json()
    ended = sign_in(web).json()
    second = refresh(web, first["refreshJwt"]).json()
    web.post(f"{XRPC}server.deleteSession", **bearer(ended["refreshJwt"]))
    web = TestClient(create_app(restart()))
    assert show(web, second["accessJwt"]).status_code == 200
    assert refresh(web, second["refreshJwt"]).status_code == 200
    assert xrpc_error(refresh(web, ended["refreshJwt"])) == (400, "ExpiredToken")


# --- what the owner does elsewhere ------------------------------------------------------------------------------------


def test_a_revoked_app_password_ends_the_refresh_but_not_the_access_token(
    world: World, web: TestClient, bluesky: BlueskyClient
) -> None:
    session = sign_in(web).json()
    other = sign_in(web, password=world.bluesky.add_app_password("demo", "other")).json()
    world.bluesky.revoke_app_password("demo")
    assert xrpc_error(sign_in(web)) == (401, "AuthenticationRequired")
    assert error_of(refresh(web, session["refreshJwt"])) == (400, "ExpiredToken", "Token has been revoked")
    bluesky.token = session["accessJwt"]
    assert bluesky.post().status_code == 200
    assert refresh(web, other["refreshJwt"]).status_code == 200, "the other app password"


STATES = {
    "deactivated": ((401, "AccountDeactivated"), (200, ""), (200, "")),
    "takendown": ((401, "AccountTakedown"), (401, "AccountTakedown"), (401, "AuthenticationRequired")),
    "deleted": ((403, "AccountNotFound"), (400, "InvalidRequest"), (401, "AuthenticationRequired")),
}


@pytest.mark.parametrize("status", STATES)
def test_an_account_that_is_not_active(world: World, web: TestClient, bluesky: BlueskyClient, status: Any) -> None:
    session = sign_in(web).json()
    web.post("/_control/bluesky/users", json={"username": "demo.test", "status": status})

    def found(answer: Response) -> tuple[int, str]:
        return answer.status_code, answer.json().get("error", "")

    refreshed = refresh(web, session["refreshJwt"])
    assert (found(bluesky.post()), found(refreshed), found(sign_in(web))) == STATES[status]
    if status == "deactivated":
        assert (refreshed.json()["active"], refreshed.json()["status"]) == (False, "deactivated")
        web.post("/_control/bluesky/users", json={"username": "demo.test", "status": "active"})
        assert bluesky.post().status_code == 200


# --- the server, handles and DIDs -------------------------------------------------------------------------------------


def test_the_directory_names_the_server_of_an_account(world: World, web: TestClient) -> None:
    account = world.bluesky.existing_account("studio")
    document = web.get(f"/bluesky/plc/{account.did}").json()
    assert (document["id"], document["alsoKnownAs"]) == (account.did, ["at://studio.test"])
    world.bluesky.server_url = "https://pds.example.com"
    assert web.get(f"/bluesky/plc/{account.did}").json()["service"][0]["serviceEndpoint"] == "https://pds.example.com"
    unknown = web.get("/bluesky/plc/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")
    assert (unknown.status_code, set(unknown.json())) == (404, {"message"})


def test_every_call_shows_the_tightest_limit(world: World, web: TestClient, bluesky: BlueskyClient) -> None:
    reading = web.get(f"{XRPC}server.describeServer")
    assert reading.headers["ratelimit-policy"] == "3000;w=300"
    world.bluesky.limits["hour"] = 4
    assert bluesky.post().headers["ratelimit-remaining"] == "2"
    assert bluesky.post().status_code == 200
    assert xrpc_error(bluesky.post()) == (429, "RateLimitExceeded")
    assert bluesky.look("repo.listRecords", repo=bluesky.account.did, collection="a.b.c").status_code == 200
    assert len(world.bluesky.posts) == 2
