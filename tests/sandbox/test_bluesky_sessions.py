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


def test_the_main_password_gives_a_token_with_all_permissions(world: World, web: TestClient) -> None:
    session = sign_in(web, password=world.bluesky.existing_account("demo").password).json()
    assert claims(session["accessJwt"])["scope"] == "com.atproto.access"


@pytest.mark.parametrize(
    ("identifier", "password"),
    [("demo.test", "demo-demo-demo-dem"), ("nobody.test", PASSWORD), ("@demo.test", PASSWORD), ("demo", PASSWORD)],
)
def test_a_wrong_handle_and_a_wrong_password_are_refused_alike(web: TestClient, identifier: str, password: str) -> None:
    expected = (401, "AuthenticationRequired", "Invalid identifier or password")
    assert error_of(sign_in(web, identifier, password)) == expected


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


def test_a_token_of_the_wrong_kind_is_invalid(web: TestClient) -> None:
    session = sign_in(web).json()
    assert error_of(show(web, session["refreshJwt"])) == (400, "InvalidToken", "Bad token scope")
    assert error_of(refresh(web, session["accessJwt"])) == (400, "InvalidToken", "Bad token scope")
    assert xrpc_error(show(web, "nonsense")) == (400, "InvalidToken")
    assert xrpc_error(web.get(f"{XRPC}server.getSession")) == (401, "AuthMissing")
    assert xrpc_error(web.post(f"{XRPC}server.refreshSession")) == (401, "AuthMissing")


def test_signing_out_ends_one_refresh_token_and_can_be_repeated(web: TestClient) -> None:
    first = sign_in(web).json()
    second = refresh(web, first["refreshJwt"]).json()
    for _ in range(2):
        assert web.post(f"{XRPC}server.deleteSession", **bearer(first["refreshJwt"])).status_code == 200
    assert error_of(refresh(web, first["refreshJwt"])) == (400, "ExpiredToken", "Token has been revoked")
    assert refresh(web, second["refreshJwt"]).status_code == 200, "not its successor"
    assert show(web, first["accessJwt"]).status_code == 200


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
    assert web.post("/_control/bluesky/passwords", json={"username": "demo", "revoked": True}).status_code == 200
    assert xrpc_error(sign_in(web)) == (401, "AuthenticationRequired")
    assert error_of(refresh(web, session["refreshJwt"])) == (400, "ExpiredToken", "Token has been revoked")
    bluesky.token = session["accessJwt"]
    assert bluesky.post().status_code == 200
    assert refresh(web, other["refreshJwt"]).status_code == 200, "the other app password"


def test_a_changed_handle_is_shown_at_once(world: World, web: TestClient) -> None:
    session = sign_in(web).json()
    web.post("/_control/bluesky/users", json={"username": "demo.test", "handle": "renamed.test"})
    assert show(web, session["accessJwt"]).json()["handle"] == "renamed.test"
    assert refresh(web, session["refreshJwt"]).json()["handle"] == "renamed.test"
    assert xrpc_error(web.get(f"{XRPC}identity.resolveHandle?handle=demo.test")) == (400, "HandleNotFound")
    assert web.get(f"{XRPC}identity.resolveHandle?handle=renamed.test").json() == {"did": session["did"]}
    assert xrpc_error(sign_in(web)) == (401, "AuthenticationRequired")


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


def test_the_server_says_how_large_a_blob_may_be(world: World, web: TestClient) -> None:
    assert web.get(f"{XRPC}server.describeServer").json()["blobUploadLimit"] == 104_857_600
    world.bluesky.reveals_blob_limit = False
    assert "blobUploadLimit" not in web.get(f"{XRPC}server.describeServer").json()


def test_the_directory_names_the_server_of_an_account(world: World, web: TestClient) -> None:
    account = world.bluesky.existing_account("studio")
    document = web.get(f"/bluesky/plc/{account.did}").json()
    assert (document["id"], document["alsoKnownAs"]) == (account.did, ["at://studio.test"])
    world.bluesky.server_url = "https://pds.example.com"
    assert web.get(f"/bluesky/plc/{account.did}").json()["service"][0]["serviceEndpoint"] == "https://pds.example.com"
    unknown = web.get("/bluesky/plc/did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")
    assert (unknown.status_code, set(unknown.json())) == (404, {"message"})


@pytest.mark.parametrize("handle", ["demo", "de mo.test", "-a.test", "demo.1"])
def test_a_handle_of_another_form_is_an_invalid_request(web: TestClient, handle: str) -> None:
    answer = web.get(f"{XRPC}identity.resolveHandle", params={"handle": handle})
    assert xrpc_error(answer) == (400, "InvalidRequest")


def test_the_state_of_an_account_is_public(world: World, web: TestClient) -> None:
    did = world.bluesky.existing_account("demo").did
    shown = web.get(f"{XRPC}sync.getRepoStatus?did={did}").json()
    assert shown == {"did": did, "active": True, "rev": shown["rev"]}
    world.bluesky.change_account("demo", status="takendown")
    assert web.get(f"{XRPC}sync.getRepoStatus?did={did}").json()["status"] == "takendown"


def test_unknown_methods_and_the_wrong_method_are_400(web: TestClient) -> None:
    foreign = error_of(web.get("/bluesky/xrpc/app.bsky.video.getUploadLimits"))
    assert foreign == (400, "InvalidRequest", "No service configured for app.bsky.video.getUploadLimits")
    assert xrpc_error(web.get(f"{XRPC}repo.putRecord")) == (400, "InvalidRequest")


def test_every_call_shows_the_tightest_limit(world: World, web: TestClient, bluesky: BlueskyClient) -> None:
    reading = web.get(f"{XRPC}server.describeServer")
    assert reading.headers["ratelimit-policy"] == "3000;w=300"
    world.bluesky.limits["hour"] = 4
    assert bluesky.post().headers["ratelimit-remaining"] == "2"
    assert bluesky.post().status_code == 200
    assert xrpc_error(bluesky.post()) == (429, "RateLimitExceeded")
    assert bluesky.look("repo.listRecords", repo=bluesky.account.did, collection="a.b.c").status_code == 200
    assert len(world.bluesky.posts) == 2
