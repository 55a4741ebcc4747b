"""Accounts of a network without a consent page are connected with a form."""

import logging
from typing import Any

import pytest

from socialpub.core.settings.networks import BlueskySection
from socialpub.db.tables import audit_log, profile_rows
from socialpub.providers.auth import OtherServer, SignInRefused
from socialpub.providers.responses import NoAnswer
from tests.support.scripted_network import APP_PASSWORD, MAIN_PASSWORD, ScriptedSignInNetwork
from tests.support.tab import Page, Tab

DEMO = {"Handle": "demo.test", "App password": APP_PASSWORD}


@pytest.fixture
def network() -> ScriptedSignInNetwork:
    return ScriptedSignInNetwork()


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any], network: ScriptedSignInNetwork) -> dict[str, Any]:
    # Sections without changes are shared by all settings, so the test has a section of its own.
    networks = sandbox_options["networks"].model_copy(update={"bluesky": BlueskySection(enabled=True)})
    own = {"networks": networks, "base_url": "http://testserver", "providers": {"bluesky": network}}
    return {**sandbox_options, **own}


def values_of(page: Page) -> tuple[str, str]:
    """Return the values that the form shows."""
    handle, password = page.field("Handle"), page.field("App password")
    assert (handle.attributes["type"], password.attributes["type"]) == ("text", "password")
    return handle.attributes["value"], password.attributes["value"]


def test_an_account_of_another_server_has_a_second_step_before_the_password_is_sent(rt, owner, network):
    other = OtherServer("The account demo.test is on the server pds.test, not on bsky.social.", server="pds.test")
    network.auth.answers = [other, SignInRefused("Wrong.", field="password")]
    page = connect(owner)
    assert other.message in page.text
    assert values_of(page) == ("demo.test", "")
    assert APP_PASSWORD not in page.html
    assert profile_rows.list_all(rt.db) == []
    page = owner.press("Connect at pds.test", {"App password": "a mistake"})
    assert page.status == 400
    assert "a mistake" not in page.html
    page = owner.press("Connect at pds.test", {"App password": APP_PASSWORD})
    assert page.role("status") == "@demo.test on Bluesky is connected."
    assert [one.get("server") for one in network.auth.given] == [None, "pds.test", "pds.test"]


def connect(owner: Tab, **values: str) -> Page:
    owner.press("Connect Bluesky", on="/profiles")
    return owner.press("Connect", {**DEMO, **values})


def test_an_account_is_connected_with_the_fields_of_its_network(rt, owner):
    assert "returns you here. Bluesky asks for “Handle” and “App password” instead." in owner.open("/profiles").text
    page = owner.press("Connect Bluesky")
    assert page.links()["How to connect Bluesky"].endswith("/manual/networks#bluesky")
    assert (page.status, page.heading, values_of(page)) == (200, "Connect Bluesky", ("", ""))
    assert "Not the main password." in page.text
    assert "uses the app password once, to sign in. It is not stored." in page.text
    assert profile_rows.list_all(rt.db) == []
    page = owner.press("Connect", DEMO)
    (row,) = profile_rows.list_all(rt.db)
    assert (page.path, page.heading) == (f"/profiles/{row.id}", row.name)
    assert page.role("status") == "@demo.test on Bluesky is connected."
    (entry, *_) = audit_log.load_page(rt.db).entries
    assert (entry.action, entry.actor) == ("profile.connected", "dashboard")


@pytest.mark.parametrize(
    ("label", "value", "said"),
    [
        ("Handle", "other.test", "There is no account other.test."),
        ("App password", "wrong-password", "The network says: “****” is wrong."),
        ("App password", MAIN_PASSWORD, "This is the main password. Create an app password in the app."),
    ],
)
def test_an_error_is_shown_at_its_field_and_only_the_password_is_lost(rt, owner, caplog, label, value, said):
    caplog.set_level(logging.DEBUG)
    page = connect(owner, **{label: value})
    field = page.field(label)
    assert page.status == 400
    assert page.by_id(field.attributes["aria-describedby"]).text == said
    assert field.attributes["aria-invalid"] == "true"
    assert values_of(page) == ({**DEMO, label: value}["Handle"], "")
    assert profile_rows.list_all(rt.db) == []
    for password in (APP_PASSWORD, MAIN_PASSWORD, "wrong-password"):
        assert password not in page.html
        assert password not in caplog.text
    owner.press("Connect", DEMO)
    assert len(profile_rows.list_all(rt.db)) == 1


def test_an_error_of_the_network_is_shown_above_the_form(rt, owner, network):
    network.auth.answers = [NoAnswer("Bluesky did not respond.")]
    page = connect(owner)
    assert page.status == 400
    assert page.role("alert") == (
        "Bluesky did not sign in the account: Bluesky did not respond. Nothing was saved. Try again later."
    )
    assert values_of(page) == ("demo.test", "")


def test_a_profile_is_connected_again_with_its_own_account(rt, owner, network):
    place = connect(owner).path
    rt.write(lambda _, tx: profile_rows.require_reauth(tx, place.rpartition("/")[2], "The session has ended."))
    page = owner.press("Reconnect", on=place)
    assert (page.heading, values_of(page)) == ("Reconnect “Demo.Test”", ("demo.test", ""))
    page = owner.press("Reconnect", {"Handle": "studio.test", "App password": APP_PASSWORD})
    assert page.role("alert").startswith("@demo.test was to be connected again, but Bluesky returned @studio.test.")
    assert "press “Connect Bluesky” under Profiles" in page.role("alert")
    page = owner.press("Reconnect", DEMO)
    assert page.path == place
    assert page.role("status") == "@demo.test on Bluesky has new tokens, and its waiting posts continue."
    assert len(profile_rows.list_all(rt.db)) == 1


def test_a_network_that_is_no_longer_enabled_shows_no_form(rt, owner):
    place = connect(owner).path
    rt.settings.providers.bluesky.__dict__["enabled"] = False
    assert "Bluesky is not enabled. Set enabled = true in [providers.bluesky]." in owner.open("/profiles").text
    assert not owner.page.has_button("Connect Bluesky")
    page = owner.press("Reconnect", on=place)
    assert page.status == 409
    assert "Bluesky is not enabled." in page.text


def test_the_form_of_another_site_connects_nothing(rt, owner, network):
    owner.press("Connect Bluesky", on="/profiles")
    page = owner.press("Connect", {**DEMO, "#csrf": "another"})
    assert page.status == 403
    assert network.auth.given == []
