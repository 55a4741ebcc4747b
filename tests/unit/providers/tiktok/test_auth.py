"""OAuth at TikTok: identity, refresh, revocation and consent."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from socialpub.core.settings.networks import TikTokSection
from socialpub.providers.auth import Account
from socialpub.providers.responses import AuthExpired, HttpResponse, NoAnswer, ProviderError, Rejected, Throttled
from socialpub.providers.tiktok import TikTok
from socialpub.providers.tiktok.auth import TikTokOAuth
from tests.support.scripted_http import Answering


@pytest.fixture
def tiktok() -> TikTok:
    return TikTok(section())


def test_only_fields_within_the_granted_scopes_are_asked_for(tiktok):
    user = {"open_id": "oid", "union_id": "u", "display_name": "Owner", "avatar_url": "https://cdn.test/a"}
    body = {"data": {"user": user}, "error": {"code": "ok", "message": "", "log_id": "1"}}
    http = Answering(body)
    identity = tiktok.auth.identify(http, Account("", scopes=frozenset({"user.info.basic"})), "act.1")
    assert (identity.account_id, identity.name, identity.username) == ("oid", "Owner", None)
    assert http.calls[0]["params"] == {"fields": "open_id,union_id,display_name,avatar_url"}
    assert http.calls[0]["url"] == "https://tiktok.test/v2/user/info/"

    tiktok.auth.identify(
        Answering(body, calls=http.calls), Account("", scopes=frozenset({"user.info.profile"})), "act.1"
    )
    assert http.calls[1]["params"]["fields"].endswith(",username")


@pytest.mark.parametrize(
    ("status", "code", "kind", "reauth"),
    [
        (401, "access_token_invalid", AuthExpired, None),
        (200, "access_token_invalid", AuthExpired, None),
        (401, "scope_not_authorized", Rejected, True),
        (400, "scope_permission_missed", Rejected, True),
        (429, "rate_limit_exceeded", Throttled, None),
        (500, "internal_error", NoAnswer, None),
        (400, "invalid_params", Rejected, False),
        (200, "never_heard_of", Rejected, False),
    ],
)
def test_the_code_of_an_envelope_decides_and_not_its_status(tiktok, status, code, kind, reauth):
    http = Answering({"data": {}, "error": {"code": code, "message": "why", "log_id": "log1"}}, status=status)
    with pytest.raises(ProviderError) as caught:
        tiktok.auth.identify(http, Account(""), "act.1")
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.request_id) == (code, "log1")
    assert getattr(caught.value, "reauth", None) == reauth


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 407, 429, 500, 502])
@pytest.mark.parametrize("body", [b"<html>", b"", b"denied", b"[]", b'{"message": "x"}'])
def test_a_response_in_another_form_is_no_answer(tiktok, status, body):
    answer = HttpResponse(status, {"retry-after": "300"}, body)
    asked: list[Callable[[], object]] = [
        lambda: tiktok.auth.identify(Answering(answer), Account(""), "act.1"),
        lambda: tiktok.auth.refresh(Answering(answer), Account(""), "rft.1"),
        lambda: tiktok.auth.exchange(Answering(answer), "c", REDIRECT, VERIFIER),
    ]
    if status != 200 or body not in (b"", b'{"message": "x"}'):
        asked.append(lambda: tiktok.auth.revoke(Answering(answer), Account(""), "act.1", None))
    for ask in asked:
        with pytest.raises(NoAnswer):
            ask()


def test_each_endpoint_has_one_form_and_the_other_one_is_no_answer(tiktok):
    envelope = {"data": {}, "error": {"code": "invalid_grant", "message": "why", "log_id": "log1"}}
    flat = {"error": "access_token_invalid", "error_description": "why", "log_id": "log1"}
    with pytest.raises(NoAnswer):
        tiktok.auth.refresh(Answering(envelope, status=400), Account(""), "rft.1")
    with pytest.raises(NoAnswer):
        tiktok.auth.identify(Answering(flat, status=401), Account(""), "act.1")


def test_a_rate_limit_of_the_token_endpoint_needs_tiktoks_form(tiktok):
    body = json.dumps({"error": "rate_limit_exceeded", "log_id": "log1"}).encode()
    headers = {"retry-after": "Sat, 21 Nov 2026 12:05:00 GMT", "date": "Sat, 21 Nov 2026 12:00:00 GMT"}
    with pytest.raises(Throttled) as caught:
        tiktok.auth.refresh(Answering(HttpResponse(429, headers, body)), Account(""), "rft.1")
    assert caught.value.retry_after_seconds == 300


def test_a_refresh_brings_a_new_pair_and_sends_the_credentials_in_the_body(tiktok):
    http = Answering(
        {
            "open_id": "oid",
            "scope": "user.info.basic,video.upload",
            "access_token": "act.2",
            "expires_in": 86400,
            "refresh_token": "rft.2",
            "refresh_expires_in": 31536000,
        }
    )
    tokens = tiktok.auth.refresh(http, Account(""), "rft.1")
    assert (tokens.access_token, tokens.refresh_token) == ("act.2", "rft.2")
    assert (tokens.expires_in_seconds, tokens.refresh_expires_in_seconds) == (86400, 31536000)
    assert tokens.scopes == frozenset({"user.info.basic", "video.upload"})
    assert http.calls[0]["form"] == {
        "client_key": "ck",
        "client_secret": "cs-secret",
        "grant_type": "refresh_token",
        "refresh_token": "rft.1",
    }


@pytest.mark.parametrize(
    ("status", "error", "kind", "reauth"),
    [
        (400, "invalid_grant", Rejected, True),
        (200, "invalid_grant", Rejected, True),
        (401, "invalid_client", Rejected, False),
        (400, "invalid_request", Rejected, False),
        (400, "unauthorized_client", Rejected, False),
        (200, "server_error", NoAnswer, None),
        (503, "temporarily_unavailable", NoAnswer, None),
    ],
)
def test_only_a_dead_refresh_token_sends_the_owner_to_connect_again(tiktok, status, error, kind, reauth):
    body = {"error": error, "error_description": "because", "log_id": "log2"}
    with pytest.raises(ProviderError) as caught:
        tiktok.auth.refresh(Answering(body, status=status), Account(""), "rft.1")
    assert type(caught.value) is kind
    assert getattr(caught.value, "reauth", None) == reauth
    assert "rft.1" not in caught.value.message
    assert "cs-secret" not in caught.value.message


def test_revoking_sends_the_access_token_and_accepts_an_empty_body(tiktok):
    http = Answering(HttpResponse(200, {}, b""))
    tiktok.auth.revoke(http, Account(""), "act.1", "rft.1")
    assert http.calls[0]["form"]["token"] == "act.1"
    tiktok.auth.revoke(Answering({}), Account(""), "act.1", "rft.1")
    refusal = HttpResponse(200, {}, json.dumps({"error": "invalid_client"}).encode())
    with pytest.raises(Rejected):
        tiktok.auth.revoke(Answering(refusal), Account(""), "act.1", None)


VERIFIER = "tiktok-pkce-demo-verifier-0123456789-ABCDEFGHIJ_~."
REDIRECT = "https://box.example.net/oauth/tiktok/callback"


def section(**more: Any) -> TikTokSection:
    return TikTokSection(client_key="ck", client_secret=SecretStr("cs-secret"), api_url="https://tiktok.test", **more)


def test_the_consent_page_gets_a_challenge_in_hexadecimal():
    url = TikTokOAuth(section()).authorize_url(redirect_uri=REDIRECT, state="st", verifier=VERIFIER)
    assert url.startswith("https://www.tiktok.com/v2/auth/authorize/?")
    assert parse_qs(urlsplit(url).query) == {
        "client_key": ["ck"],
        "response_type": ["code"],
        "scope": ["user.info.basic,video.publish,video.upload"],
        "redirect_uri": [REDIRECT],
        "state": ["st"],
        "code_challenge": ["e37f4614c3eacf4a17d267137a6650113091cfcdcfb013f810d241ee62f38c9a"],
        "code_challenge_method": ["S256"],
    }


def test_the_consent_page_is_asked_for_what_the_owner_lists():
    asking = TikTokOAuth(section(scopes=("user.info.basic", "video.upload", "video.list")))
    url = asking.authorize_url(redirect_uri=REDIRECT, state="st", verifier=VERIFIER)
    assert parse_qs(urlsplit(url).query)["scope"] == ["user.info.basic,video.upload,video.list"]


def test_pkce_can_be_turned_off_on_both_sides():
    plain = section(pkce=False)
    assert "code_challenge" not in TikTokOAuth(plain).authorize_url(
        redirect_uri=REDIRECT, state="st", verifier=VERIFIER
    )
    http = Answering({"access_token": "act.1"})
    TikTokOAuth(plain).exchange(http, code="c*!1", redirect_uri=REDIRECT, verifier=VERIFIER)
    assert "code_verifier" not in http.calls[0]["form"]


def test_pkce_can_have_the_standards_challenge():
    standard = TikTokOAuth(section(pkce="base64url"))
    query = parse_qs(urlsplit(standard.authorize_url(redirect_uri=REDIRECT, state="st", verifier=VERIFIER)).query)
    assert query["code_challenge"] == ["439GFMPqz0oX0mcTemZQETCRz83PsBP4ENJB7mLzjJo"]
    assert query["code_challenge_method"] == ["S256"]
    http = Answering({"access_token": "act.1"})
    standard.exchange(http, code="c*!1", redirect_uri=REDIRECT, verifier=VERIFIER)
    assert http.calls[0]["form"]["code_verifier"] == VERIFIER


def test_a_challenge_that_tiktok_refuses_names_the_setting_and_its_values():
    refused = {"error": "invalid_request", "error_description": "Code verifier or code challenge is invalid."}
    with pytest.raises(Rejected) as caught:
        TikTokOAuth(section()).exchange(
            Answering(refused, status=400), code="c", redirect_uri=REDIRECT, verifier=VERIFIER
        )
    said = caught.value.message
    assert "Code verifier or code challenge is invalid. Set pkce in [providers.tiktok] to another value" in said
    assert all(value in said for value in ("true (", '"base64url" (', "false ("))
    assert not caught.value.reauth, "another consent with the same setting ends the same way"
    assert VERIFIER not in said


def test_a_code_is_exchanged_unchanged_with_the_same_redirect_address():
    http = Answering({"access_token": "act.1", "refresh_token": "rft.1", "scope": "user.info.basic,video.upload"})
    tokens = TikTokOAuth(section()).exchange(http, code="c*!1", redirect_uri=REDIRECT, verifier=VERIFIER)
    assert http.calls[0]["url"] == "https://tiktok.test/v2/oauth/token/"
    assert http.calls[0]["form"] == {
        "client_key": "ck",
        "client_secret": "cs-secret",
        "grant_type": "authorization_code",
        "code": "c*!1",
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
    }
    assert (tokens.access_token, tokens.refresh_token) == ("act.1", "rft.1")
    assert tokens.scopes == frozenset({"user.info.basic", "video.upload"})


@pytest.mark.parametrize(
    ("error", "again"),
    [
        ("invalid_request", True),
        ("invalid_grant", True),
        ("access_denied", True),
        ("invalid_client", False),
        ("unauthorized_client", False),
        ("invalid_scope", False),
        ("unsupported_grant_type", False),
    ],
)
def test_a_refused_code_shows_whether_the_owner_connects_again(error, again):
    http = Answering({"error": error, "error_description": "because", "log_id": "log3"}, status=400)
    with pytest.raises(Rejected) as caught:
        TikTokOAuth(section()).exchange(http, code="secret-code", redirect_uri=REDIRECT, verifier=VERIFIER)
    assert (caught.value.reauth, caught.value.code) == (again, error)
    assert "secret-code" not in caught.value.message
