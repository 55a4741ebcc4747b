"""A real browser, where the machine has one."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from socialpub.accounts import sign_in
from socialpub.accounts.sign_in import Purpose
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.support.served import served

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same browser without what draws windows. It takes half of the processor time."""
ALONE = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
"""It asks nobody for anything but the pages of the test."""
TIMEOUT_MS = 60_000
"""For what a page does. It takes far less on an idle machine."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Without a window. The test is skipped where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ALONE))
        yield browser
        browser.close()


@contextmanager
def signed_in(context: BrowserContext, app: App, rt: Runtime, password_hash: str) -> Iterator[tuple[Page, str]]:
    """A tab of the owner, and the address of the dashboard that it is signed in to."""
    rt.write(sign_in.set_password, password_hash)
    with served(app) as address:
        page = context.new_page()
        page.goto(f"{address}/login?token={rt.write(sign_in.create_link, Purpose.SIGN_IN)}")
        yield page, address
        for page in context.pages:
            page.close()
