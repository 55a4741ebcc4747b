"""Consent and tokens on the sandbox's Pinterest."""

from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.client import redirect_parameters
from tests.sandbox.pinterest_client import refusal
from tests.support.hand_clock import HandClock

BACK = "http://127.0.0.1:8000/oauth/pinterest/callback"
SCOPES = "user_accounts:read,boards:read,boards:write,pins:read,pins:write"
ASKED = {"client_id": "app", "redirect_uri": BACK, "response_type": "code", "scope": SCOPES, "state": "s1"}


def decide(web: TestClient, decision: str = "allow", account: str = "demo") -> dict[str, str]:
    return redirect_parameters(web.post("/pinterest/oauth/", data=ASKED | {"account": account, "decision": decision}))


def exchange(web: TestClient, code: str, auth: Any = ("app", "secret"), **changes: str) -> Response:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "continuous_refresh": "true"}
    return web.post("/pinterest/v5/oauth/token", data=form | changes, auth=auth)


def refresh(web: TestClient, token: str) -> Response:
    form = {"grant_type": "refresh_token", "refresh_token": token}
    return web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret"))


def test_consent_leads_to_tokens(web: TestClient, clock: HandClock) -> None:
    page = web.get("/pinterest/oauth/", params=ASKED).text
    assert "@demo" in page
    assert "checkbox" not in page, "scopes are given all or none"
    back = decide(web)
    assert back["state"] == "s1"
    tokens = exchange(web, back["code"]).json()
    assert (tokens["expires_in"], tokens["refresh_token_expires_in"]) == (2592000, 5184000)
    assert tokens["refresh_token_expires_at"] == int(clock.now().timestamp()) + 5184000
    assert tokens["scope"] == SCOPES.replace(",", " ")
    header = {"authorization": f"Bearer {tokens['access_token']}"}
    assert web.get("/pinterest/v5/user_account", headers=header).json()["username"] == "demo"


def test_saying_no_comes_back_as_access_denied(web: TestClient) -> None:
    assert decide(web, "deny") == {"error": "access_denied", "state": "s1"}


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": ""},
        {"redirect_uri": BACK + "/"},
        {"redirect_uri": "http://box.example/callback"},
        {"response_type": "token"},
        {"scope": "pins:read boards:read"},
        {"scope": ""},
    ],
)
def test_the_consent_page_refuses_what_does_not_match(world: World, web: TestClient, changes: dict[str, str]) -> None:
    world.pinterest.add_app("app", "secret", [BACK])
    answer = web.get("/pinterest/oauth/", params=ASKED | changes)
    assert answer.status_code == 400
    assert "location" not in answer.headers


def test_a_code_works_once_for_ten_minutes_and_for_its_own_app_and_address(web: TestClient, clock: HandClock) -> None:
    once, late, other, elsewhere = (decide(web)["code"] for _ in range(4))
    assert exchange(web, once).status_code == 200
    assert refusal(exchange(web, once)) == (401, 2)
    assert refusal(exchange(web, other, auth=("other", "secret"))) == (401, 2)
    assert refusal(exchange(web, elsewhere, redirect_uri=BACK + "/")) == (401, 2)
    clock.forward(600)
    assert refusal(exchange(web, late)) == (401, 2)


def test_a_registered_app_needs_its_own_secret(world: World, web: TestClient) -> None:
    world.pinterest.add_app("app", "secret", [BACK])
    assert refusal(exchange(web, decide(web)["code"], auth=("app", "wrong"))) == (401, 2)
    assert refusal(web.post("/pinterest/v5/oauth/token", data={"grant_type": "password"}, auth=("app", "secret"))) == (
        400,
        1,
    )


def test_what_a_refresh_brings_can_be_chosen(world: World, web: TestClient) -> None:
    tokens = exchange(web, decide(web)["code"]).json()
    world.pinterest.omits_refresh_token = True
    new = refresh(web, tokens["refresh_token"]).json()
    assert "refresh_token" not in new
    world.pinterest.omits_refresh_token = False
    world.pinterest.old_refresh_survives = True
    for _ in range(2):
        assert refresh(web, tokens["refresh_token"]).json()["refresh_token"] != tokens["refresh_token"]


def test_pinterest_says_whose_account_it_is(world: World, web: TestClient) -> None:
    granted = world.pinterest.grant("demo")
    answer = web.get("/pinterest/v5/user_account", headers={"authorization": f"Bearer {granted['accessToken']}"})
    assert (answer.json()["username"], answer.json()["account_type"]) == ("demo", "BUSINESS")
    assert answer.headers["x-pinterest-rid"]
    assert web.get("/pinterest/v5/user_account").json()["code"] == 2


def test_pinterest_rotates_and_does_not_revoke(world: World, web: TestClient) -> None:
    granted = world.pinterest.grant("demo")
    form = {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    new = web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")).json()
    assert (new["expires_in"], new["refresh_token_expires_in"]) == (2592000, 5184000)
    assert web.post("/pinterest/v5/oauth/token", data=form, auth=("app", "secret")).status_code == 401
    assert web.post("/pinterest/v5/oauth/token", data=form).json()["code"] == 2
    query = web.post("/pinterest/v5/oauth/token", params=form, auth=("app", "secret"))
    assert "Missing request body" in query.json()["message"]
    revoked = web.post("/pinterest/v5/oauth/token/revoke", data={"token": new["access_token"]}, auth=("app", "secret"))
    assert (revoked.status_code, revoked.json()["code"]) == (403, 29)
