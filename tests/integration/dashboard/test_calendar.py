"""The calendar shows each post at its local time and can move posts."""

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from socialpub.runtime import Runtime
from tests.support.appliance import accept, add_profile
from tests.support.hand_clock import START
from tests.support.select import select_value
from tests.support.tab import Element, Page, Tab


def live_in(browser: Tab, zone: str) -> None:
    browser.cookies["socialpub_zone"] = zone.replace("/", "%2F")


def cell(page: Page, at: str) -> Element:
    """The day (`2026-11-25`) or hour (`2026-11-25T14:00`)."""
    (found,) = [one for one in page.root.all("td") if one.attributes.get("data-at") == at]
    return found


def entries(page: Page, at: str) -> list[str]:
    return [one.text for one in cell(page, at).all("a") if one.attributes.get("class") == "post"]


def stored_time(rt: Runtime, post_id: str) -> str:
    return str(select_value(rt.db, "SELECT scheduled_at FROM post WHERE id = ?", (post_id,)))


def test_the_current_month_is_a_table_for_screen_readers(owner):
    page = owner.open("/calendar")
    assert (page.status, page.heading, page.title) == (200, "Calendar", "Calendar – socialpub")
    (table,) = page.root.all("table")
    assert table.all("caption")[0].text == "October 2026"
    heads = table.all("th")
    assert [one.text.replace(" ", "") for one in heads] == [
        *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    ]
    assert {one.attributes["scope"] for one in heads} == {"col"}
    assert [one.attributes["data-at"] for one in table.all("td") if "aria-current" in one.attributes] == ["2026-10-12"]
    assert "Saturday, 31 October" in cell(page, "2026-10-31").text
    assert "Sunday, 1 November" in cell(page, "2026-11-01").text
    assert "No posts in this month. Compose a post" in page.text


def test_posts_appear_on_the_day_in_the_zone_of_the_browser(owner, rt, profile):
    pins = add_profile(rt, "pinterest", "pins")
    post = accept(rt, profile, pins, body="Late\n<b>light</b>", at=datetime(2026, 10, 31, 22, 45, 30, tzinfo=UTC))
    for zone, day, time in (
        ("UTC", "2026-10-31", "22:45"),
        ("Europe/Berlin", "2026-10-31", "23:45"),
        ("America/New_York", "2026-10-31", "18:45"),
        ("Asia/Kolkata", "2026-11-01", "04:15"),
        ("Pacific/Apia", "2026-11-01", "11:45"),
    ):
        live_in(owner, zone)
        page = owner.open("/calendar?month=2026-10")
        assert entries(page, day) == [f"{time} ◷ Scheduled Late <b>light</b> X, Pinterest"]
        hour = f"{day}T{time[:2]}:00"
        week = owner.open(f"/calendar?week={datetime.fromisoformat(day):%G-W%V}")
        assert entries(week, hour) == [f"{time} ◷ Scheduled Late <b>light</b> X, Pinterest"]
        assert len(week.root.of_class("post")) == 1
        assert urlsplit(week.root.all("li")[-1].all("a")[0].attributes["href"]).path.endswith(f"posts/{post}")


def test_a_repeated_hour_names_its_zone_and_a_skipped_one_is_marked(owner, rt, profile):
    live_in(owner, "Europe/Berlin")
    for hour in (0, 1):
        accept(rt, profile, body=f"No {hour}", at=datetime(2026, 10, 25, hour, 30, tzinfo=UTC))
    accept(rt, profile, body="Last", at=datetime(2026, 10, 25, 22, 59, 59, tzinfo=UTC))
    page = owner.open("/calendar?week=2026-W43")
    first, second = entries(page, "2026-10-25T02:00")
    assert first.startswith("02:30 CEST")
    assert second.startswith("02:30 CET")
    assert [entry[:5] for entry in entries(page, "2026-10-25T23:00")] == ["23:59"]

    page = owner.open("/calendar?week=2027-W12")
    ats = [one.attributes.get("data-at") for one in page.root.all("td")]
    assert len(ats) == 7 * 24
    assert ats.count(None) == 1
    assert "2027-03-28T02:00" not in ats
    assert "skipped (clock change)" in page.text


def test_a_full_day_shows_the_number_of_other_posts_and_links_to_them(owner, rt, profile):
    live_in(owner, "Europe/Berlin")
    for minute in range(6):
        accept(rt, profile, body=f"No {minute}", at=datetime(2026, 10, 24, 22, minute, tzinfo=UTC))
    page = owner.open("/calendar")
    assert [text[15:] for text in entries(page, "2026-10-25")] == ["ed No 0 X", "ed No 1 X", "ed No 2 X"]
    (link,) = [address for name, address in page.links().items() if name.startswith("+3 more on 25 October")]
    assert parse_qs(urlsplit(link).query) == {
        "scheduledAfter": ["2026-10-24T22:00:00.000Z"],
        "scheduledBefore": ["2026-10-25T22:59:59.999Z"],  # a day of 25 hours
        "orAccepted": ["on"],
    }
    assert all(f"No {minute}" in owner.open(link).text for minute in range(6))
    week = owner.open("/calendar?week=2026-W43")
    assert len(entries(week, "2026-10-25T00:00")) == 4
    assert any(name.startswith("+2 more") for name in week.links())


def test_the_list_of_a_day_includes_posts_that_were_published_at_once(owner, rt, profile, clock):
    accept(rt, profile, body="Of the day before")
    clock.forward(86_400)
    for number in range(24):
        accept(rt, profile, body=f"At once {number}.")
    accept(rt, profile, body="Of the next day", at=rt.now() + timedelta(days=1))
    page = owner.open("/calendar")
    (link,) = [address for name, address in page.links().items() if name.startswith("+21 more")]
    listed = owner.open(link)
    assert "24 posts match" in listed.text
    older = owner.open(listed.links()["Older"])
    seen = listed.text + older.text
    assert all(f"At once {number}." in seen for number in range(24))
    assert "Of the" not in seen
    assert "24 posts match" in older.text


def test_posts_without_text_show_the_kind_of_their_media(owner, rt, profile):
    accept(rt, profile, body=" \n ", at=START + timedelta(hours=2))
    assert entries(owner.open("/calendar"), "2026-10-12") == ["11:00 ◷ Scheduled Post without text X"]


@pytest.mark.parametrize("query", ["month=2026-13", "week=2026-W60", "month=9999-01", "month=%3Cb%3E", "week=2025-W53"])
def test_an_invalid_address_shows_an_error_and_the_current_month(owner, query):
    page = owner.open(f"/calendar?{query}")
    assert page.status == 400
    assert "between 2000 and 2199" in page.role("alert")
    assert "This is the current month" in page.role("alert")
    assert page.root.all("caption")[0].text == "October 2026"


def test_a_future_day_links_to_a_new_post(owner, clock):
    live_in(owner, "Asia/Kolkata")  # it is 14:30 there
    addresses = owner.open("/calendar").links()
    assert addresses["New post on 25 October"].endswith("/compose?at=2026-10-25T09:00")
    assert addresses["New post on 12 October"].endswith("/compose?at=2026-10-12T15:00")
    assert "New post on 11 October" not in addresses
    clock.forward(9 * 3600)  # 23:30: no full hour is left
    assert "New post on 12 October" not in owner.open("/calendar").links()


def test_a_post_is_moved_without_a_mouse_and_the_view_stays(owner, rt, profile):
    live_in(owner, "America/New_York")
    post = accept(rt, profile, body="Soon", at=datetime(2026, 11, 25, 14, 0, tzinfo=UTC))
    owner.open("/calendar?week=2026-W48")
    assert owner.follow("Move 09:00 Soon").field("Time").attributes["value"] == "2026-11-25T09:00"
    page = owner.press("Reschedule", {"Time": "2026-11-27T18:15"})
    assert page.path == "/calendar?week=2026-W48"
    assert page.role("status") == "The post is rescheduled to 27 Nov 2026, 18:15 EST."
    assert entries(page, "2026-11-27T18:00") == ["18:15 ◷ Scheduled Soon X"]
    assert entries(page, "2026-11-25T09:00") == []
    assert stored_time(rt, post) == "2026-11-27T23:15:00.000Z"


def test_the_calendar_refreshes_itself_only_while_a_post_is_in_progress(owner, rt, profile):
    accept(rt, profile, at=START + timedelta(hours=1))
    assert "hx-trigger" not in owner.open("/calendar?month=2026-10").html
    accept(rt, profile)
    page = owner.open("/calendar?month=2026-10")
    calendar = page.by_id("calendar")
    assert calendar.attributes["hx-get"].endswith("calendar?month=2026-10")
    assert '<noscript><meta http-equiv="refresh"' in page.html
