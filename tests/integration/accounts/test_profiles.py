"""Accounts come, get new tokens, get defaults, and go."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import connect, profiles, tokens, upkeep
from socialpub.accounts.tokens import Credentials
from socialpub.core import clock as clocks
from socialpub.core.errors import InvalidRequest, NotFound, OperatorError
from socialpub.db.queries import api_json
from socialpub.db.states import State
from socialpub.db.tables import profile_rows
from socialpub.providers.auth import Account, Identity, Tokens
from socialpub.providers.responses import AppRefused, AuthExpired, NoAnswer, NotSent, Rejected, Throttled
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.runtime import Runtime
from tests.support.appliance import OWNER, accept, add_profile, end_deliveries, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork, ScriptedOAuth
from tests.support.select import select_one, select_value

GRANT = Credentials("access-a", "refresh-a")


class Desk(ScriptedOAuth):
    """A network that says who is who, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.who: Identity | Exception = Identity(
            "7", "seven", "Seven", "https://x.example/7.png", {"subscription_type": "Premium"}
        )
        self.expired: set[str] = set()
        self.revoked: list[tuple[str, str | None]] = []
        self.on_revoke: Exception | None = None

    def identify(self, http: object, account: Account, access_token: str) -> Identity:
        if access_token in self.expired:
            raise AuthExpired("X no longer accepts the access token.")
        if isinstance(self.who, Exception):
            raise self.who
        return self.who

    def revoke(self, http: object, account: Account, access_token: str, refresh_token: str | None) -> None:
        self.revoked.append((access_token, refresh_token))
        if self.on_revoke is not None:
            raise self.on_revoke

    def missing_scopes(self, scopes: frozenset[str]) -> list[str]:
        return [
            f"The scope {one} is missing." for one in ("tweet.write", "media.write") if scopes and one not in scopes
        ]

    def can_publish(self, scopes: frozenset[str]) -> bool:
        return not scopes or "tweet.write" in scopes


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def network(desk: Desk) -> ScriptedNetwork:
    network = ScriptedNetwork()
    network.auth = desk
    return network


def row(rt: Runtime, profile_id: str) -> Any:
    return select_one(rt.db, "SELECT * FROM profile WHERE id = ?", (profile_id,))


def access_of(rt: Runtime, profile_id: str) -> str | None:
    sealed = row(rt, profile_id)["access_token"]
    return None if sealed is None else rt.secrets.open(sealed, "profile", profile_id, "access_token")


# --- connecting ------------------------------------------------------------------------------------------------------


def test_an_account_is_connected_under_its_own_name(rt):
    imported = connect.import_account(rt, "x", GRANT)
    found = row(rt, imported.profile_id)
    assert (found["account_id"], found["name"], found["username"]) == ("7", "Seven", "seven")
    assert (found["status"], found["picture_url"]) == ("active", "https://x.example/7.png")
    assert json.loads(found["facts"]) == {"subscription_type": "Premium"}
    assert not imported.revived
    assert tokens.load_fresh(rt, imported.profile_id) == "access-a"


def test_the_owner_may_choose_the_name(rt):
    imported = connect.import_account(rt, "x", GRANT, "  News ")
    assert row(rt, imported.profile_id)["name"] == "News"
    rt.write(profiles.rename, imported.profile_id, "Old news")
    assert row(rt, imported.profile_id)["name"] == "Old news"
    for wrong in ("", "   ", "two\nlines", "x" * 201):
        with pytest.raises(InvalidRequest):
            rt.write(profiles.rename, imported.profile_id, wrong)
    with pytest.raises(NotFound):
        rt.write(profiles.rename, "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f", "Unknown")


def test_a_delivery_has_the_name_of_its_profile_until_it_ends(rt):
    profile = connect.import_account(rt, "x", GRANT).profile_id
    other = add_profile(rt, account_id="another")
    ended = {state: accept(rt, profile) for state in (State.PUBLISHED, State.FAILED, State.UNCONFIRMED)}
    for state, post in ended.items():
        end_deliveries(rt, post, state)
    canceled = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    rt.write(posts.cancel, canceled, OWNER)
    running, scheduled = accept(rt, profile, other), accept(rt, profile, at=rt.now() + timedelta(hours=1))
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'running' WHERE post_id = ?", (running,)))

    def names(post):
        return [one["profileName"] for one in json.loads(api_json.post(rt.db, post))["deliveries"]]

    rt.write(profiles.rename, profile, "News")
    assert (names(running), names(scheduled)) == (["News", "x profile"], ["News"])
    rt.write(connect.store, rt.providers["x"], Identity("7", "seven", "Eight", None), GRANT, None)
    assert names(scheduled) == ["News"], "the owner's name stays"
    rt.write(profiles.rename, profile, "Seven")
    rt.write(connect.store, rt.providers["x"], Identity("7", "seven", "Seven", None), GRANT, "Seven up")
    assert (names(running), names(scheduled)) == (["Seven up", "x profile"], ["Seven up"])
    assert [names(post) for post in (*ended.values(), canceled)] == [["Seven"]] * 4
    end_deliveries(rt, scheduled, State.FAILED)
    rt.write(profiles.rename, profile, "Later")
    assert names(scheduled) == ["Seven up"]
    logged = select_value(rt.db, "SELECT profile_name FROM log_entry WHERE post_id = ? ORDER BY n DESC", (scheduled,))
    assert logged == "Seven up", "as the log does"


def test_the_same_account_again_gives_its_profile_new_tokens(rt, clock):
    first = connect.import_account(rt, "x", GRANT, "News")
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, first.profile_id, "X refuses the tokens."))
    clock.forward(60)
    again = connect.import_account(rt, "x", Credentials("access-b"))
    assert again.profile_id == first.profile_id
    assert again.revived
    found = row(rt, first.profile_id)
    assert (found["status"], found["reason"], found["name"]) == ("active", None, "News")
    assert access_of(rt, first.profile_id) == "access-b"
    assert found["refresh_token"] is None, "the new grant stands alone: the old refresh token belongs to another one"
    assert found["created_at"] < found["updated_at"] == rt.stamp()


def test_an_account_that_was_disconnected_comes_back_as_a_new_profile(rt):
    first = connect.import_account(rt, "x", GRANT)
    rt.write(profiles.disconnect, first.profile_id)
    second = connect.import_account(rt, "x", GRANT)
    assert second.profile_id != first.profile_id
    assert not second.revived
    assert [one.status for one in profile_rows.list_all(rt.db)] == ["disconnected", "active"]


@pytest.mark.parametrize(
    "failure",
    [
        AuthExpired("X no longer accepts the access token."),
        Rejected("X refused.", status=403),
        NotSent("api.x.com could not be reached"),
        NoAnswer("X did not answer in time."),
        Throttled("X asks to wait."),
        AppRefused("X has suspended the app."),
    ],
)
def test_no_profile_is_saved_before_the_network_identified_the_account(rt, desk, failure):
    desk.who = failure
    with pytest.raises(OperatorError) as refused:
        connect.import_account(rt, "x", Credentials("access-a"))
    assert refused.value.hint
    assert "access-a" not in str(refused.value)
    assert profile_rows.list_all(rt.db) == []


def test_an_expired_access_token_is_renewed_before_the_import(rt, desk, clock):
    desk.expired = {"access-a"}
    desk.answers = [Tokens("access-b", "refresh-b", 7200)]
    imported = connect.import_account(rt, "x", GRANT)
    assert access_of(rt, imported.profile_id) == "access-b"
    assert desk.refreshes == ["refresh-a"]
    assert row(rt, imported.profile_id)["access_expires_at"] == clocks.after(rt.stamp(), 7200)


def test_a_missing_scope_is_reported_and_accepted_if_publishing_remains_possible(rt):
    imported = connect.import_account(rt, "x", Credentials("access-a", scopes=frozenset({"tweet.write"})))
    assert imported.missing == ("The scope media.write is missing.",)
    with pytest.raises(OperatorError, match="do not allow publishing"):
        connect.import_account(rt, "x", Credentials("access-b", scopes=frozenset({"media.write"})))
    assert access_of(rt, imported.profile_id) == "access-a"


@pytest.mark.parametrize(
    ("refresh", "refresh_ends", "shown"),
    [(None, False, "access"), ("refresh-a", False, None), ("refresh-a", True, "refresh")],
    ids=["no refresh token", "its end is unknown", "its end is known"],
)
def test_expires_at_is_when_the_owner_must_act(rt, clock, refresh, refresh_ends, shown):
    ends = {"access": clock.now() + timedelta(hours=2), "refresh": clock.now() + timedelta(days=180)}
    grant = Credentials("access-a", refresh, ends["access"], ends["refresh"] if refresh_ends else None)
    imported = connect.import_account(rt, "x", grant)
    assert row(rt, imported.profile_id)["expires_at"] == (clocks.stamp(ends[shown]) if shown else None)


# --- credentials -----------------------------------------------------------------------------------------------------


def test_credentials_are_read_as_the_network_wrote_them():
    read = connect.read_credentials(
        '{"accessToken": " at-1\\n", "refreshToken": "rt-1", "expiresAt": "2026-11-21T13:00:00+01:00",'
        ' "refreshExpiresAt": "2027-05-21T12:00:00.5Z", "scope": "tweet.read,tweet.write  users.read"}'
    )
    assert (read.access_token, read.refresh_token) == ("at-1", "rt-1")
    assert read.expires_at is not None
    assert clocks.stamp(read.expires_at) == "2026-11-21T12:00:00.000Z"
    assert read.refresh_expires_at is not None
    assert clocks.stamp(read.refresh_expires_at) == "2027-05-21T12:00:00.500Z"
    assert read.scopes == {"tweet.read", "tweet.write", "users.read"}
    assert connect.read_credentials('{"accessToken": "at-1"}') == Credentials("at-1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("{}", "accessToken is required"),
        ('{"accessToken": 5}', "accessToken must be a string, not a number"),
        ('{"accessToken": "two words"}', "accessToken contains spaces"),
        ('{"accessToken": "a", "refreshToken": ""}', "leave it out"),
        ('{"access_token": "a"}', "did you mean accessToken?"),
        ('{"accessToken": "a", "expires_in": 7200}', "expires_in is not known; did you mean expiresAt?"),
        ('{"accessToken": "a", "expiresAt": "2026-11-21T12:00:00"}', "with an offset"),
        ('{"accessToken": "a", "refreshExpiresAt": "2026-11-21T12:00:00Z"}', "without a refreshToken"),
        ('{"accessToken": "a", "scope": ["tweet.read"]}', "scope must be a string"),
    ],
)
def test_wrong_credentials_name_the_field_and_the_form(text, said):
    with pytest.raises(OperatorError) as refused:
        connect.read_credentials(text)
    assert said in refused.value.message
    assert '"accessToken"' in str(refused.value.hint)


def test_all_mistakes_are_reported_together_without_tokens():
    with pytest.raises(OperatorError) as refused:
        connect.read_credentials('{"accessToken": "secret words", "scope": 1, "expiresAt": 2}')
    assert "3 mistakes" in refused.value.message
    assert "secret" not in refused.value.message


# --- going -----------------------------------------------------------------------------------------------------------


def test_the_tokens_of_a_disconnected_profile_are_revoked_and_erased(rt, desk):
    stays, goes = add_profile(rt, account_id="1"), add_profile(rt, account_id="2")
    rt.write(profiles.disconnect, goes)
    assert upkeep.revoke_disconnected(rt) == 1
    assert desk.revoked == [("access-0", "refresh-0")]
    assert row(rt, goes)["access_token"] is row(rt, goes)["refresh_token"] is None
    assert access_of(rt, stays) == "access-0"
    assert upkeep.revoke_disconnected(rt) == 0


@pytest.mark.parametrize("verdict", [Rejected("X does not know the token.", status=400), AuthExpired("401")])
def test_tokens_that_the_network_no_longer_knows_are_erased_at_once(rt, desk, verdict):
    profile = add_profile(rt)
    rt.write(profiles.disconnect, profile)
    desk.on_revoke = verdict
    assert upkeep.revoke_disconnected(rt) == 1
    assert access_of(rt, profile) is None


def test_a_revocation_is_retried_for_an_hour(rt, desk, clock):
    profile = add_profile(rt)
    rt.write(profiles.disconnect, profile)
    desk.on_revoke = NoAnswer("X did not answer in time.")
    for _ in range(60):
        assert upkeep.revoke_disconnected(rt) == 0
        clock.forward(60)
    assert 5 <= len(desk.revoked) <= 20, "neither forgotten nor a hammer"
    assert access_of(rt, profile) == "access-0"
    assert upkeep.revoke_disconnected(rt) == 1
    assert access_of(rt, profile) is None
    assert select_value(rt.db, "SELECT count(*) FROM stored_wait") == 0


def test_a_revocation_waits_as_long_as_the_network_says(rt, desk, clock):
    rt.write(profiles.disconnect, add_profile(rt))
    desk.on_revoke = Throttled("X asks to wait.", retry_after_seconds=900)
    upkeep.revoke_disconnected(rt)
    clock.forward(899)
    upkeep.revoke_disconnected(rt)
    assert len(desk.revoked) == 1
    clock.forward(1)
    desk.on_revoke = None
    assert upkeep.revoke_disconnected(rt) == 1


def test_a_paused_appliance_revokes_nothing_but_erases_after_the_hour(rt, desk, clock):
    profile = add_profile(rt)
    rt.write(profiles.disconnect, profile)
    rt.write(resume.pause)
    assert upkeep.revoke_disconnected(rt) == 0
    clock.forward(3600)
    assert upkeep.revoke_disconnected(rt) == 1
    assert desk.revoked == []
    assert access_of(rt, profile) is None


def test_a_revocation_waits_for_a_running_refresh(rt, desk):
    profile = add_profile(rt)
    rt.write(profiles.disconnect, profile)
    with tokens.token_lock(rt, profile):
        assert upkeep.revoke_disconnected(rt) == 0
    assert desk.revoked == []
    assert upkeep.revoke_disconnected(rt) == 1


# --- defaults --------------------------------------------------------------------------------------------------------


@pytest.fixture
def real_appliance(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    """With the real reader of X's options."""
    rt = open_appliance(tmp_path, clock)
    yield rt
    rt.close()


def options_of(rt: Runtime, profile_id: str) -> Any:
    return json.loads(row(rt, profile_id)["options"])


def test_options_are_stored_under_canonical_names_and_can_be_removed(real_appliance):
    rt = real_appliance
    profile = add_profile(rt)
    given = profiles.read_pairs(["reply_settings=following", "madeWithAi=true", "communityId = 1234567890123456789"])
    expected = {"replySettings": "following", "madeWithAi": True, "communityId": "1234567890123456789"}
    assert rt.write(profiles.set_options, profile, given) == expected
    assert options_of(rt, profile) == expected
    rt.write(profiles.set_options, profile, {"replySettings": "verified", "made_with_ai": "", "communityId": "null"})
    assert options_of(rt, profile) == {"replySettings": "verified"}
    rt.write(profiles.set_options, profile, {"paidPartnership": ""})
    assert options_of(rt, profile) == {"replySettings": "verified"}


def test_all_wrong_options_are_reported_together_and_none_is_stored(real_appliance):
    rt = real_appliance
    profile = add_profile(rt)
    with pytest.raises(InvalidRequest) as refused:
        rt.write(
            profiles.set_options,
            profile,
            {"replySetings": "following", "madeWithAi": "maybe", "paidPartnership": "true"},
        )
    assert [error.path[-1] for error in refused.value.errors] == ["replySetings", "madeWithAi"]
    assert "replySettings" in refused.value.errors[0].message
    assert options_of(rt, profile) == {}
    with pytest.raises(NotFound):
        rt.write(profiles.set_options, "019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f", {"madeWithAi": "true"})


@pytest.mark.parametrize("pairs", [["replySettings"], ["=x"], ["a=1", "a=2"]])
def test_a_pair_must_be_a_key_and_a_value_once(pairs):
    with pytest.raises(InvalidRequest):
        profiles.read_pairs(pairs)


def test_a_paused_appliance_spends_no_refresh_token_for_an_import(rt, desk):
    rt.write(resume.pause)
    desk.expired = {"access-a"}
    with pytest.raises(OperatorError, match="paused"):
        connect.import_account(rt, "x", GRANT)
    assert desk.refreshes == []


def test_an_account_whose_revocation_fails_unexpectedly_rests_and_is_erased_after_the_hour(
    rt, desk, clock, monkeypatch
):
    broken, other = add_profile(rt, account_id="1"), add_profile(rt, account_id="2")
    for profile in (broken, other):
        rt.write(profiles.disconnect, profile)
    revoke = desk.revoke

    def fails(http, account, *given):
        if account.id == "1":
            asked.append(account.id)
            raise OverflowError("date value out of range")
        return revoke(http, account, *given)

    asked: list[str] = []
    monkeypatch.setattr(desk, "revoke", fails)
    assert [upkeep.revoke_disconnected(rt) for _ in range(2)] == [1, 0]
    assert (asked, access_of(rt, other), access_of(rt, broken)) == (["1"], None, "access-0")
    clock.forward(3600)
    assert upkeep.revoke_disconnected(rt) == 1
    assert access_of(rt, broken) is None
