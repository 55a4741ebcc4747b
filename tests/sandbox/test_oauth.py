"""Consent, tokens and rotation on the three networks of the sandbox."""

import base64
import hashlib
from dataclasses import dataclass
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.clients import TikTokClient, redirect_parameters
from tests.support.hand_clock import HandClock

VERIFIER = "v" * 50
DIGEST = hashlib.sha256(VERIFIER.encode()).digest()
BASE64 = base64.urlsafe_b64encode(DIGEST).rstrip(b"=").decode()
BASIC = ("app", "secret")


@dataclass(frozen=True, eq=False)
class Consent:
    """An app that asks for access to the account `demo` of one network."""

    name: str
    page: str
    api: str
    me: str
    """What a token can read."""
    token: str
    revoke: str
    asked: dict[str, str]
    scope: str
    code_seconds: int
    in_form: dict[str, str]
    """The app's credentials, where the form and not Basic contains them."""

    @property
    def back(self) -> str:
        return self.asked["redirect_uri"]

    def open(self, web: TestClient, **changes: str) -> Response:
        asked = {name: value for name, value in (self.asked | changes).items() if value}
        return web.get(self.page, params=asked)

    def decide(self, web: TestClient, decision: str = "allow", grants: str = "", **changes: str) -> dict[str, str]:
        form = {name: value for name, value in (self.asked | changes).items() if value}
        given = {f"grant:{scope}": "1" for scope in grants.split(",")}
        return redirect_parameters(web.post(self.page, data=form | given | {"account": "demo", "decision": decision}))

    def ask(self, web: TestClient, path: str, auth: Any, form: dict[str, str]) -> Response:
        sent = {name: value for name, value in (self.in_form | form).items() if value}
        return web.post(self.api + path, data=sent, auth=None if self.in_form else auth)

    def exchange(self, web: TestClient, code: str, auth: Any = BASIC, **changes: str) -> Response:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.back, "code_verifier": VERIFIER}
        return self.ask(web, self.token, auth, form | changes)

    def refresh(self, web: TestClient, token: str, auth: Any = BASIC, **changes: str) -> Response:
        return self.ask(web, self.token, auth, {"grant_type": "refresh_token", "refresh_token": token} | changes)

    def works(self, web: TestClient, token: str) -> bool:
        answer = web.get(self.api + self.me, headers={"authorization": f"Bearer {token}"})
        assert answer.status_code in (200, 401)
        return answer.status_code == 200


def consent(name: str, *paths: str, code_seconds: int, in_form: dict[str, str] | None = None, **asked: str) -> Consent:
    back = {"response_type": "code", "redirect_uri": f"http://127.0.0.1:8000/oauth/{name}/callback", "state": "s1"}
    return Consent(name, *paths, back | asked, asked["scope"], code_seconds, in_form or {})


X = consent(
    "x", "/x/i/oauth2/authorize", "/x/2", "/users/me", "/oauth2/token", "/oauth2/revoke",
    code_seconds=30, client_id="app", code_challenge=BASE64, code_challenge_method="S256",
    scope="tweet.read tweet.write users.read media.write offline.access",
)  # fmt: skip
TIKTOK = consent(
    "tiktok", "/tiktok/v2/auth/authorize/", "/tiktok/v2", "/user/info/?fields=open_id", "/oauth/token/",
    "/oauth/revoke/", code_seconds=300, in_form={"client_key": "app", "client_secret": "secret"},
    client_key="app", code_challenge=DIGEST.hex(), code_challenge_method="S256",
    scope="user.info.basic,video.publish,video.upload",
)  # fmt: skip
PINTEREST = consent(
    "pinterest", "/pinterest/oauth/", "/pinterest/v5", "/user_account", "/oauth/token", "/oauth/token/revoke",
    code_seconds=600, client_id="app", scope="user_accounts:read,boards:read,boards:write,pins:read,pins:write",
)  # fmt: skip
every_network = pytest.mark.parametrize("app", [X, TIKTOK, PINTEREST], ids=lambda app: app.name)


def refused(answer: Response) -> tuple[int, Any]:
    body = answer.json()
    return answer.status_code, body["error"] if "error" in body else body["code"]


# --- the consent page ------------------------------------------------------------------------------------------------


@every_network
def test_a_consent_leads_to_tokens(web: TestClient, app: Consent) -> None:
    page = app.open(web).text
    assert "@demo" in page
    assert ("checkbox" in page) == (app is TIKTOK), "elsewhere scopes are given all or none"
    back = app.decide(web, grants=app.scope)
    assert back["state"] == "s1"
    tokens = app.exchange(web, back["code"]).json()
    assert tokens["scope"] == (app.scope if app is TIKTOK else app.scope.replace(",", " "))
    assert tokens["expires_in"] == {X: 7200, TIKTOK: 86400, PINTEREST: 2592000}[app]
    assert app.works(web, tokens["access_token"])


@every_network
def test_a_denial_comes_back_as_access_denied(web: TestClient, app: Consent) -> None:
    assert {"error": "access_denied", "state": "s1"}.items() <= app.decide(web, "deny").items()


@pytest.mark.parametrize(
    ("app", "changes"),
    [
        *(
            (app, changes)
            for app in (X, TIKTOK, PINTEREST)
            for changes in (
                {"client_id": "", "client_key": ""},
                {"redirect_uri": app.back + "/"},
                {"response_type": "token"},
                {"scope": "pins:read tweets.write"},
                {"scope": ""},
            )
        ),
        (X, {"redirect_uri": "http://localhost:8000/oauth/x/callback"}),
        (X, {"state": ""}),
        (X, {"state": "s" * 501}),
        (X, {"code_challenge_method": "s256"}),
        (X, {"code_challenge": "short"}),
        (TIKTOK, {"redirect_uri": TIKTOK.back + "?a=1"}),
        (TIKTOK, {"state": ""}),
        (TIKTOK, {"code_challenge": ""}),
        (TIKTOK, {"code_challenge": BASE64}),
        (TIKTOK, {"code_challenge_method": "plain"}),
        (PINTEREST, {"redirect_uri": "http://box.example/callback"}),
    ],
)
def test_the_consent_page_refuses_what_does_not_match_and_never_redirects(
    world: World, web: TestClient, app: Consent, changes: dict[str, str]
) -> None:
    world.networks[app.name].add_app("app", "secret", [app.back])
    answer = app.open(web, **changes)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert any(name.split("_method")[0] in answer.text for name in changes)


# --- the exchange ----------------------------------------------------------------------------------------------------


@every_network
def test_a_code_works_once_in_its_time_and_for_its_own_app_and_address(
    web: TestClient, clock: HandClock, app: Consent
) -> None:
    once, other, elsewhere, in_time, late = (app.decide(web)["code"] for _ in range(5))
    assert app.exchange(web, once).status_code == 200
    used = app.exchange(web, once)
    assert refused(used) == {X: (400, "invalid_request"), TIKTOK: (400, "invalid_grant"), PINTEREST: (401, 2)}[app]
    assert app.exchange(web, other, auth=("other", "secret"), client_key="other").status_code >= 400
    assert app.exchange(web, elsewhere, redirect_uri=app.back + "/").status_code >= 400
    clock.forward(app.code_seconds - 1)
    assert app.exchange(web, in_time).status_code == 200
    clock.forward(1)
    assert refused(app.exchange(web, late)) == refused(used)


# --- refresh ---------------------------------------------------------------------------------------------------------


@every_network
def test_a_refresh_rotates_and_the_old_token_is_spent(world: World, web: TestClient, app: Consent) -> None:
    old = world.networks[app.name].grant("demo")
    new = app.refresh(web, old["refreshToken"]).json()
    assert new["refresh_token"] != old["refreshToken"]
    expected = {X: (400, "invalid_request"), TIKTOK: (400, "invalid_grant"), PINTEREST: (401, 2)}[app]
    assert refused(app.refresh(web, old["refreshToken"])) == expected
    assert app.works(web, old["accessToken"]) == (app is not X), "X ends the old access token with its pair"
    assert app.works(web, new["access_token"])
    assert app.refresh(web, new["refresh_token"]).status_code == 200, "a replay only is refused"


# --- the end of a token ----------------------------------------------------------------------------------------------


@every_network
def test_a_revocation_ends_the_consent_except_on_pinterest(world: World, web: TestClient, app: Consent) -> None:
    tokens = world.networks[app.name].grant("demo")
    revoked = app.ask(web, app.revoke, BASIC, {"token": tokens["refreshToken" if app is X else "accessToken"]})
    if app is PINTEREST:
        assert refused(revoked) == (403, 29)
        return
    assert revoked.json() == ({"revoked": True} if app is X else {})
    assert not app.works(web, tokens["accessToken"])
    assert app.refresh(web, tokens["refreshToken"]).status_code == 400


@every_network
def test_an_account_that_removes_access_ends_its_tokens(world: World, web: TestClient, app: Consent) -> None:
    tokens = world.networks[app.name].grant("demo")
    assert web.post(f"/_control/{app.name}/tokens", json={"username": "demo", "end": "removed"}).status_code == 200
    assert not app.works(web, tokens["accessToken"])
    assert app.refresh(web, tokens["refreshToken"]).status_code in (400, 401)


# --- accounts and secrets --------------------------------------------------------------------------------------------


def test_no_secret_shows_in_a_repr(world: World, tiktok: TikTokClient) -> None:
    granted = world.x.grant("demo")
    world.x.add_app("app", "hush-hush")
    tiktok.begin()
    (task,) = world.tiktok.tasks.values()
    shown = repr((world.x.tokens.bearer(granted["accessToken"]), world.x.apps, task))
    for secret in (granted["accessToken"], "hush-hush", task.upload_token):
        assert secret not in shown
