"""Accounts change: handle, name, picture and what an account may post are fetched from its network again."""

import json
from typing import Any

import pytest

from socialpub.accounts import avatars, connect, profiles, upkeep
from socialpub.db import appliance_state
from socialpub.db.models import ProfileRow
from socialpub.db.states import State
from socialpub.db.tables import profile_rows, waits
from socialpub.providers.auth import Account
from socialpub.publishing.posts import drafts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import OWNER, accept, message_of, state_of
from tests.support.drain import drain

LONG = "word " * 80
WEEK = 7 * 86400


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return sandbox_options


@pytest.fixture
def profile(rt: Runtime, world: World) -> str:
    """An account that had X Premium when it was connected."""
    world.x.existing_account("demo").subscription_type = "Premium"
    return connected(rt, world)


def connected(rt: Runtime, world: World, **grant: Any) -> str:
    tokens = connect.read_credentials(json.dumps(world.x.grant("demo", **grant)))
    return connect.import_account(rt, "x", tokens).profile_id


def problems(rt: Runtime, profile: str) -> list[str]:
    (checked,) = drafts.check_draft(rt, rt.db, Draft(LONG, None, (profile,)), OWNER)
    return [problem.message for problem in checked.problems]


def look(rt: Runtime) -> str | None:
    return upkeep.refresh_account_data(rt, waits.held_networks(rt.db))


# --- after a refusal -------------------------------------------------------------------------------------------------


def test_a_post_that_x_refuses_as_too_long_refreshes_the_account_data(rt, world, profile, clock):
    assert problems(rt, profile) == []
    world.x.existing_account("demo").subscription_type = "None"
    post = accept(rt, profile, body=LONG)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert "socialpub fetches the account data again" in message_of(rt, post)
    before = world.x.counts["me"]
    assert look(rt) == profile
    assert look(rt) is None
    assert world.x.counts["me"] == before + 1
    (problem,) = problems(rt, profile)
    assert "X allows this account 280 characters" in problem
    assert "press “Refresh” on the profile's page" in problem
    assert f"admin refresh-profile {profile}`" in problem


@pytest.mark.parametrize("status", [400, 403])
def test_a_network_that_refuses_what_its_own_data_allows_is_asked_once_an_hour(rt, world, profile, clock, status):
    demo = world.x.existing_account("demo")
    demo.max_length, world.x.too_long_status = 280, status
    before = world.x.counts["me"]
    for number in range(3):
        accept(rt, profile, body=f"{LONG} {number}")
        drain(rt, clock)
        look(rt)
    assert world.x.counts["me"] == before + 1
    clock.forward(3601)
    look(rt)
    assert world.x.counts["me"] == before + 2


# --- once a week -----------------------------------------------------------------------------------------------------


def test_account_data_are_refreshed_once_a_week_with_one_call(rt, world, profile, clock):
    other = connected_studio(rt, world)
    calls = world.x.counts["me"]
    clock.forward(WEEK - 1)
    assert look(rt) is None
    clock.forward(1)
    assert {look(rt), look(rt)} == {profile, other}
    assert look(rt) is None
    assert world.x.counts["me"] == calls + 2


def connected_studio(rt: Runtime, world: World) -> str:
    return connect.import_account(rt, "x", connect.read_credentials(json.dumps(world.x.grant("studio")))).profile_id


def test_a_paused_appliance_and_an_account_that_must_be_connected_again_are_left_alone(rt, world, profile, clock):
    calls = world.x.counts["me"], world.x.counts["token"]
    clock.forward(WEEK)
    rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.PAUSED_AT, tx.stamp))
    assert look(rt) is None
    rt.db.write(lambda tx: tx.execute_sql("DELETE FROM appliance WHERE name = 'paused_at'").rowcount)
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, profile, "The tokens are refused."))
    assert look(rt) is None
    rt.write(profiles.disconnect, profile)
    assert look(rt) is None
    assert calls == (world.x.counts["me"], world.x.counts["token"])


def test_a_fetch_that_fails_changes_nothing_and_is_tried_again_in_an_hour(rt, world, profile, clock):
    before = profiles.get(rt.db, profile)
    clock.forward(WEEK)
    world.x.next("me").fails_with(503)
    assert look(rt) == profile
    assert look(rt) is None
    found = profiles.get(rt.db, profile)
    for name in ("name", "username", "picture_url", "facts", "status", "account_read_at"):
        assert getattr(found, name) == getattr(before, name)
    clock.forward(3601)
    world.x.existing_account("demo").name = "Demo & Sons"
    assert look(rt) == profile
    assert profiles.get(rt.db, profile).name == "Demo & Sons"


# --- what is taken over ----------------------------------------------------------------------------------------------


def test_handle_name_image_and_subscription_are_stored(rt, world, profile, clock):
    assert avatars.fetch_next(rt) == profile
    world.x.change_account("demo", handle="renamed", name="Renamed", picture="Z", subscription_type="None")
    clock.forward(60)
    assert upkeep.fetch_account_data(rt, profile) == [
        "The handle is now @renamed.",
        "The account name is now “Renamed”.",
        "Subscription: None (before: Premium).",
        "Longest text: 280 characters (before: 25,000 characters).",
        "Longest video: 20 minutes (before: 125 minutes).",
    ]
    found = profiles.get(rt.db, profile)
    assert (found.username, found.name) == ("renamed", "Renamed")
    assert found.updated_at == found.account_read_at == rt.stamp()
    assert avatars.fetch_next(rt) == profile, "the picture has another address"
    assert upkeep.fetch_account_data(rt, profile) == []


def test_a_label_that_the_owner_chose_stays(rt, world, profile):
    rt.write(profiles.rename, profile, "Our shop")
    world.x.change_account("demo", name="Renamed")
    upkeep.fetch_account_data(rt, profile)
    assert profiles.get(rt.db, profile).name == "Our shop"


def test_data_of_another_account_are_not_stored(rt, world, profile, clock):
    rt.db.write(lambda tx: tx.update(ProfileRow, profile, account_id="another"))
    world.x.change_account("demo", name="Renamed")
    clock.forward(WEEK)
    assert look(rt) == profile
    assert profiles.get(rt.db, profile).name == "Demo"
    assert look(rt) is None


def test_a_disconnected_profile_stores_no_account_data(rt, world, profile):
    identity = rt.providers["x"].auth.identify(rt.http_for("x"), Account(""), world.x.grant("demo")["accessToken"])
    rt.write(profiles.disconnect, profile)
    world.x.change_account("demo", name="Renamed")
    assert rt.write(upkeep._store_account_data, profile, identity) == []
