"""Consent, tokens and rotation on the sandbox's TikTok."""

from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.client import redirect_parameters
from tests.sandbox.tiktok_client import TikTokClient, error_code
from tests.support.hand_clock import HandClock

VERIFIER = "tiktok-pkce-demo-verifier-0123456789-ABCDEFGHIJ_~."
HEX = "e37f4614c3eacf4a17d267137a6650113091cfcdcfb013f810d241ee62f38c9a"
BACK = "http://127.0.0.1:8000/oauth/tiktok/callback"
ASKED = {
    "client_key": "app",
    "response_type": "code",
    "scope": "user.info.basic,video.publish,video.upload",
    "redirect_uri": BACK,
    "state": "s1",
    "code_challenge": HEX,
    "code_challenge_method": "S256",
}
APP = {"client_key": "app", "client_secret": "secret"}


def consent_page(web: TestClient, **changes: str) -> Response:
    asked = {name: value for name, value in (ASKED | changes).items() if value}
    return web.get("/tiktok/v2/auth/authorize/", params=asked)


def decide(
    web: TestClient, *given: str, decision: str = "allow", account: str = "demo", **changes: str
) -> dict[str, str]:
    form = ASKED | changes | {"account": account, "decision": decision} | {f"grant:{scope}": "1" for scope in given}
    return redirect_parameters(web.post("/tiktok/v2/auth/authorize/", data=form))


def exchange(web: TestClient, given: str, **changes: str) -> Response:
    form = APP | {"grant_type": "authorization_code", "code": given, "redirect_uri": BACK, "code_verifier": VERIFIER}
    return web.post("/tiktok/v2/oauth/token/", data={name: value for name, value in (form | changes).items() if value})


def refresh(web: TestClient, token: str, **changes: str) -> Response:
    form = APP | {"grant_type": "refresh_token", "refresh_token": token} | changes
    return web.post("/tiktok/v2/oauth/token/", data=form)


def test_consent_leads_to_tokens_for_the_permissions_that_were_given(web: TestClient) -> None:
    page = consent_page(web).text
    assert "@demo" in page
    assert "Post to your profile" in page
    back = decide(web, "video.publish")
    assert (back["scopes"], back["state"]) == ("user.info.basic,video.publish", "s1")
    assert {"*", "!"} <= set(back["code"])
    tokens = exchange(web, back["code"]).json()
    assert (tokens["scope"], tokens["expires_in"], tokens["refresh_expires_in"], tokens["token_type"]) == (
        "user.info.basic,video.publish",
        86400,
        31536000,
        "Bearer",
    )
    assert tokens["open_id"] == "7f0c1e52-demo-4a11-9b7e-000000000001"


def test_saying_no_comes_back_as_access_denied(web: TestClient) -> None:
    back = decide(web, decision="deny")
    assert (back["error"], back["state"]) == ("access_denied", "s1")


@pytest.mark.parametrize(
    "changes",
    [
        {"client_key": ""},
        {"redirect_uri": BACK + "/"},
        {"redirect_uri": BACK + "?a=1"},
        {"response_type": "token"},
        {"state": ""},
        {"scope": "user.info.basic video.publish"},
        {"code_challenge": ""},
        {"code_challenge": "439GFMPqz0oX0mcTemZQETCRz83PsBP4ENJB7mLzjJo"},
        {"code_challenge_method": "plain"},
    ],
)
def test_the_consent_page_refuses_what_does_not_match_and_never_redirects(
    world: World, web: TestClient, changes: dict[str, str]
) -> None:
    world.tiktok.add_app("app", "secret", [BACK])
    answer = consent_page(web, **changes)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert next(iter(changes)).split("_method")[0] in answer.text


def test_a_desktop_app_returns_to_a_port_of_this_machine(web: TestClient) -> None:
    assert consent_page(web, redirect_uri="http://127.0.0.1:4711/callback/").status_code == 200
    for other in ("http://127.0.0.1/callback/", "http://box.example/callback/"):
        assert consent_page(web, redirect_uri=other).status_code == 400


def test_a_web_app_needs_https_and_may_do_without_a_challenge(web: TestClient) -> None:
    secure = "https://box.example.net/oauth/tiktok/callback"
    plain: dict[str, str] = {"redirect_uri": secure, "code_challenge": "", "code_challenge_method": ""}
    assert consent_page(web, **plain).status_code == 200
    assert consent_page(web, redirect_uri=secure.replace("https", "http")).status_code == 400
    back = redirect_parameters(
        web.post(
            "/tiktok/v2/auth/authorize/",
            data={name: value for name, value in (ASKED | plain).items() if value}
            | {"account": "demo", "decision": "allow"},
        )
    )
    assert exchange(web, back["code"], redirect_uri=secure, code_verifier="").status_code == 200


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"redirect_uri": BACK + "/"}, "invalid_request"),
        ({"code_verifier": "w" * 50}, "invalid_request"),
        ({"code_verifier": ""}, "invalid_request"),
        ({"client_key": "other"}, "invalid_grant"),
        ({"client_secret": "wrong"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": ""}, "unsupported_grant_type"),
        ({"code": ""}, "invalid_request"),
    ],
)
def test_an_exchange_that_does_not_fit_is_refused(
    world: World, web: TestClient, changes: dict[str, str], error: str
) -> None:
    world.tiktok.add_app("app", "secret", [BACK])
    answer = exchange(web, decide(web)["code"], **changes)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert len(answer.json()["log_id"]) == 34
    world.tiktok.oauth_error_status = 200
    assert exchange(web, "gone", **changes).status_code == 200


def test_a_refresh_token_counts_its_year_from_the_consent(web: TestClient, clock: HandClock) -> None:
    tokens = exchange(web, decide(web)["code"]).json()
    clock.forward(10 * 86400)
    new = refresh(web, tokens["refresh_token"]).json()
    assert new["refresh_token"] != tokens["refresh_token"]
    assert new["refresh_expires_in"] == 355 * 86400
    clock.forward(355 * 86400)
    assert refresh(web, new["refresh_token"]).json()["error"] == "invalid_grant"


def test_the_year_can_be_told_to_begin_anew(world: World, web: TestClient, clock: HandClock) -> None:
    world.tiktok.refresh_restarts = True
    tokens = exchange(web, decide(web)["code"]).json()
    clock.forward(10 * 86400)
    assert refresh(web, tokens["refresh_token"]).json()["refresh_expires_in"] == 365 * 86400


def test_a_used_refresh_token_can_be_told_to_live_a_minute_longer(
    world: World, web: TestClient, clock: HandClock
) -> None:
    tokens = exchange(web, decide(web)["code"]).json()
    world.tiktok.refresh_grace_seconds = 60
    assert refresh(web, tokens["refresh_token"]).status_code == 200
    clock.forward(59)
    assert refresh(web, tokens["refresh_token"]).status_code == 200
    clock.forward(1)
    assert refresh(web, tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_refresh_can_be_told_to_bring_no_refresh_token(world: World, web: TestClient) -> None:
    world.tiktok.omits_refresh_token = True
    tokens = exchange(web, decide(web)["code"]).json()
    for _ in range(2):
        answer = refresh(web, tokens["refresh_token"]).json()
        assert set(answer) == {"open_id", "scope", "access_token", "expires_in", "token_type"}


def test_taking_access_back_kills_tokens_and_what_is_on_its_way(world: World, web: TestClient) -> None:
    caller = TikTokClient(web, world)
    begun = caller.post()
    world.tiktok.remove_access("demo")
    assert error_code(caller.creator()) == "access_token_invalid"
    again = TikTokClient(web, world)
    data = again.status(begun)
    assert (data["status"], data["fail_reason"]) == ("FAILED", "auth_removed")


def test_no_secret_shows_in_a_repr(world: World, web: TestClient) -> None:
    caller = TikTokClient(web, world)
    caller.begin()
    task: Any = next(iter(world.tiktok.tasks.all.values()))
    assert task.upload_token not in repr(task)


def test_tiktok_says_who_the_user_is(world: World, web: TestClient) -> None:
    granted = world.tiktok.grant("demo")
    header = {"authorization": f"Bearer {granted['accessToken']}"}
    answer = web.get("/tiktok/v2/user/info/", params={"fields": "open_id,display_name"}, headers=header).json()
    assert answer["error"]["code"] == "ok"
    assert answer["data"]["user"] == {"open_id": "7f0c1e52-demo-4a11-9b7e-000000000001", "display_name": "Demo"}
    wanting = web.get("/tiktok/v2/user/info/", params={"fields": "username"}, headers=header)
    assert wanting.json()["error"]["code"] == "scope_permission_missed"
    assert web.get("/tiktok/v2/user/info/", headers=header).json()["error"]["code"] == "invalid_params"
    assert web.get("/tiktok/v2/user/info/?fields=open_id").json()["error"]["code"] == "access_token_invalid"


def test_tiktok_rotates_and_revokes(world: World, web: TestClient) -> None:
    granted = world.tiktok.grant("demo")
    form = APP | {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    new = web.post("/tiktok/v2/oauth/token/", data=form).json()
    assert (new["expires_in"], new["refresh_expires_in"], new["token_type"]) == (86400, 31536000, "Bearer")
    assert web.post("/tiktok/v2/oauth/token/", data=form).json()["error"] == "invalid_grant"
    assert web.post("/tiktok/v2/oauth/token/", json=form).json()["error"] == "invalid_request"
    no_app = {"grant_type": "refresh_token", "refresh_token": new["refresh_token"]}
    assert web.post("/tiktok/v2/oauth/token/", data=no_app).json()["error"] == "invalid_client"
    assert web.post("/tiktok/v2/oauth/revoke/", data=APP | {"token": new["access_token"]}).json() == {}
    header = {"authorization": f"Bearer {new['access_token']}"}
    assert web.get("/tiktok/v2/user/info/?fields=open_id", headers=header).status_code == 401


def test_tiktok_can_be_told_to_keep_its_refresh_token(world: World, web: TestClient) -> None:
    world.tiktok.rotates = False
    granted = world.tiktok.grant("demo")
    form = APP | {"grant_type": "refresh_token", "refresh_token": granted["refreshToken"]}
    for _ in range(2):
        assert web.post("/tiktok/v2/oauth/token/", data=form).json()["refresh_token"] == granted["refreshToken"]


def test_arranged_errors_of_the_token_endpoint_have_its_flat_form(world: World, web: TestClient) -> None:
    world.tiktok.next("token").fails_with(500)
    answer = web.post("/tiktok/v2/oauth/token/", data={"grant_type": "refresh_token"})
    assert (answer.status_code, answer.json()["error"]) == (500, "server_error")
    world.tiktok.next("token").rate_limited(30, "retry-after")
    limited = web.post("/tiktok/v2/oauth/token/", data={"grant_type": "refresh_token"})
    assert (limited.status_code, limited.json()["error"]) == (429, "rate_limit_exceeded")
    assert limited.headers["retry-after"] == "30"
