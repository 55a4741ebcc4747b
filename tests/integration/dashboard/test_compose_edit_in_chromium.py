"""A post is edited in two tabs, and a repeated time is chosen."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from socialpub.runtime import Runtime
from tests.support.appliance import accept
from tests.support.select import select_all

pytestmark = pytest.mark.chromium

AT = datetime(2026, 11, 5, 8, 0, 30, tzinfo=UTC)


def stored(rt: Runtime) -> list[tuple[str, str]]:
    return [tuple(row) for row in select_all(rt.db, "SELECT body, scheduled_at FROM post")]


def text(page: Page) -> str:
    return page.get_by_label("Text", exact=True).input_value()


def save(page: Page, name: str = "Save") -> None:
    page.get_by_role("button", name=name, exact=True).click()


def test_a_draft_overwrites_a_later_version_only_after_a_question(page, rt, x, clock):
    post = accept(rt, x, body="Helo", at=AT)
    page.goto(f"/posts/{post}/edit")
    page.get_by_label("Text", exact=True).fill("Hello")
    page.close()
    clock.forward(1)
    page = page.context.new_page()
    page.goto(f"/posts/{post}/reschedule")
    page.get_by_label("Time").fill("2026-11-09T09:00:30")
    page.get_by_role("button", name="Reschedule").click()
    expect(page.get_by_role("status").first).to_contain_text("9 Nov 2026, 09:00 CET")

    page.goto(f"/posts/{post}/edit")
    expect(page.locator("#compose-draft")).to_be_visible()
    assert text(page) == "Hello"
    save(page)
    expect(page.get_by_role("alert")).to_contain_text("The post was changed after this form was opened.")
    assert stored(rt) == [("Helo", "2026-11-09T08:00:30.000Z")]
    page.goto(f"/posts/{post}/edit")
    expect(page.locator("#compose-draft")).to_be_hidden()
    assert text(page) == "Helo"


def test_a_time_that_is_hidden_beside_now_is_not_sent(page, rt, x):
    page.goto("/compose")
    page.get_by_label("Text", exact=True).fill("Now, after all")
    page.get_by_label("At a time").check()
    expect(page.get_by_role("button", name="Schedule", exact=True)).to_be_visible()
    page.get_by_label("Time", exact=True).fill("2026-12-24T18:00")
    page.get_by_label("Now", exact=True).check()
    expect(page.get_by_label("Time", exact=True)).to_be_hidden()
    page.get_by_label("At a time").check()
    expect(page.get_by_label("Time", exact=True)).to_have_value("2026-12-24T18:00")
    page.get_by_label("Now", exact=True).check()
    page.get_by_role("button", name="Publish", exact=True).click()
    page.wait_for_url("**/posts/*")
    assert stored(rt) == [("Now, after all", None)]


@pytest.mark.parametrize(("form", "button"), [("edit", "Save"), ("reschedule", "Reschedule")])
def test_a_post_at_a_time_with_seconds_moves_to_a_full_minute(page, rt, x, form, button):
    """Without `step`, a browser counts minutes from the value of the field and refuses all other times."""
    post = accept(rt, x, body="Hello", at=AT)
    page.goto(f"/posts/{post}/{form}")
    page.get_by_label("Time", exact=True).fill("2026-11-09T09:00")
    save(page, button)
    expect(page.get_by_role("status").first).to_contain_text("9 Nov 2026, 09:00 CET" if form != "edit" else "changed")
    assert stored(rt) == [("Hello", "2026-11-09T08:00:00.000Z")]
