"""OAuth at Pinterest: the consent page and the tokens."""

from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import pytest

from socialpub.core.settings.networks import PINTEREST_SCOPES, PINTEREST_SECRET_SCOPES
from socialpub.providers.auth import Account
from socialpub.providers.http import Http
from socialpub.providers.pinterest.auth import PinterestOAuth
from socialpub.providers.responses import AppRefused, NoAnswer, ProviderError, Rejected, Throttled
from tests.unit.providers.pinterest.script import SECTION_OF_THE_CONFIGURATION, Script, answer, error

OAUTH = PinterestOAuth(SECTION_OF_THE_CONFIGURATION)
BACK = "https://appliance.example/oauth/pinterest/callback"
GRANTED = {
    "access_token": "pina_1",
    "refresh_token": "pinr_1",
    "expires_in": 2592000,
    "refresh_token_expires_in": 5184000,
    "scope": "boards:read boards:write pins:read pins:write user_accounts:read",
}


def exchange(script: Script, verifier: str = "v" * 43) -> Any:
    return OAUTH.exchange(cast(Http, script), code="code-1", redirect_uri=BACK, verifier=verifier)


@pytest.mark.parametrize("verifier", [None, "v" * 43])
def test_the_consent_page_is_asked_for_all_five_scopes_and_never_for_pkce(verifier):
    url = OAUTH.authorize_url(redirect_uri=BACK, state="s&1", verifier=verifier)
    assert url.startswith("https://www.pinterest.com/oauth/?")
    assert dict(parse_qsl(urlsplit(url).query, strict_parsing=True)) == {
        "client_id": "app",
        "redirect_uri": BACK,
        "response_type": "code",
        "scope": "user_accounts:read,boards:read,boards:write,pins:read,pins:write",
        "state": "s&1",
    }


def test_the_configured_scopes_are_asked_for_and_those_that_were_not_granted_are_reported():
    scopes = (*PINTEREST_SCOPES, *PINTEREST_SECRET_SCOPES)
    oauth = PinterestOAuth(SECTION_OF_THE_CONFIGURATION.model_copy(update={"scopes": scopes}))
    url = oauth.authorize_url(redirect_uri=BACK, state="s", verifier="")
    assert dict(parse_qsl(urlsplit(url).query))["scope"] == ",".join(scopes)
    granted = frozenset(scopes) - {"pins:write_secret"}
    assert oauth.missing_scopes(granted) == ["pins:write_secret was not granted, so secret boards cannot be used."]
    assert oauth.can_publish(granted)
    assert oauth.missing_scopes(frozenset()) == []


def test_a_code_is_exchanged_with_basic_and_a_form_for_a_refresh_token_without_end():
    script = Script(answer(200, GRANTED))
    tokens = exchange(script, verifier="v" * 43)
    assert script.asked == ["POST /oauth/token"]
    request = script.calls[0].request
    assert request["auth"] == ("app", "app-secret")
    assert request["form"] == {
        "grant_type": "authorization_code",
        "code": "code-1",
        "redirect_uri": BACK,
        "continuous_refresh": "true",
    }
    assert (tokens.access_token, tokens.refresh_token) == ("pina_1", "pinr_1")
    assert (tokens.expires_in_seconds, tokens.refresh_expires_in_seconds) == (2592000, 5184000)
    assert tokens.scopes == set(GRANTED["scope"].split())  # type: ignore[attr-defined]
    assert "pina_1" not in repr(tokens)


def test_values_that_the_response_lacks_stay_unknown():
    tokens = exchange(Script(answer(201, {"access_token": "pina_1"})))
    assert (tokens.refresh_token, tokens.expires_in_seconds, tokens.scopes) == (None, None, None)


@pytest.mark.parametrize(
    ("reply", "kind", "reauth"),
    [
        (error(401, 2, "Authentication failed."), Rejected, True),
        (error(401, 3, "Consumer type is not supported"), AppRefused, None),
        (error(400, 1, "Missing request body"), Rejected, False),
        (error(429, 8), Throttled, None),
        (error(500, 0), NoAnswer, None),
        (answer(200, b"<html>"), NoAnswer, None),
        (answer(401, b"<html>"), NoAnswer, None),
        (answer(401, b""), NoAnswer, None),
        (answer(400, {"message": "Bad request"}), NoAnswer, None),
        (answer(403, b"<html>"), NoAnswer, None),
    ],
)
def test_a_refused_consent_or_refresh_has_a_message(reply, kind, reauth):
    with pytest.raises(ProviderError) as caught:
        exchange(Script(reply))
    with pytest.raises(ProviderError) as refused:
        OAUTH.refresh(cast(Http, Script(reply)), Account(""), "pinr_1")
    for one in (caught.value, refused.value):
        assert type(one) is kind
        assert getattr(one, "reauth", None) == reauth
        assert "code-1" not in one.message
        assert "pinr_1" not in one.message


def test_a_refresh_and_a_revocation_are_as_pinterest_describes_them():
    script = Script(answer(200, GRANTED), error(403, 29, "Only system users"))
    OAUTH.refresh(cast(Http, script), Account(""), "pinr_0")
    OAUTH.revoke(cast(Http, script), Account(""), "pina_1", "pinr_1")
    assert script.asked == ["POST /oauth/token", "POST /oauth/token/revoke"]


def test_a_page_instead_of_a_revocation_response_is_no_answer():
    OAUTH.revoke(cast(Http, Script(answer(200))), Account(""), "pina_1", "pinr_1")
    for status in (200, 401, 403, 404, 500):
        with pytest.raises(NoAnswer):
            OAUTH.revoke(cast(Http, Script(answer(status, b"<html>"))), Account(""), "pina_1", "pinr_1")
