"""The pages of an appliance with a network beyond the specification (contract 11.1, 11.2)."""

from typing import Any

import pytest

from socialpub.core.settings.networks import BlueskySection
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


def test_the_form_of_a_key_offers_the_network_and_all_networks(owner, app, rt):
    add_profile(rt, "bluesky", "did:plc:one", name="Sky")
    add_profile(rt)
    assert f"{NONE_CHOSEN}X, TikTok, Pinterest." in owner.open("/keys").text
    assert networks_of_new_key(owner, app, "none", {}) == ["x"]
    assert networks_of_new_key(owner, app, "sky", {"Bluesky": True}) == ["bluesky"]
    assert networks_of_new_key(owner, app, "all", {"All networks, including future ones": True}) == ["bluesky", "x"]
    assert "no limit: all profiles" in owner.open("/keys").text
    assert "profiles on X, TikTok, Pinterest" in owner.page.text


def test_without_the_network_no_page_offers_it(owner, rt):
    del rt.providers["bluesky"]
    for path in ("/", "/log", "/posts", "/keys", "/profiles", "/compose", "/system", "/calendar", "/audit"):
        assert "luesky" not in owner.open(path).html, path
    assert f"{NONE_CHOSEN}all networks." in owner.open("/keys").text
    assert "is not one of x, tiktok, pinterest" in owner.open("/log?network=bluesky").text
    assert "is not a known network" in owner.open("/posts?providers=bluesky").text
