"""The form that connects an account works with the keyboard, fits a phone and is accessible."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from socialpub.db.tables import profile_rows
from socialpub.runtime import Runtime
from tests.support import axe
from tests.support.scripted_network import APP_PASSWORD, ScriptedSignInNetwork

pytestmark = [pytest.mark.chromium, pytest.mark.endurance]


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    sandbox_options["networks"].bluesky.__dict__["enabled"] = True
    providers = {"bluesky": ScriptedSignInNetwork()}
    return {**sandbox_options, "base_url": "http://testserver", "providers": providers}


@pytest.mark.parametrize("javascript", [True, False])
def test_an_account_is_connected_with_the_keyboard(
    page: Page, rt: Runtime, address: str, javascript: bool, complaints: list[str]
) -> None:
    if not javascript:
        page.route("**/*.js*", lambda route: route.abort())
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/profiles")
    page.get_by_role("button", name="Connect Bluesky").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Connect Bluesky")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert axe.violations(page) == []
    page.get_by_label("Handle").focus()
    page.keyboard.type("other.test")
    page.keyboard.press("Tab")
    page.keyboard.type(APP_PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Handle")).to_have_accessible_description("There is no account other.test.")
    expect(page.get_by_label("Handle")).to_have_value("other.test")
    expect(page.get_by_label("App password")).to_have_value("")
    assert axe.violations(page) == []
    page.get_by_label("Handle").fill("demo.test")
    page.get_by_label("App password").fill(APP_PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("@demo.test on Bluesky is connected.")
    assert len(profile_rows.list_all(rt.db)) == 1
    if javascript:
        assert [text for text in complaints if "400" not in text] == []
