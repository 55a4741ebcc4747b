"""An account is connected in a real browser that does not come back: the address is pasted beside the network's tab."""

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import Purpose
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.support import axe
from tests.support.consent_browser import Browser
from tests.support.sandbox_http import HOST
from tests.support.served import served

pytestmark = pytest.mark.chromium


def test_the_field_stays_open_beside_the_networks_tab(
    real_browser: Chromium, app: App, rt: Runtime, browser: Browser, password_hash: str
) -> None:
    rt.settings.providers.x.__dict__["redirect_url"] = "http://127.0.0.1:9/oauth/x/callback"
    rt.write(sign_in.set_password, password_hash)
    with served(app) as address, real_browser.new_context() as context:
        context.route(f"{HOST}/**", lambda route: route.fulfill(body="The network's own page."))
        page = context.new_page()
        page.goto(f"{address}/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}")
        page.goto(f"{address}/profiles")
        page.get_by_role("button", name="Connect X").click()
        with context.expect_page() as opened:
            page.get_by_role("link", name="Go on to X").click()
        back = browser.decides(opened.value.url)
        field = page.get_by_label("Redirected address")
        field.fill(back.replace("127.0.0.1:9/", "evil.example/"))
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("not the redirect address of this attempt")
        assert axe.violations(page) == []
        field.fill(back)
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("@demo on X is connected.")
