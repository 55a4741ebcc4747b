"""The reference in a real browser: readable on a phone, and nothing on it is hidden that a newcomer needs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from socialpub.web.pages import pages
from tests.integration.api.client import document
from tests.support.chromium import chromium

PHONE, DESK = 390, 1280


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_reference_fits_and_shows_options_and_examples_without_a_click(browser: Browser, width: int) -> None:
    with browser.new_context(viewport={"width": width, "height": 844}) as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda said: wrong.append(said.text))
        page.set_content(pages.render("reference.html", **pages.reference_values(document())).decode())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for text in ("privacyLevel", "boardId", "replySettings"):
            assert page.locator("article[id$=Options]").get_by_text(text, exact=True).first.is_visible()
        samples = page.locator("article pre", has_text="curl ")
        assert samples.count() >= len(document()["paths"])
        assert all(one.is_visible() for one in samples.all())
        assert wrong == []
