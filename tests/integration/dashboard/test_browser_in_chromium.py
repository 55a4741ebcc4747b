"""The browser's storage, several tabs, and alerts."""

import pytest
from playwright.sync_api import expect

from tests.samples import media
from tests.support.sandbox_http import artifact

pytestmark = pytest.mark.chromium

STORED = """async (url) => {
    try { return (await fetch(url, { cache: "only-if-cached", mode: "same-origin" })).status; }
    catch { return null; }
}"""
"""The status of a response in the browser's cache."""


def test_a_thumbnail_does_not_outlive_the_session(page, rt, tmp_path):
    thumbnail = f"/artifacts/{artifact(rt, media.jpeg(tmp_path / 'a.jpg'), 'image/jpeg')}/thumbnail"
    page.goto("/")
    assert page.evaluate("async (url) => (await fetch(url)).status", thumbnail) == 200
    assert page.evaluate(STORED, thumbnail) == 200
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert page.evaluate(STORED, thumbnail) != 200
