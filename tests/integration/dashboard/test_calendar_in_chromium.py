"""Posts are dragged in the calendar, and the page shows the result."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from tests.support import axe
from tests.support.appliance import OWNER, accept
from tests.support.hand_clock import START
from tests.support.select import select_value

pytestmark = pytest.mark.chromium

PHONE = (390, 844)


@pytest.fixture
def context_options() -> dict[str, Any]:
    return {"reduced_motion": "reduce"}


@pytest.fixture
def post(page: Page, rt: Runtime, profile: str) -> str:
    post = accept(rt, profile, body="First frost", at=START + timedelta(days=1))
    show(page, "month=2026-10")
    return post


def show(page: Page, period: str) -> None:
    page.goto(f"/calendar?{period}")


def cell(page: Page, at: str) -> Locator:
    return page.locator(f'td[data-at="{at}"]')


def drag(page: Page, text: str, at: str) -> None:
    page.locator("[data-move]", has_text=text).drag_to(cell(page, at), target_position={"x": 60, "y": 20})


def stored_time(rt: Runtime, post_id: str) -> str:
    return str(select_value(rt.db, "SELECT scheduled_at FROM post WHERE id = ?", (post_id,)))


def test_a_post_dropped_on_another_day_keeps_its_local_time(page, rt, profile, complaints):
    post = accept(rt, profile, body="First frost", at=datetime(2026, 10, 24, 16, 30, 15, tzinfo=UTC))
    page.context.clear_cookies(name="socialpub_zone")
    page.goto("/")  # whose script sends the zone
    show(page, "month=2026-10")
    drag(page, "First frost", "2026-10-26")  # the clocks are set back in between
    expect(page.get_by_role("status")).to_have_text("The post is rescheduled to 26 Oct 2026, 18:30 CET.")
    expect(cell(page, "2026-10-26")).to_contain_text("First frost")
    expect(cell(page, "2026-10-24")).not_to_contain_text("First frost")
    assert stored_time(rt, post) == "2026-10-26T17:30:15.000Z"

    drag(page, "First frost", "2026-10-29")  # posts in the refreshed calendar can be dragged
    expect(page.get_by_role("status")).to_contain_text("29 Oct 2026, 18:30 CET")
    assert stored_time(rt, post) == "2026-10-29T17:30:15.000Z"
    assert page.url.endswith("/calendar?month=2026-10")
    assert axe.violations(page) == []
    assert complaints == []


def test_a_post_that_changed_meanwhile_is_moved_only_after_a_question(page, rt, post, clock):
    clock.forward(1)
    rt.write(posts.edit, post, Draft.change(body="First snow"), OWNER)
    drag(page, "First frost", "2026-10-20")
    expect(page.get_by_role("heading", level=1)).to_have_text("Reschedule post")
    expect(page.get_by_role("alert")).to_contain_text("The post was changed after this form was opened.")
    expect(page.locator("main")).to_contain_text("First snow")
    expect(page.get_by_label("Time")).to_have_value("2026-10-20T11:00")
    assert axe.violations(page) == []
    assert stored_time(rt, post) == "2026-10-13T09:00:00.000Z"
    page.get_by_role("button", name="Reschedule").click()
    expect(page.get_by_role("status").first).to_contain_text("20 Oct 2026, 11:00 CEST")
    assert page.url.endswith("/calendar?month=2026-10")


def test_without_a_response_the_post_returns_to_its_day_and_an_error_appears(page, post):
    page.route("**/reschedule", lambda route: route.abort())
    drag(page, "First frost", "2026-10-20")
    expect(page.get_by_role("alert")).to_contain_text("The server did not respond")
    expect(cell(page, "2026-10-13")).to_contain_text("First frost")


def test_a_refresh_of_the_calendar_keeps_the_focus(page, rt, profile):
    post = accept(rt, profile, body="First frost")
    page.clock.install()
    show(page, "month=2026-10")
    expect(cell(page, "2026-10-12")).to_contain_text("↑")
    link = page.get_by_role("link", name="First frost")
    link.focus()
    rt.write(lambda _, tx: tx.execute_sql("UPDATE delivery SET state = 'published' WHERE post_id = ?", (post,)))
    rt.write(lambda _, tx: tx.execute_sql("UPDATE post SET status = 'settled' WHERE id = ?", (post,)))
    page.clock.fast_forward(6000)
    expect(cell(page, "2026-10-12")).to_contain_text("✓")
    expect(link).to_be_focused()
    expect(page.locator("#calendar[hx-get]")).to_have_count(0)


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.endurance), "dark"])
def test_on_a_phone_it_is_a_list_of_days_that_have_posts(page, rt, profile, scheme):
    accept(rt, profile, body="A text that is rather long, as people write them " * 3, at=START + timedelta(days=2))
    accept(rt, profile, body="Second", at=START + timedelta(days=3, hours=2))
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for period, days in (("month=2026-10", ["2026-10-12", "2026-10-14", "2026-10-15"]), ("week=2026-W42", None)):
        show(page, period)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        seen = [one.get_attribute("data-at") for one in page.locator("td").all() if one.is_visible()]
        assert seen == (days or ["2026-10-14T11:00", "2026-10-15T13:00"])
        expect(page.get_by_role("link", name="Move").first).to_be_visible()
        assert axe.violations(page) == []
    heights = [page.get_by_text(text).first.bounding_box() for text in ("Wed", "A text", "Thu", "Second", "Fri")]
    tops = [box["y"] for box in heights if box is not None]
    assert len(tops) == 5
    assert tops == sorted(tops)  # each hour stands under its day
