"""The browser's storage, several tabs, and alerts."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support import axe
from tests.support.consent_browser import Browser as ConsentBrowser
from tests.support.copies import become_restored
from tests.support.sandbox_http import HOST, artifact

pytestmark = pytest.mark.chromium

FINDING = "Urgent: Keep or revoke the keys of the restored backup"
STORED = """async (url) => {
    try { return (await fetch(url, { cache: "only-if-cached", mode: "same-origin" })).status; }
    catch { return null; }
}"""
"""The status of a response in the browser's cache."""


def test_a_thumbnail_does_not_outlive_the_session(page: Page, rt: Runtime, tmp_path: Path) -> None:
    thumbnail = f"/artifacts/{artifact(rt, media.jpeg(tmp_path / 'a.jpg'), 'image/jpeg')}/thumbnail"
    page.goto("/")
    assert page.evaluate("async (url) => (await fetch(url)).status", thumbnail) == 200
    assert page.evaluate(STORED, thumbnail) == 200
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.evaluate(STORED, thumbnail) != 200


def test_the_field_for_the_address_stays_open_beside_the_tab_of_the_network(
    page: Page, rt: Runtime, browser: ConsentBrowser
) -> None:
    rt.settings.providers.x.__dict__["redirect_url"] = "http://127.0.0.1:9/oauth/x/callback"
    page.context.route(f"{HOST}/**", lambda route: route.fulfill(body="The network's own page."))
    page.goto("/profiles")
    page.get_by_role("button", name="Connect X").click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Continue to X").click()
    back = browser.decides(opened.value.url)
    field = page.get_by_label("Redirected address")
    field.fill(back.replace("127.0.0.1:9/", "evil.example/"))
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("not the redirect address of this attempt")
    assert axe.violations(page) == []
    field.fill(back)
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("@demo on X is connected.")


def test_keys_of_a_restored_backup_are_kept_on_the_overview(page: Page, rt: Runtime) -> None:
    for name in ("leaked", "<img src=x onerror=alert(1)>"):
        rt.write(api_keys.create, name)
    rt.db.write(api_keys.mark_restored)
    become_restored(rt)
    page.goto("/")
    finding = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=FINDING))
    expect(finding).to_contain_text("last used: never")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert axe.violations(page) == []
    page.get_by_role("button", name="Keep keys").click()
    expect(page.get_by_role("status")).to_have_text("2 keys are kept.")
    expect(finding).to_have_count(0)
