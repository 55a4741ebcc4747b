"""The dashboard of an appliance with the sandbox as networks, in a browser without scripts and in Chromium."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from socialpub.accounts import sign_in
from socialpub.core.actor import DASHBOARD, act_as
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.web.http.app import App, create_app
from tests.support.chromium import chromium
from tests.support.sandbox_http import connect_pinterest, connect_tiktok, connect_x
from tests.support.served import served
from tests.support.tab import Tab

PASSWORD = "correct horse battery"


@pytest.fixture
def appliance_options(sandbox_options: dict[str, Any]) -> dict[str, Any]:
    return {**sandbox_options, "base_url": "http://testserver"}


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture(scope="session")
def password_hash() -> str:
    """Hash once, because hashing is slow on purpose."""
    return sign_in.hash_password(PASSWORD, PASSWORD)


@pytest.fixture
def x(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)


@pytest.fixture
def tiktok(rt: Runtime, world: World) -> str:
    return connect_tiktok(rt, world)


@pytest.fixture
def pins(rt: Runtime, world: World) -> str:
    return connect_pinterest(rt, world)


def owner_session(rt: Runtime, password_hash: str) -> tuple[str, str]:
    """Return the name and the value of a session cookie, as the sign-in form sets it (test_sign_in.py)."""
    rt.write(sign_in.set_password, password_hash)
    with act_as(DASHBOARD):
        session = rt.write(sign_in.begin_session, "127.0.0.1", "Test browser")
    return f"socialpub_session_{rt.instance_id[:8]}", session.token


@pytest.fixture
def stranger(app: App) -> Iterator[Tab]:
    """A browser without a session."""
    with Tab(app) as browser:
        yield browser


@pytest.fixture
def owner(app: App, rt: Runtime, password_hash: str) -> Iterator[Tab]:
    """A browser in which the owner is signed in."""
    name, token = owner_session(rt, password_hash)
    with Tab(app) as browser:
        browser.cookies[name] = token
        browser.open("/")
        yield browser


@pytest.fixture(scope="module")
def real_browser() -> Iterator[Browser]:
    """Chromium for one file. While it runs, no test can have its own event loop."""
    with chromium() as started:
        yield started


@pytest.fixture
def context_options() -> dict[str, Any]:
    return {}


@pytest.fixture
def complaints() -> list[str]:
    """The messages of the browser console."""
    return []


@pytest.fixture
def address(app: App) -> Iterator[str]:
    """The dashboard on a port of this machine."""
    with served(app) as address:
        yield address


@pytest.fixture
def context(
    real_browser: Browser, address: str, context_options: dict[str, Any], complaints: list[str]
) -> Iterator[BrowserContext]:
    options = {"timezone_id": "Europe/Berlin", "viewport": {"width": 1280, "height": 900}, **context_options}
    with real_browser.new_context(base_url=address, **options) as context:
        context.on("console", lambda message: complaints.append(message.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        yield context
        for page in context.pages:
            page.close()


@pytest.fixture
def page(context: BrowserContext, address: str, rt: Runtime, password_hash: str) -> Page:
    """A tab of the real browser in which the owner is signed in, and of which the server knows the time zone."""
    name, token = owner_session(rt, password_hash)
    context.add_cookies(
        [
            {"name": name, "value": token, "url": address, "sameSite": "Lax"},
            {"name": "socialpub_zone", "value": "Europe%2FBerlin", "url": address, "sameSite": "Lax"},
        ]
    )
    return context.new_page()
