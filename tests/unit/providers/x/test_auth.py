"""OAuth at X: only a response about the token itself requires a new consent."""

from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from socialpub.core.settings.networks import XSection
from socialpub.providers.auth import Account
from socialpub.providers.http import Http
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.providers.x.auth import SCOPES, XOAuth
from tests.unit.providers.x.script import API, SECTION, Script, answer, data, problem

OAUTH = XOAuth(SECTION)
ALL_SCOPES = frozenset(SCOPES)
TOO_MANY = {"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429}
PAIR = {
    "token_type": "bearer",
    "expires_in": 7200,
    "access_token": "AT-2",
    "refresh_token": "RT-2",
    "scope": "users.read tweet.read tweet.write media.write offline.access",
}


def http(*answers: Any) -> tuple[Http, Script]:
    script = Script(*answers)
    return cast(Http, script), script


def refused(status: int, error: str, description: str = "") -> Any:
    return answer(status, {"error": error, "error_description": description})


def test_a_refresh_sends_the_credentials_twice_and_returns_the_new_pair():
    client, script = http(answer(200, PAIR))
    tokens = OAUTH.refresh(client, Account(""), "RT-1")
    assert script.asked == ["POST /2/oauth2/token"]
    request = script.calls[0].request
    assert request["form"] == {"grant_type": "refresh_token", "refresh_token": "RT-1", "client_id": "client"}
    assert request["auth"] == ("client", "hush")
    assert (tokens.access_token, tokens.refresh_token, tokens.expires_in_seconds) == ("AT-2", "RT-2", 7200)
    assert tokens.scopes == ALL_SCOPES
    assert "AT-2" not in repr(tokens)


def test_a_grant_without_offline_access_has_no_refresh_token():
    client, _ = http(answer(200, {"access_token": "AT-2"}))
    tokens = OAUTH.refresh(client, Account(""), "RT-1")
    assert (tokens.refresh_token, tokens.expires_in_seconds, tokens.scopes) == (None, None, None)


@pytest.mark.parametrize(
    ("reply", "kind", "reauth"),
    [
        (refused(400, "invalid_request", "Value passed for the token was invalid."), Rejected, True),
        (refused(400, "invalid_grant", "Value passed for the token was invalid."), Rejected, True),
        (refused(400, "invalid_request", "Missing required parameter [client_id]."), Rejected, False),
        (refused(401, "unauthorized_client", "Missing valid authorization header"), Rejected, False),
        (refused(401, "invalid_client"), Rejected, False),
        (refused(400, "invalid_client"), Rejected, False),
        (problem(429, "Too Many Requests"), Throttled, None),
        (refused(429, "slow_down"), Throttled, None),
        (answer(500, b"<html>"), NoAnswer, None),
        (answer(503, {"error": "invalid_grant"}), NoAnswer, None),
        (answer(403, b"<html>Cloudflare</html>"), NoAnswer, None),
        (answer(200, b"<html>"), NoAnswer, None),
        (answer(200, {"token_type": "bearer"}), NoAnswer, None),
        (NotSent("refused"), NotSent, None),
    ],
)
def test_a_failed_refresh_raises_the_error_of_its_cause(reply, kind, reauth):
    client, _ = http(reply)
    with pytest.raises(kind) as failure:
        OAUTH.refresh(client, Account(""), "RT-1")
    if isinstance(failure.value, Rejected):
        assert failure.value.reauth is reauth
    assert "RT-1" not in str(failure.value)
    assert "hush" not in str(failure.value)


def test_a_full_window_counts_from_the_networks_own_clock():
    client, _ = http(answer(429, TOO_MANY, x_rate_limit_reset="1000000060", date="Sun, 09 Sep 2001 01:46:40 GMT"))
    with pytest.raises(Throttled) as limited:
        OAUTH.refresh(client, Account(""), "RT-1")
    assert limited.value.retry_after_seconds == 60


def test_the_consent_page_is_asked_with_pkce_and_encoded_spaces():
    # RFC 7636, appendix B.
    url = OAUTH.authorize_url(
        redirect_uri="http://127.0.0.1:8000/oauth/x/callback",
        state="s" * 40,
        verifier="dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    )
    assert url.startswith("https://x.com/i/oauth2/authorize?")
    assert "+" not in url
    assert "tweet.read%20tweet.write%20users.read%20media.write%20offline.access" in url
    query = {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
    assert query["code_challenge"] == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert query["code_challenge_method"] == "S256"
    assert query["response_type"] == "code"
    assert query["client_id"] == "client"
    assert query["redirect_uri"] == "http://127.0.0.1:8000/oauth/x/callback"


def test_a_code_is_exchanged_with_its_verifier():
    client, script = http(answer(200, PAIR))
    assert OAUTH.exchange(client, code="c", redirect_uri="http://a/b", verifier="v").access_token == "AT-2"
    assert script.calls[0].request["form"] == {
        "grant_type": "authorization_code",
        "code": "c",
        "redirect_uri": "http://a/b",
        "code_verifier": "v",
        "client_id": "client",
    }


@pytest.mark.parametrize(
    ("description", "begin_again"),
    [
        ("Value passed for the authorization code was invalid.", True),
        ("Value passed for the redirect uri did not match the uri of the authorization code.", False),
    ],
)
def test_a_refused_code_means_beginning_again_or_wrong_settings(description, begin_again):
    client, _ = http(refused(400, "invalid_request", description))
    with pytest.raises(Rejected) as failure:
        OAUTH.exchange(client, code="c", redirect_uri="http://a/b", verifier="v")
    assert failure.value.reauth is begin_again
    assert description.lower() in failure.value.message.lower()


def test_the_account_is_known_by_its_id():
    client, script = http(
        data(
            id="2244990001",
            name="Acme",
            username="acme",
            profile_image_url="https://pbs.twimg.com/profile_images/1/a_normal.jpg",
            verified=True,
            verified_type="blue",
            subscription_type="Premium",
            something_new=1,
        )
    )
    who = OAUTH.identify(client, Account(""), "AT")
    assert (who.account_id, who.username, who.name) == ("2244990001", "acme", "Acme")
    assert who.picture_url == "https://pbs.twimg.com/profile_images/1/a_normal.jpg"
    assert who.facts == {"subscription_type": "Premium", "verified": True, "verified_type": "blue"}
    assert "subscription_type" in script.calls[0].params["user.fields"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (problem(401, "Unauthorized"), AuthExpired),
        (problem(403, "Forbidden"), Rejected),
        (answer(429, TOO_MANY, x_rate_limit_reset="1700000000"), Throttled),
        (answer(502, b"<html>"), NoAnswer),
        (answer(200, {"errors": [{"message": "no"}]}), NoAnswer),
    ],
)
def test_a_response_without_an_account_is_no_answer(reply, kind):
    client, _ = http(reply)
    with pytest.raises(kind):
        OAUTH.identify(client, Account(""), "AT")


def test_both_tokens_are_revoked_and_an_unknown_token_counts_as_revoked():
    client, script = http(
        answer(200, {"revoked": True}), refused(400, "invalid_request", "Value passed for the token was invalid.")
    )
    OAUTH.revoke(client, Account(""), "AT", "RT")
    assert [call.request["form"]["token"] for call in script.calls] == ["RT", "AT"]
    client, script = http(answer(200))
    OAUTH.revoke(client, Account(""), "AT", None)
    assert script.over


def test_a_failed_revocation_is_an_error():
    for reply, kind in ((answer(503), NoAnswer), (refused(401, "unauthorized_client"), Rejected)):
        client, _ = http(reply)
        with pytest.raises(kind):
            OAUTH.revoke(client, Account(""), "AT", "RT")


def test_missing_scopes_are_sentences_and_unknown_scopes_are_none():
    assert OAUTH.missing_scopes(ALL_SCOPES) == []
    assert OAUTH.missing_scopes(frozenset()) == []
    (sentence,) = OAUTH.missing_scopes(ALL_SCOPES - {"media.write"})
    assert "media.write" in sentence
    assert OAUTH.can_publish(ALL_SCOPES - {"media.write"})
    assert OAUTH.can_publish(frozenset())
    assert not OAUTH.can_publish(ALL_SCOPES - {"tweet.write"})


PUBLIC = XOAuth(XSection(client_id="native", api_url=API))


@pytest.mark.parametrize(
    "call",
    [
        lambda side, client: side.exchange(client, code="c", redirect_uri="http://a/b", verifier="v"),
        lambda side, client: side.refresh(client, Account(""), "RT-1"),
        lambda side, client: side.revoke(client, Account(""), "AT", None),
    ],
    ids=["exchange", "refresh", "revoke"],
)
@pytest.mark.parametrize(("side", "name", "basic"), [(OAUTH, "client", ("client", "hush")), (PUBLIC, "native", None)])
def test_an_app_names_itself_in_the_body_and_sends_its_secret_as_basic(call, side, name, basic):
    client, script = http(answer(200, PAIR))
    call(side, client)
    (request,) = [one.request for one in script.calls]
    assert (request["form"]["client_id"], request["auth"]) == (name, basic)
    assert "client_secret" not in request["form"]


@pytest.mark.parametrize(("side", "remedy"), [(PUBLIC, "Set client_secret"), (OAUTH, "leave client_secret empty")])
def test_a_refused_app_kind_names_the_setting(side, remedy):
    client, _ = http(refused(401, "unauthorized_client", "Missing valid authorization header"))
    with pytest.raises(Rejected) as failure:
        side.refresh(client, Account(""), "RT-1")
    assert remedy in failure.value.message
    assert not failure.value.reauth
