"""The API reference in a browser: a viewer that makes calls, and a page without JavaScript.

The browser uses another address than base_url, as through a tunnel.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import App
from tests.support.appliance import accept, add_profile
from tests.support.chromium import chromium
from tests.support.served import served

pytestmark = pytest.mark.chromium

REFERENCE = "/api/v1/openapi-docs"
LIST_POSTS = "#tag/posts/GET/api/v1/posts"


@dataclass
class Reader:
    """A tab with its console messages and its requests."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type != "info":
            self.complaints.append(message.text)

    def asks(self, request: Request) -> None:
        if not request.url.startswith("data:"):
            self.asked.append(request.url)

    def asked_only(self, address: str) -> bool:
        return bool(self.asked) and all(url.startswith(f"{address}/") for url in self.asked)

    def enter(self, key: str) -> None:
        self.page.get_by_placeholder("Token").first.fill(key)

    def try_call(self, call: str) -> None:
        self.open_call(call)
        self.send()

    def open_call(self, call: str) -> None:
        self.page.get_by_role("button", name=f"Test Request ({call})", exact=True).click()

    def send(self) -> None:
        self.page.get_by_role("button", name="Send").first.click()

    def sample_of(self, operation: str, language: str) -> str:
        """Return the code sample in this language."""
        section = self.page.get_by_role("region", name=operation, exact=True)
        picker = section.get_by_test_id("client-picker")
        picker.click()
        self.page.get_by_role("option", name=language, exact=True).click()
        expect(picker).to_contain_text(language)
        return section.locator("pre").first.inner_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with browser.new_context() as context:
        yield context


@pytest.fixture
def reader(context: BrowserContext) -> Reader:
    reader = Reader(context.new_page())
    reader.page.on("console", reader.heard)
    reader.page.on("pageerror", lambda error: reader.complaints.append(str(error)))
    context.on("request", reader.asks)
    return reader


@pytest.fixture
def address(app: App) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture
def key(rt: Runtime) -> str:
    return rt.write(api_keys.create, "reader")


def test_a_reader_makes_a_call_and_copies_it_and_the_key_is_never_stored(rt, reader, address, key):
    accept(rt, add_profile(rt), body="First frost.")
    page = reader.page
    page.goto(f"{address}{REFERENCE}{LIST_POSTS}")
    reader.enter(key)
    reader.try_call("get /api/v1/posts")
    expect(page.get_by_text("200 OK")).to_be_visible()
    expect(page.get_by_text('"First frost."').first).to_be_visible()
    assert f"{address}/api/v1/posts" in reader.asked
    page.keyboard.press("Escape")

    for language, beginning in (("Curl", "curl "), ("Requests", "requests.get("), ("Fetch", "fetch(")):
        sample = reader.sample_of("List posts", language)
        assert beginning in sample
        assert f"{address}/api/v1/posts" in sample
        assert "Authorization" in sample

    assert reader.complaints == []
    assert reader.asked_only(address)

    stored = page.evaluate("""async () => [
        {...localStorage}, {...sessionStorage}, document.cookie, location.href, await indexedDB.databases(),
    ]""")
    assert key not in str(stored)
    page.reload()
    expect(page.get_by_placeholder("Token").first).to_have_value("")


@pytest.mark.parametrize("query", ["", "?format=page"])
def test_without_javascript_creating_a_post_is_first_with_open_examples(browser, address, query):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        reader = Reader(page)
        page.on("console", reader.heard)
        page.on("request", reader.asks)
        page.goto(f"{address}{REFERENCE}{query}")
        first = page.locator("article").first
        expect(first.get_by_role("heading")).to_have_text("POST /api/v1/posts")
        expect(first.locator("pre", has_text="curl ").first).to_be_visible()
        expect(first.locator("details[open] pre", has_text='"data"')).to_be_visible()
        assert not page.get_by_text("is loading").is_visible()
        assert reader.complaints == []
        assert reader.asked_only(address)
