"""A form is submitted twice in Chromium. `test_compose.py` does so in a browser without scripts."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from socialpub.runtime import Runtime
from tests.samples import media
from tests.support.select import select_all

pytestmark = pytest.mark.chromium


@pytest.fixture
def page(page: Page, x: str) -> Page:
    page.goto("/compose")
    return page


def posts(rt: Runtime) -> list[str | None]:
    return [row[0] for row in select_all(rt.db, "SELECT body FROM post ORDER BY id")]


def write(page: Page, text: str) -> None:
    page.get_by_label("Text", exact=True).fill(text)


def publish(page: Page) -> None:
    page.get_by_role("button", name="Publish", exact=True).click()
    page.wait_for_load_state()


def test_back_and_publish_creates_one_post(page: Page, rt: Runtime) -> None:
    write(page, "Once")
    publish(page)
    first = page.url
    page.go_back()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Once")
    expect(page.get_by_role("status").first).to_contain_text("You submitted this form on")
    publish(page)
    expect(page.get_by_role("status").first).to_have_text(
        "You already submitted this form. This is the post that it created."
    )
    assert page.url == first
    assert posts(rt) == ["Once"]


def test_back_restores_the_files_of_the_form(page: Page, rt: Runtime, tmp_path: Path) -> None:
    write(page, "A view")
    page.locator("#field-media").set_input_files([media.jpeg(tmp_path / "view.jpg")])
    expect(page.locator("#media-list > li[data-artifact]")).to_have_count(1)
    page.get_by_label("Alt text").fill("The harbour")
    publish(page)
    page.wait_for_url("**/posts/*")
    page.go_back()
    expect(page.get_by_label("Alt text")).to_have_value("The harbour")
    publish(page)
    expect(page.get_by_role("status").first).to_contain_text("You already submitted this form.")
    assert posts(rt) == ["A view"]


def test_a_submitted_form_is_not_a_draft(page: Page, rt: Runtime) -> None:
    write(page, "Once")
    publish(page)
    page.go_back()
    expect(page.get_by_label("Text", exact=True)).to_have_value("Once")
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Compose", exact=True).first.click()
    expect(page.get_by_label("Text", exact=True)).to_have_value("")
    expect(page.locator("#compose-draft")).to_be_hidden()
    write(page, "Once")
    publish(page)
    page.wait_for_url("**/posts/*")
    assert posts(rt) == ["Once", "Once"], "a form of its own makes a post of its own"
