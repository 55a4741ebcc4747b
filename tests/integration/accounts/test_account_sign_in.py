"""Accounts of a network without a consent page are connected with the values of its fields."""

import logging
from typing import Any

import pytest

from socialpub.accounts import connect, profiles, tokens
from socialpub.accounts.connect import WrongValue, sign_in
from socialpub.accounts.remedies import Surface
from socialpub.accounts.tokens import Credentials
from socialpub.core.errors import InvalidRequest, NotFound, OperatorError, Unavailable
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db.states import ProfileStatus, State
from socialpub.db.tables import audit_log, profile_rows
from socialpub.providers.auth import Identity, Tokens
from socialpub.providers.responses import NoAnswer, NotSent, ProviderError, Rejected, Throttled
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.scripted_network import APP_PASSWORD, MAIN_PASSWORD, ScriptedSignInNetwork
from tests.support.select import select_all, select_value

DEMO = {"handle": "demo.test", "password": APP_PASSWORD}
STUDIO = {"handle": "studio.test", "password": APP_PASSWORD}
NOBODY = "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f"


@pytest.fixture
def network() -> ScriptedSignInNetwork:
    return ScriptedSignInNetwork()


@pytest.fixture
def appliance_options(network: ScriptedSignInNetwork) -> dict[str, Any]:
    return {"providers": {"bluesky": network}, "networks": ProvidersSection(bluesky={"enabled": True})}


def rows(rt: Runtime) -> list[Any]:
    return select_all(rt.db, "SELECT * FROM profile ORDER BY created_at, id")


def actions(rt: Runtime) -> list[str]:
    return [entry.action for entry in reversed(audit_log.load_page(rt.db).entries)]


# --- connecting and connecting again ---------------------------------------------------------------------------------


def test_an_account_is_connected_with_its_fields(rt, network):
    connected = sign_in(rt, "bluesky", {"handle": " demo.test ", "password": f"{APP_PASSWORD}\n"}, "News")
    profile = profile_rows.find(rt.db, connected.profile_id)
    assert (profile.name, profile.username, profile.status) == ("News", "demo.test", ProfileStatus.ACTIVE)
    assert (profile.account_id, tokens.to_account(profile).server) == ("did:plc:demo.test", "https://pds.test")
    assert network.auth.given == [DEMO]
    assert tokens.open_access_token(rt.secrets, profile) == "access-token-1"
    assert profile.access_expires_at < profile.refresh_expires_at
    assert not connected.revived
    assert actions(rt)[-1] == "profile.connected"
    assert select_value(rt.db, "SELECT count(*) FROM consent") == 0


def test_the_same_account_gives_its_profile_new_tokens(rt, network, clock):
    first = sign_in(rt, "bluesky", DEMO, "News")
    post = accept(rt, first.profile_id, body="Good evening", at=clock.now().replace(hour=18))
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, first.profile_id, "The session has ended."))
    again = sign_in(rt, "bluesky", DEMO, profile_id=first.profile_id)
    assert (again.profile_id, again.revived) == (first.profile_id, True)
    assert actions(rt)[-1] == "profile.reconnected"
    assert [row["name"] for row in rows(rt)] == ["News"]
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED


def test_another_account_is_refused_and_its_session_ends(rt, network):
    first = sign_in(rt, "bluesky", DEMO)
    before = [dict(row) for row in rows(rt)]
    with pytest.raises(OperatorError) as refused:
        sign_in(rt, "bluesky", STUDIO, profile_id=first.profile_id)
    assert refused.value.message == "@demo.test was to be connected again, but Bluesky returned @studio.test."
    assert refused.value.hint == (
        "Sign in as @demo.test. To connect @studio.test as well, run `socialpub admin connect-profile bluesky`."
    )
    assert [dict(row) for row in rows(rt)] == before
    assert network.auth.revoked == ["access-token-2"]


def test_a_disconnected_or_unknown_profile_is_refused_before_the_network_is_asked(rt, network):
    first = sign_in(rt, "bluesky", DEMO)
    rt.write(profiles.disconnect, first.profile_id)
    with pytest.raises(OperatorError, match="cannot be restored"):
        sign_in(rt, "bluesky", DEMO, profile_id=first.profile_id)
    with pytest.raises(NotFound):
        sign_in(rt, "bluesky", DEMO, profile_id=NOBODY)
    with pytest.raises(InvalidRequest):
        sign_in(rt, "bluesky", DEMO, name=" ")
    assert len(network.auth.given) == 1


def test_a_paused_installation_connects_an_account_and_revokes_nothing(rt, network):
    rt.write(resume.pause)
    first = sign_in(rt, "bluesky", DEMO)
    with pytest.raises(OperatorError):
        sign_in(rt, "bluesky", STUDIO, profile_id=first.profile_id)
    assert len(rows(rt)) == 1
    assert network.auth.revoked == []


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"handle": "", "password": APP_PASSWORD}, "handle", "Handle is empty. The handle of the account."),
        ({"handle": "demo.test", "password": " "}, "password", "App password is empty. Not the main password."),
        ({"handle": "demo.test"}, "password", "App password is empty. Not the main password."),
        ({"handle": "d" * 501, "password": "p"}, "handle", "Handle has more than 500 characters."),
        ({"handle": "other.test", "password": APP_PASSWORD}, "handle", "There is no account other.test."),
        (
            {"handle": "demo.test", "password": MAIN_PASSWORD},
            "password",
            "This is the main password. Create an app password in the app.",
        ),
    ],
)
def test_a_wrong_value_is_reported_at_its_field(rt, values, field, sentence):
    with pytest.raises(WrongValue) as refused:
        sign_in(rt, "bluesky", values)
    assert refused.value.field == field
    assert refused.value.sentence.startswith(sentence)
    assert rows(rt) == []


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (NoAnswer("Bluesky did not respond."), "Nothing was saved. Try again later."),
        (NotSent("Bluesky could not be reached."), "Nothing was saved. Try again later."),
        (Throttled("Bluesky's limit for sign-ins is reached."), "Nothing was saved. Try again later."),
        (Rejected("The account is suspended."), "Check the account at Bluesky and [providers.bluesky] in the"),
        (Rejected("The session has ended.", reauth=True), "To sign in again, press “Connect Bluesky” under Profiles."),
    ],
)
def test_a_failed_sign_in_saves_nothing_and_has_a_remedy(rt, network, error: ProviderError, hint):
    network.auth.answers = [error]
    with pytest.raises(OperatorError) as refused:
        sign_in(rt, "bluesky", DEMO, surface=Surface.DASHBOARD)
    assert refused.value.message == f"Bluesky did not sign in the account: {error.message}"
    assert refused.value.hint.startswith(hint)
    assert rows(rt) == []


def test_the_account_name_becomes_a_label_that_the_owner_could_have_set(rt, network):
    network.auth.answers = [
        (Identity("did:plc:1", "demo.test", "a\x00b\x1b[2J \u202eevil\ud83d", None), Tokens("access-1"))
    ]
    sign_in(rt, "bluesky", DEMO)
    (row,) = rows(rt)
    assert row["name"] == row["account_name"] == "ab[2J evil" == profiles.check_name(row["name"])
    network.auth.answers = [(Identity("did:plc:2", "\u202e", "\u200b", None), Tokens("access-2"))]
    sign_in(rt, "bluesky", DEMO)
    assert rows(rt)[1]["name"] == "did:plc:2"


@pytest.mark.parametrize("password", ["wrong-password", APP_PASSWORD])
def test_the_password_is_neither_stored_nor_logged(rt, network, password, caplog):
    caplog.set_level(logging.DEBUG)
    if password == APP_PASSWORD:
        network.auth.answers = [Rejected(f"The server quotes {password}.")]
    with pytest.raises(OperatorError) as refused:
        sign_in(rt, "bluesky", {**DEMO, "password": password})
    assert "****" in refused.value.sentence
    network.auth.answers = [(Identity("did:plc:1", "demo.test", f"Demo {password}", None), Tokens("access-1"))]
    sign_in(rt, "bluesky", {**DEMO, "password": password})
    dump = "\n".join(rt.db.connection().iterdump())
    assert "Demo ****" in dump
    for text in (refused.value.sentence, caplog.text, dump):
        assert password not in text


def test_without_room_for_the_tokens_the_network_is_not_asked(rt, network, monkeypatch):
    def refuse(_: Runtime) -> None:
        raise Unavailable("The disk is full.")

    monkeypatch.setattr(tokens, "require_disk_space", refuse)
    with pytest.raises(Unavailable, match="full"):
        sign_in(rt, "bluesky", DEMO)
    assert network.auth.given == []


def test_tokens_from_elsewhere_are_refused_with_the_way_to_connect(rt, network):
    with pytest.raises(OperatorError) as refused:
        connect.import_account(rt, "bluesky", Credentials("access-token"))
    assert refused.value.message == (
        "Bluesky accounts cannot be imported with existing tokens. They sign in with “Handle” and “App password”."
    )
    assert refused.value.hint == "Run `socialpub admin connect-profile bluesky`."


# --- the account of the day ------------------------------------------------------------------------------------------


def refreshed(rt: Runtime, network: ScriptedSignInNetwork, identity: Identity) -> Any:
    """Return the profile after a refresh that reports this account."""
    connected = sign_in(rt, "bluesky", DEMO)
    network.auth.refresh_answers = [Tokens("access-token-9", "refresh-token-9", 7200, identity=identity)]
    tokens.renew(rt, connected.profile_id)
    return profile_rows.find(rt.db, connected.profile_id)


def test_a_refresh_stores_a_new_handle_and_server_with_the_pair(rt, network):
    facts = {"server": "https://other.test", "blob_limit": 1_000}
    profile = refreshed(rt, network, Identity("did:plc:demo.test", "new.test", None, None, facts))
    assert tokens.open_access_token(rt.secrets, profile) == "access-token-9"
    assert (profile.username, profile.name) == ("new.test", "Demo.Test")
    assert dict(profile.facts) == facts
    assert "new.test" in {row["username"] for row in rows(rt)}


def test_the_tokens_of_another_account_are_refused(rt, network):
    with pytest.raises(Rejected, match="tokens of another account") as refused:
        refreshed(rt, network, Identity("did:plc:studio.test", "studio.test", None, None))
    assert refused.value.reauth
    (profile,) = (profile_rows.find(rt.db, row["id"]) for row in rows(rt))
    assert (profile.username, profile.status) == ("demo.test", ProfileStatus.REAUTH_REQUIRED)
    assert tokens.open_access_token(rt.secrets, profile) == "access-token-1"
    sign_in(rt, "bluesky", DEMO)
    assert profile_rows.find(rt.db, profile.id).status == ProfileStatus.ACTIVE
