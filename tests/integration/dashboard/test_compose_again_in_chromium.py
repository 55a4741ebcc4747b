"""A form is submitted twice in Chromium, with and without scripts."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from socialpub.db.states import State
from socialpub.runtime import Runtime
from tests.samples import media
from tests.support import axe
from tests.support.appliance import accept, end_deliveries
from tests.support.select import select_all

pytestmark = pytest.mark.chromium


@pytest.fixture(params=["with scripts", "without scripts"])
def scripts(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "with scripts")


@pytest.fixture
def context_options(scripts: bool) -> dict[str, Any]:
    return {"java_script_enabled": scripts}


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


def test_back_and_publish_creates_one_post(page: Page, rt: Runtime, scripts: bool) -> None:
    write(page, "Once")
    publish(page)
    first = page.url
    page.go_back()
    if scripts:
        expect(page.get_by_label("Text", exact=True)).to_have_value("Once")
        expect(page.get_by_role("status").first).to_contain_text("You submitted this form on")
        publish(page)
        expect(page.get_by_role("status").first).to_have_text(
            "You already submitted this form. This is the post that it created."
        )
        assert page.url == first
    else:
        write(page, "Once")  # unless the browser has put it back itself
        publish(page)
        expect(page.get_by_role("alert")).to_contain_text("You already published this content in the last hour.")
        page.get_by_role("link", name="Open the post").click()
        assert page.url == first
    assert posts(rt) == ["Once"]


def test_another_text_after_back_becomes_another_post_only_when_asked(page: Page, rt: Runtime, scripts: bool) -> None:
    if not scripts:
        pytest.skip("Without scripts it is another form: its own text makes it another post.")
    write(page, "The first")
    publish(page)
    page.go_back()
    expect(page.get_by_label("Text", exact=True)).to_have_value("The first")
    write(page, "The second")
    publish(page)
    expect(page.get_by_role("alert")).to_contain_text("You already submitted this form with different content.")
    assert axe.violations(page) == []
    assert posts(rt) == ["The first"]
    publish(page)
    page.wait_for_url("**/posts/*")
    assert posts(rt) == ["The first", "The second"]


def test_back_restores_the_files_of_the_form(page: Page, rt: Runtime, scripts: bool, tmp_path: Path) -> None:
    if not scripts:
        pytest.skip("Without scripts a browser chooses files again by itself, or not at all.")
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


def test_a_submitted_form_is_not_a_draft(page: Page, rt: Runtime, scripts: bool) -> None:
    if not scripts:
        pytest.skip("Without scripts there are no drafts.")
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


def test_post_again_after_back_creates_one_post(page: Page, rt: Runtime, x: str) -> None:
    post = accept(rt, x, body="Again")
    end_deliveries(rt, post, State.FAILED)
    page.goto(f"/posts/{post}")
    page.get_by_role("button", name="Post again").click()
    page.wait_for_url(lambda url: not url.endswith(post))
    page.go_back()
    expect(page.get_by_role("button", name="Post again")).to_have_count(0)
    assert posts(rt) == ["Again", "Again"]
