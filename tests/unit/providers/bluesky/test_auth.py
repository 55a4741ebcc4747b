"""Sessions at Bluesky: sign-in, refresh and sign-out, and the servers that they trust."""

import pytest

from socialpub.core.settings.networks import BlueskySection
from socialpub.providers import ip_addresses
from socialpub.providers.auth import Account, OtherServer, SignInRefused
from socialpub.providers.bluesky import servers
from socialpub.providers.bluesky.auth import BlueskySignIn, clean_handle
from socialpub.providers.responses import AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from tests.unit.providers.bluesky.script import (
    ADAPTER,
    DID,
    PLC,
    SECTION,
    SERVICE,
    answer,
    document,
    http,
    refusal,
    session,
    token,
)

AUTH = BlueskySignIn(SECTION)
EMAIL = {"email_confirmed": True}
ACCOUNT = Account(DID, "studio.test", facts={"server": SERVICE})
GIVEN = {"handle": "studio.test", "password": "abcd-efgh-ijkl-mnop"}
LIMITS = answer(200, {"did": "did:web:service.test", "blobUploadLimit": 50_000_000})
NO_PROFILE = refusal(400, "RecordNotFound")
WRONG = refusal(401, "AuthenticationRequired", "Invalid identifier or password")
HOME = "https://home.test"
PUBLIC, PRIVATE = "93.184.215.14", "192.168.1.7"


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The IP addresses of host names."""
    known = {"home.test": [PUBLIC], "nas.test": [PRIVATE], "both.test": [PUBLIC, PRIVATE]}
    monkeypatch.setattr(
        ip_addresses, "look_up", lambda host, port: known.get(host, [host] if host[0].isdigit() else [])
    )
    monkeypatch.setattr(servers, "getproxies", dict)
    return known


def test_a_sign_in_returns_the_account_its_server_and_both_lifetimes():
    picture = {"displayName": "Studio", "avatar": {"ref": {"$link": "bafkrei7"}}}
    client, script = http(answer(200, session()), LIMITS, answer(200, {"value": picture}))
    identity, tokens = AUTH.sign_in(client, {"handle": " @Studio.test\u200b ", "password": " abcd-efgh-ijkl-mnop "})
    assert script.calls[0].json == {"identifier": "studio.test", "password": "abcd-efgh-ijkl-mnop"}
    assert (identity.account_id, identity.username, identity.name) == (DID, "studio.test", "Studio")
    assert identity.picture_url == f"{SERVICE}/xrpc/com.atproto.sync.getBlob?did={DID}&cid=bafkrei7"
    assert identity.facts == {"server": SERVICE, "blob_limit": 50_000_000, "email_confirmed": True}
    assert (tokens.expires_in_seconds, tokens.refresh_expires_in_seconds) == (7200, 7_776_000)
    assert script.over


def test_an_account_without_a_profile_and_a_server_without_limits_can_sign_in():
    client, _ = http(answer(200, session()), answer(500), NO_PROFILE)
    identity, _ = AUTH.sign_in(client, GIVEN)
    assert (identity.name, identity.picture_url, identity.facts) == (None, None, {"server": SERVICE, **EMAIL})


def test_the_main_password_is_refused_and_its_session_ended():
    main = session(accessJwt=token("com.atproto.access"))
    client, script = http(answer(200, main), answer(200))
    with pytest.raises(SignInRefused) as refused:
        AUTH.sign_in(client, GIVEN)
    assert refused.value.field == "password"
    assert "main password" in refused.value.message
    assert "App passwords" in refused.value.remedy
    assert script.asked[1] == "POST com.atproto.server.deleteSession"
    assert script.calls[1].request["token"] == main["refreshJwt"]


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ((refusal(401, "AuthFactorTokenRequired"),), "password"),
        ((refusal(401, "AccountTakedown"),), "handle"),
        ((answer(200, session(active=False, status="deactivated")), answer(200)), "handle"),
        ((WRONG, refusal(400, "HandleNotFound")), "handle"),
        ((WRONG, answer(200, {"did": DID}), answer(200, document(SERVICE))), "password"),
        ((WRONG, answer(200, {"did": DID}), answer(200, document("http://127.0.0.1:22"))), "handle"),
        ((answer(200, session(didDoc=document("http://127.0.0.1:22"))),), "handle"),
        ((answer(200, session(didDoc=document("https://a@home.test"))),), "handle"),
    ],
)
def test_what_the_owner_can_correct_names_the_field(answers, field):
    client, script = http(*answers)
    with pytest.raises(SignInRefused) as refused:
        AUTH.sign_in(client, GIVEN)
    assert refused.value.field == field
    assert script.over


@pytest.mark.parametrize(
    "handle", ["studio", "a@b.test", "studio .test!", "https://site.test", "", "x" * 300 + ".test"]
)
def test_what_is_not_a_handle_is_refused_without_a_call(handle):
    client, script = http()
    with pytest.raises(SignInRefused) as refused:
        AUTH.sign_in(client, {**GIVEN, "handle": handle})
    assert refused.value.field == "handle"
    assert script.calls == []


@pytest.mark.parametrize("named", [None, "stranger.test", "https://service.test", "home.test.stranger.test"])
def test_the_password_of_an_account_of_another_server_goes_nowhere_before_the_owner_confirms(named):
    asks_service = named is None or "service" in named
    client, script = http(*[WRONG] * asks_service, answer(200, {"did": DID}), answer(200, document(HOME + "/")))
    with pytest.raises(OtherServer) as other:
        AUTH.sign_in(client, GIVEN, named)
    assert other.value.server == "home.test"
    assert "studio.test is on the server home.test, not on" in other.value.message
    assert script.over
    assert not any(call.path.startswith(HOME) for call in script.calls)
    assert any("json" in call.request for call in script.calls) == asks_service


@pytest.mark.parametrize("named", ["home.test", "HOME.test/", " https://home.test "])
def test_an_account_of_another_server_signs_in_there(named):
    there = session(didDoc=document(HOME))
    client, script = http(
        answer(200, {"did": DID}), answer(200, document(HOME + "/")), answer(200, there), LIMITS, NO_PROFILE
    )
    identity, _ = AUTH.sign_in(client, GIVEN, named)
    assert identity.facts["server"] == HOME
    assert script.asked == [
        "GET com.atproto.identity.resolveHandle",
        f"GET {PLC}/{DID}",
        f"POST {HOME}/xrpc/com.atproto.server.createSession",
        f"GET {HOME}/xrpc/com.atproto.server.describeServer",
        f"GET {HOME}/xrpc/com.atproto.repo.getRecord",
    ]
    assert script.calls[2].json["identifier"] == DID
    assert all(call.request["address"] == PUBLIC for call in script.calls[2:])


def test_the_service_of_bluesky_decides_about_the_accounts_of_its_servers():
    """The entryway signs them in, so its refusal of a password is final and the owner is not asked about them."""
    hosted, service = "https://morel.us-east.host.bsky.network", "https://bsky.social"
    assert servers.is_of_service(hosted, service)
    assert servers.is_of_service(service, service)
    for other in (f"{hosted}.stranger.test", "https://host.bsky.network", "https://morelhost.bsky.network"):
        assert not servers.is_of_service(other, service)
    assert not servers.is_of_service(hosted, SERVICE)


@pytest.mark.parametrize("server", ["http://127.0.0.1:22", "https://nas.test", "http://home.test"])
def test_the_owner_is_not_asked_about_a_server_that_is_not_allowed(server):
    client, script = http(WRONG, answer(200, {"did": DID}), answer(200, document(server)))
    with pytest.raises(SignInRefused):
        AUTH.sign_in(client, GIVEN)
    assert script.over


def test_the_password_goes_only_to_the_server_whose_document_names_the_handle():
    client, script = http(WRONG, answer(200, {"did": DID}), answer(200, document(HOME, handle="other.test")))
    with pytest.raises(SignInRefused):
        AUTH.sign_in(client, GIVEN)
    assert script.over


def test_a_server_cannot_claim_the_account_of_another_server():
    stolen = session(did="did:plc:zzzzzzzzzzzzzzzzzzzzzzzz")
    client, _ = http(answer(200, {"did": DID}), answer(200, document(HOME)), answer(200, stolen))
    with pytest.raises(SignInRefused, match="another account"):
        AUTH.sign_in(client, GIVEN, "home.test")


def test_a_refresh_returns_the_next_pair_and_the_handle_of_the_day():
    client, script = http(answer(200, session(handle="New.test")))
    tokens = AUTH.refresh(client, ACCOUNT, "RT-1")
    assert script.asked == ["POST com.atproto.server.refreshSession"]
    assert script.calls[0].request["token"] == "RT-1"
    assert tokens.identity is not None
    assert (tokens.identity.account_id, tokens.identity.username) == (DID, "new.test")
    assert tokens.identity.facts == EMAIL
    assert tokens.expires_in_seconds == 7200


@pytest.mark.parametrize(("server", "facts"), [(HOME, {"server": HOME}), ("https://nas.test", {})])
def test_a_refresh_follows_a_move_to_a_usable_server_only(server, facts):
    client, _ = http(answer(200, session(didDoc=document(server))))
    identity = AUTH.refresh(client, ACCOUNT, "RT-1").identity
    assert identity is not None
    assert identity.facts == facts | EMAIL


@pytest.mark.parametrize(("said", "known"), [(True, True), (False, False), (None, None), ("no", None)])
def test_each_session_says_whether_the_email_address_is_confirmed(said, known):
    client, _ = http(answer(200, session(emailConfirmed=said)))
    identity = AUTH.refresh(client, ACCOUNT, "RT-1").identity
    assert identity is not None
    assert identity.facts == {"email_confirmed": known}
    rows = dict(ADAPTER.account_facts(identity.facts))
    assert ("Email address" in rows) == (known is not None)


def test_a_handle_that_no_longer_resolves_is_shown_as_the_did():
    client, _ = http(answer(200, session(handle="handle.invalid")))
    identity = AUTH.refresh(client, ACCOUNT, "RT-1").identity
    assert identity is not None
    assert identity.username == DID


@pytest.mark.parametrize(
    ("reply", "kind", "reauth"),
    [
        (refusal(400, "ExpiredToken", "Token has been revoked"), Rejected, True),
        (refusal(400, "InvalidToken"), Rejected, True),
        (refusal(400, "InvalidRequest", "Could not find user info for account"), Rejected, True),
        (refusal(401, "AccountTakedown"), Rejected, True),
        (refusal(403, "AccountNotFound"), Rejected, True),
        (refusal(429, "RateLimitExceeded", retry_after="30"), Throttled, False),
        (refusal(500, "InternalServerError"), NoAnswer, False),
        (answer(502, b"<html>"), NoAnswer, False),
        (answer(404, b"<html>"), NoAnswer, False),
        (refusal(400, "InvalidRequest", "Something else"), NoAnswer, False),
        (answer(200, {"did": DID}), NoAnswer, False),
        (answer(200, session(did="did:plc:zzzzzzzzzzzzzzzzzzzzzzzz")), NoAnswer, False),
        (NotSent("down"), NotSent, False),
    ],
)
def test_only_an_answer_about_the_session_ends_the_connection(reply, kind, reauth):
    client, _ = http(reply)
    with pytest.raises(kind) as failed:
        AUTH.refresh(client, ACCOUNT, "RT-1")
    assert getattr(failed.value, "reauth", False) is reauth


def test_a_sign_out_ends_the_refresh_token_and_an_ended_session_counts():
    client, script = http(answer(200), refusal(400, "ExpiredToken"), refusal(403, "AccountNotFound"))
    for _ in range(3):
        AUTH.revoke(client, ACCOUNT, "AT", "RT")
    assert [call.request["token"] for call in script.calls] == ["RT"] * 3
    client, _ = http(answer(503))
    with pytest.raises(NoAnswer):
        AUTH.revoke(client, ACCOUNT, "AT", "RT")


def test_an_expired_access_token_is_refreshed_before_the_account_is_read():
    client, _ = http(refusal(400, "ExpiredToken", "Token has expired"))
    with pytest.raises(AuthExpired):
        AUTH.identify(client, ACCOUNT, "AT")


def test_a_handle_is_cleaned():
    assert clean_handle("  @Studio.Test\u2069\n") == "studio.test"
    assert clean_handle("did:web:Home.test") == "did:web:Home.test"


OPEN = BlueskySection(
    enabled=True, service=SERVICE, plc_url=PLC, private_servers=("nas.test", "10.0.0.0/8", "127.0.0.1")
)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (f"{SERVICE}/xrpc/a", None),
        (f"{HOME}:8443/xrpc/a", PUBLIC),
        ("http://nas.test:2583/xrpc/a", PRIVATE),
    ],
)
def test_a_usable_server_is_called_at_its_checked_address(url, address):
    assert servers.pick_address(OPEN, url) == address


@pytest.mark.parametrize(
    "url",
    [
        "http://home.test/xrpc/a",  # public without https
        "https://both.test/xrpc/a",  # one private address is enough
        "http://service.test/xrpc/a",  # the configured host without its https
        "https://user@home.test/",
        "https://home.test\\@nas.test/",
        "https://home.test/?a=b",
        "ftp://home.test/",
        "https://home.test:99999/",
        "file:///etc/passwd",
    ],
)
def test_a_server_that_is_not_allowed_gets_no_call(url):
    with pytest.raises(NotSent):
        servers.pick_address(OPEN, url)


def test_a_private_address_needs_an_entry_of_the_owner():
    with pytest.raises(servers.ServerRefused, match="private_servers"):
        servers.pick_address(SECTION, "https://nas.test/xrpc/a")
