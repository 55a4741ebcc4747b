"""The pages of an appliance with a network beyond the specification (contract 11.1, 11.2)."""

from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.core.settings.networks import BlueskySection
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.integration.uploads.caller import Caller
from tests.support.appliance import add_profile
from tests.support.tab import Tab

NONE_CHOSEN = "If you choose none, the key works with "


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    networks = sandbox_options["networks"].model_copy(update={"bluesky": BlueskySection(enabled=True)})
    return {**sandbox_options, "networks": networks, "base_url": "http://testserver"}


def networks_of_new_key(owner: Tab, app: App, name: str, values: dict[str, Any]) -> list[str]:
    key = owner.press("Create key", {"Name": name, **values}, on="/keys").by_id("key").attributes["value"]
    with Caller(app, key) as caller:
        return [one["provider"] for one in caller.get("/profiles").data]


def test_the_form_of_a_key_offers_the_network_and_all_networks(owner: Tab, app: App, rt: Runtime) -> None:
    add_profile(rt, "bluesky", "did:plc:one", name="Sky")
    add_profile(rt)
    assert f"{NONE_CHOSEN}X, TikTok, Pinterest." in owner.open("/keys").text
    assert networks_of_new_key(owner, app, "none", {}) == ["x"]
    assert networks_of_new_key(owner, app, "sky", {"Bluesky": True}) == ["bluesky"]
    assert networks_of_new_key(owner, app, "all", {"All networks, including future ones": True}) == ["bluesky", "x"]
    assert "no limit: all profiles" in owner.open("/keys").text
    assert "profiles on X, TikTok, Pinterest" in owner.page.text


def test_a_refused_key_for_an_account_says_which_network_to_choose(owner: Tab, rt: Runtime) -> None:
    mine = add_profile(rt, "bluesky", "did:plc:one", name="Sky")
    page = owner.press("Create key", {"Name": "mine", "#profiles": [mine]}, on="/keys")
    assert page.status == 400
    assert "A key sees “Sky” only if the key names Bluesky." in page.text
    assert api_keys.list_all(rt.db) == []


@pytest.mark.parametrize("path", ["/log", "/posts"])
def test_lists_can_be_filtered_by_the_network(owner: Tab, path: str) -> None:
    assert "Bluesky" in owner.open(path).text
    name = "network" if path == "/log" else "providers"
    assert owner.open(f"{path}?{name}=bluesky").status == 200
    assert 'role="alert"' not in owner.page.html


def test_without_the_network_no_page_offers_it(owner: Tab, rt: Runtime) -> None:
    del rt.providers["bluesky"]
    for path in ("/", "/log", "/posts", "/keys", "/profiles", "/compose", "/system", "/calendar", "/audit"):
        assert "luesky" not in owner.open(path).html, path
    assert f"{NONE_CHOSEN}all networks." in owner.open("/keys").text
    assert "is not one of x, tiktok, pinterest" in owner.open("/log?network=bluesky").text
    assert "is not a known network" in owner.open("/posts?providers=bluesky").text
