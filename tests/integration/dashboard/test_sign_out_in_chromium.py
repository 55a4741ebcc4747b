"""After a sign-out, a real browser no longer has the pictures that only the owner may see."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import Purpose
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.samples import media
from tests.support.sandbox_http import artifact
from tests.support.served import served

pytestmark = pytest.mark.chromium

STORED = """async (url) => {
    try { return (await fetch(url, { cache: "only-if-cached", mode: "same-origin" })).status; }
    catch { return null; }
}"""
"""The status of an answer that the browser has stored. The network is not asked."""


def test_a_thumbnail_does_not_outlive_the_session(
    real_browser: Browser, app: App, rt: Runtime, password_hash: str, tmp_path: Path
) -> None:
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    rt.write(sign_in.set_password, password_hash)
    link = f"/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}"
    with served(app) as base, real_browser.new_context() as context:
        page, thumbnail = context.new_page(), f"{base}/artifacts/{photo}/thumbnail"
        page.goto(base + link)
        assert page.evaluate("async (url) => (await fetch(url)).status", thumbnail) == 200
        assert page.evaluate(STORED, thumbnail) == 200
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        assert page.evaluate(STORED, thumbnail) != 200
        page.close()
