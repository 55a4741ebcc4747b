"""Consent, tokens and rotation on the sandbox's X."""

import base64
import hashlib
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.client import redirect_parameters
from tests.sandbox.x_client import XClient, message
from tests.support.hand_clock import HandClock

VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
BACK = "http://127.0.0.1:8000/oauth/x/callback"
ASKED = {
    "response_type": "code",
    "client_id": "app",
    "redirect_uri": BACK,
    "scope": "tweet.read tweet.write users.read media.write offline.access",
    "state": "s1",
    "code_challenge": CHALLENGE,
    "code_challenge_method": "S256",
}


def consent_page(web: TestClient, **changes: str) -> Response:
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in (ASKED | changes).items())
    return web.get(f"/x/i/oauth2/authorize?{query}")


def decide(web: TestClient, decision: str = "allow", account: str = "demo", **changes: str) -> dict[str, str]:
    answer = web.post("/x/i/oauth2/authorize", data=ASKED | changes | {"account": account, "decision": decision})
    return redirect_parameters(answer)


def ask_token(web: TestClient, auth: Any = ("app", "secret"), **form: str) -> Response:
    return web.post("/x/2/oauth2/token", data=form, auth=auth)


def exchange(web: TestClient, code: str, auth: Any = ("app", "secret"), **changes: str) -> Response:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, "code_verifier": VERIFIER}
    return ask_token(web, auth, **form | changes)


def refresh(web: TestClient, token: str, auth: Any = ("app", "secret")) -> Response:
    return ask_token(web, auth, grant_type="refresh_token", refresh_token=token)


def test_consent_leads_to_a_token_that_says_who_the_account_is(web: TestClient) -> None:
    page = consent_page(web)
    assert "@demo" in page.text
    back = decide(web)
    assert back["state"] == "s1"
    tokens = exchange(web, back["code"]).json()
    assert set(tokens["scope"].split()) == set(ASKED["scope"].split())
    assert tokens["expires_in"] == 7200
    me = web.get("/x/2/users/me", headers={"authorization": f"Bearer {tokens['access_token']}"}).json()
    assert me["data"] == {"id": "1000000000000000001", "name": "Demo", "username": "demo"}


def test_saying_no_comes_back_as_access_denied(web: TestClient) -> None:
    assert decide(web, "deny") == {"state": "s1", "error": "access_denied"}


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uri": BACK + "/"},
        {"redirect_uri": "http://localhost:8000/oauth/x/callback"},
        {"client_id": ""},
        {"response_type": "token"},
        {"state": ""},
        {"state": "s" * 501},
        {"scope": "tweet.read tweets.write"},
        {"code_challenge_method": "s256"},
        {"code_challenge": "short"},
    ],
)
def test_the_consent_page_refuses_what_does_not_match_and_never_redirects(
    world: World, web: TestClient, changes: dict[str, str]
) -> None:
    world.x.add_app("app", "secret", [BACK])
    answer = consent_page(web, **changes)
    assert answer.status_code == 400
    assert "location" not in answer.headers


def test_scopes_stand_apart_by_a_space_however_it_is_encoded(web: TestClient) -> None:
    encoded = "&".join(f"{name}={quote(value)}" for name, value in ASKED.items())
    for query in (encoded, encoded.replace("tweet.read%20", "tweet.read+"), urlencode(ASKED)):
        assert "invalid_scope" not in web.get(f"/x/i/oauth2/authorize?{query}").text
    assert "invalid_scope" in web.get(f"/x/i/oauth2/authorize?{encoded.replace('%20', ',')}").text


def test_a_code_works_once(web: TestClient) -> None:
    code = decide(web)["code"]
    assert exchange(web, code).status_code == 200
    again = exchange(web, code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_request")
    assert message(again) == "Value passed for the authorization code was invalid."


def test_a_code_lives_thirty_seconds(web: TestClient, clock: HandClock) -> None:
    in_time, late = decide(web)["code"], decide(web)["code"]
    clock.forward(29)
    assert exchange(web, in_time).status_code == 200
    clock.forward(1)
    assert exchange(web, late).status_code == 400


def test_the_verifier_must_hash_to_the_challenge(web: TestClient) -> None:
    assert exchange(web, decide(web)["code"], code_verifier="w" * 50).status_code == 400


def test_the_redirect_address_is_compared_at_the_exchange(web: TestClient) -> None:
    answer = exchange(web, decide(web)["code"], redirect_uri=BACK + "?x=1")
    assert "did not match the uri of the authorization code" in message(answer)


def test_a_missing_verifier_is_named(web: TestClient) -> None:
    assert message(exchange(web, decide(web)["code"], code_verifier="")) == (
        "Missing required parameter [code_verifier]."
    )


@pytest.mark.parametrize("auth", [None, ("app", "wrong"), ("app", "secret\n")])
def test_a_confidential_app_must_authenticate_by_basic(world: World, web: TestClient, auth: Any) -> None:
    world.x.add_app("app", "secret", [BACK])
    answer = exchange(web, decide(web)["code"], auth=auth)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized_client")


def test_a_secret_in_the_body_is_no_authentication(web: TestClient) -> None:
    answer = exchange(web, decide(web)["code"], auth=None, client_id="app", client_secret="secret")
    assert answer.status_code == 401


def test_a_public_app_names_itself_in_the_body_and_must_not_send_basic(world: World, web: TestClient) -> None:
    world.x.add_app("app", None, [BACK])
    assert exchange(web, decide(web)["code"]).status_code == 401
    assert exchange(web, decide(web)["code"], auth=None, client_id="app").status_code == 200


def test_tokens_take_a_form_only(web: TestClient) -> None:
    answer = web.post("/x/2/oauth2/token", json={"grant_type": "refresh_token"}, auth=("app", "secret"))
    assert answer.status_code == 400


def test_without_offline_access_there_is_no_refresh_token(web: TestClient) -> None:
    code = decide(web, scope="tweet.read users.read")["code"]
    assert "refresh_token" not in exchange(web, code).json()


def test_a_refresh_rotates_and_the_old_token_is_spent(web: TestClient, x: XClient) -> None:
    assert x.refresh_token
    new = refresh(web, x.refresh_token).json()
    assert new["refresh_token"] != x.refresh_token
    again = refresh(web, x.refresh_token)
    assert (again.status_code, message(again)) == (400, "Value passed for the token was invalid.")
    assert x.call("GET", "/2/users/me").status_code == 401, "the old access token ends with its pair"
    assert refresh(web, new["refresh_token"]).status_code == 200, "a replay only is refused"


def test_a_replay_can_be_told_to_end_the_whole_family(world: World, web: TestClient, x: XClient) -> None:
    world.x.kill_family_on_reuse = True
    assert x.refresh_token
    new = refresh(web, x.refresh_token).json()
    refresh(web, x.refresh_token)
    assert refresh(web, new["refresh_token"]).status_code == 400
    header = {"authorization": f"Bearer {new['access_token']}"}
    assert web.get("/x/2/users/me", headers=header).status_code == 401


def test_the_old_access_token_can_be_told_to_survive(world: World, web: TestClient, x: XClient) -> None:
    world.x.old_access_token_survives = True
    refresh(web, x.refresh_token or "")
    assert x.call("GET", "/2/users/me").status_code == 200


def test_another_app_cannot_refresh_a_token(web: TestClient) -> None:
    tokens = exchange(web, decide(web)["code"]).json()
    assert refresh(web, tokens["refresh_token"], auth=("other", "secret")).status_code == 400


def test_an_access_token_ends_after_its_time(x: XClient, clock: HandClock) -> None:
    clock.forward(7199)
    assert x.call("GET", "/2/users/me").status_code == 200
    clock.forward(1)
    answer = x.call("GET", "/2/users/me")
    assert answer.json() == {"title": "Unauthorized", "detail": "Unauthorized", "type": "about:blank", "status": 401}


def test_revoking_either_token_ends_the_consent(web: TestClient, x: XClient) -> None:
    form = {"token": x.refresh_token or ""}
    assert web.post("/x/2/oauth2/revoke", data=form, auth=("app", "secret")).json() == {"revoked": True}
    assert x.call("GET", "/2/users/me").status_code == 401
    assert refresh(web, x.refresh_token or "").status_code == 400


def test_taking_access_back_kills_tokens(web: TestClient, x: XClient) -> None:
    assert web.post("/_control/x/tokens", json={"username": "demo", "end": "removed"}).status_code == 200
    assert x.call("GET", "/2/users/me").status_code == 401
    assert refresh(web, x.refresh_token or "").status_code == 400


def test_a_grant_by_hand_is_what_import_profile_takes(world: World) -> None:
    granted = world.x.grant("newcomer", expires_in=60)
    assert set(granted) == {"accessToken", "refreshToken", "expiresAt", "scope"}
    assert granted["expiresAt"] == "2026-10-12T09:01:00.000+00:00"
    assert "refreshToken" not in world.x.grant("newcomer", ("tweet.read",))


def test_no_secret_shows_in_a_repr(world: World) -> None:
    granted = world.x.grant("demo")
    token = world.x.tokens.bearer(granted["accessToken"])
    app = world.x.add_app("app", "hush-hush")
    assert granted["accessToken"] not in repr(token)
    assert "hush-hush" not in repr(app)
