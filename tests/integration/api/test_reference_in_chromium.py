"""The reference in a real browser: readable on a phone, and nothing on it is hidden that a newcomer needs."""

import pytest

from socialpub.web.pages import pages
from tests.integration.api.client import document
from tests.support.chromium import chromium

PHONE, DESK = 390, 1280


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_reference_fits_and_shows_options_and_examples_without_a_click(width: int) -> None:
    with chromium() as browser, browser.new_context(viewport={"width": width, "height": 844}) as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda said: wrong.append(said.text))
        page.set_content(pages.reference(document()).decode())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for text in ("privacyLevel", "boardId", "replySettings"):
            assert page.locator("article[id$=Options]").get_by_text(text, exact=True).first.is_visible()
        samples = page.locator("article pre", has_text="curl ")
        assert samples.count() >= len(document()["paths"])
        assert all(one.is_visible() for one in samples.all())
        assert wrong == []
