"""Bluesky accounts are connected with an app password, and stay connected when their handle changes."""

import logging
from typing import Any

import pytest

from socialpub.accounts import grants, profiles, tokens, upkeep
from socialpub.accounts.account_sign_in import WrongValue, sign_in
from socialpub.core.errors import OperatorError
from socialpub.db.states import ProfileStatus
from socialpub.db.tables import profile_rows
from socialpub.db.tables.profile_rows import Profile
from socialpub.providers.responses import Rejected
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.sandbox_http import HOST, providers_of_the_sandbox

WAY = "open Settings, Privacy and security, App passwords"


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return {**sandbox_options, "networks": providers_of_the_sandbox(bluesky=True)}


@pytest.fixture
def demo(world: World) -> dict[str, str]:
    account = world.bluesky.existing_account("demo")
    return {"handle": account.username, "password": account.app_password}


def stored(rt: Runtime) -> Profile:
    (row,) = profile_rows.list_all(rt.reader)
    return profiles.get(rt.reader, row.id)


@pytest.mark.parametrize("handle", ["demo.test", "@Demo.TEST ", "\u2066demo.test\u2069", "did"])
def test_an_account_is_connected_however_its_handle_is_written(rt, world, demo, handle):
    account = world.bluesky.existing_account("demo")
    connected = sign_in(rt, "bluesky", {**demo, "handle": account.did if handle == "did" else handle})
    profile = stored(rt)
    assert (profile.id, profile.account_id, profile.username) == (connected.profile_id, account.did, "demo.test")
    assert profile.facts["server"] == f"{HOST}/bluesky"
    assert tokens.load_fresh(rt, profile.id)
    assert account.app_password not in "\n".join(rt.db.connection().iterdump())


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"password": "aaaa-bbbb-cccc-dddd"}, "password", WAY),
        ({"password": "the main password of demo"}, "password", WAY),
        ({"handle": "nobody.test"}, "handle", "nobody.test"),
        ({"handle": "not a handle"}, "handle", "This is not a handle."),
    ],
)
def test_what_the_owner_can_correct_is_reported_at_its_field(rt, demo, given, field, said, caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(WrongValue) as refused:
        sign_in(rt, "bluesky", demo | given)
    assert refused.value.field == field
    assert said in refused.value.sentence
    assert (demo | given)["password"] not in refused.value.sentence + caplog.text
    assert profile_rows.list_all(rt.reader) == []


def test_the_refusal_of_the_main_password_says_so_and_ends_its_session(rt, world, demo):
    with pytest.raises(WrongValue, match="main password"):
        sign_in(rt, "bluesky", {**demo, "password": "the main password of demo"})
    assert world.bluesky.counts["delete_session"] == 1


def test_an_account_that_is_not_active_is_refused(rt, world, demo):
    world.bluesky.change_account("demo", status="deactivated")
    with pytest.raises(OperatorError, match="deactivated"):
        sign_in(rt, "bluesky", demo)
    assert profile_rows.list_all(rt.reader) == []


def test_an_outage_saves_nothing(rt, world, demo):
    world.bluesky.next("create_session").fails_with(502)
    with pytest.raises(OperatorError) as refused:
        sign_in(rt, "bluesky", demo)
    assert refused.value.hint == "Nothing was saved. Try again later."
    assert sign_in(rt, "bluesky", demo)


def test_a_refresh_shows_the_handle_of_the_day(rt, world, demo, clock):
    connected = sign_in(rt, "bluesky", demo)
    world.bluesky.change_account("demo", handle="new.test")
    clock.forward(7_200)
    assert tokens.load_fresh(rt, connected.profile_id)
    assert stored(rt).username == "new.test"
    world.bluesky.change_account("new.test", handle="newer.test")
    assert upkeep.fetch_account_data(rt, connected.profile_id) == ["The handle is now @newer.test."]
    assert sign_in(rt, "bluesky", {**demo, "handle": "newer.test"}, profile_id=connected.profile_id).revived


def test_a_revoked_app_password_needs_a_new_one(rt, world, demo, clock):
    connected = sign_in(rt, "bluesky", demo)
    world.bluesky.revoke_app_password("demo")
    clock.forward(7_200)
    with pytest.raises(Rejected) as refused:
        tokens.load_fresh(rt, connected.profile_id)
    assert refused.value.reauth
    assert stored(rt).status is ProfileStatus.REAUTH_REQUIRED
    again = {**demo, "password": world.bluesky.add_app_password("demo", "again")}
    assert sign_in(rt, "bluesky", again, profile_id=connected.profile_id).profile_id == connected.profile_id
    assert stored(rt).status is ProfileStatus.ACTIVE


def test_disconnecting_ends_the_session(rt, world, demo):
    connected = sign_in(rt, "bluesky", demo)
    refresh_token = grants.open_refresh_token(rt.secrets, stored(rt))
    rt.write(profiles.disconnect, connected.profile_id)
    assert upkeep.revoke_disconnected(rt) == 1
    assert world.bluesky.counts["delete_session"] == 1
    assert refresh_token
    assert stored(rt).access_token is None
