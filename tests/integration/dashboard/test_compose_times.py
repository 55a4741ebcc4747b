"""When a composed post goes out: "Now" beside a time, and times that the clocks skip or show twice."""

from datetime import UTC, datetime

import pytest

from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import accept
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.sandbox_http import connect_x


@pytest.fixture
def x(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)


@pytest.fixture(autouse=True)
def berlin(owner: DashboardBrowser) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"


def times_of_posts(rt: Runtime) -> list[str | None]:
    return [row[0] for row in rt.reader.all("SELECT scheduled_at FROM post ORDER BY id")]


def test_a_time_beside_now_publishes_nothing_and_is_a_problem_of_the_field_when(
    owner: DashboardBrowser, rt: Runtime, x: str
) -> None:
    owner.open("/compose")
    page = owner.press("Publish", {"Text": "At Christmas", "Time": "2026-12-24T18:00"})
    assert (page.status, times_of_posts(rt)) == (400, [])
    problem = "A time is filled in, but “Now” is chosen: choose “At a time”, or empty the field “Time”."
    assert f"When : {problem}" in page.role("alert")
    group = page.root_by_id("when")
    assert group is not None
    said = page.root_by_id(group.attributes["aria-describedby"])
    assert said is not None
    assert said.text == problem
    assert page.field("Time").attributes["value"] == "2026-12-24T18:00"

    owner.press("Publish", {"#when": "at"})
    assert times_of_posts(rt) == ["2026-12-24T17:00:00.000Z"]


def test_now_with_an_emptied_time_publishes_at_once(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    owner.open("/compose?at=2026-12-24T18:00")
    owner.press("Schedule", {"Text": "Earlier", "#when": "now", "Time": ""})
    assert times_of_posts(rt) == [None]


def test_the_answer_names_the_time_in_the_zone_in_which_it_was_given(
    owner: DashboardBrowser, rt: Runtime, x: str
) -> None:
    owner.open("/compose")
    fields = {"Text": "In Tokyo", "#when": "at", "Time": "2026-12-24T18:00", "Zone": "Asia/Tokyo"}
    page = owner.press("Publish", fields)
    assert page.role("status") == "The post is scheduled for 24 Dec 2026, 18:00 JST."
    assert times_of_posts(rt) == ["2026-12-24T09:00:00.000Z"]


def test_a_time_that_the_clocks_skip_is_a_problem_of_its_field(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    owner.open("/compose")
    page = owner.press("Publish", {"Text": "Never", "#when": "at", "Time": "2027-03-28T02:30"})
    assert (page.status, times_of_posts(rt)) == (400, [])
    assert (
        "Time : The clocks skip 02:30 on 28 Mar 2027 in Europe/Berlin. The next valid time is 03:00 CEST."
        in page.role("alert")
    )
    assert page.field("Time").attributes["aria-invalid"] == "true"
    page = owner.press("Schedule", {"Time": "2027-03-28T03:00"})
    assert page.role("status") == "The post is scheduled for 28 Mar 2027, 03:00 CEST."
    assert times_of_posts(rt) == ["2027-03-28T01:00:00.000Z"]


@pytest.mark.parametrize(
    ("which", "hour", "zone"), [("First: 02:30 CEST (UTC+2)", "00", "CEST"), ("Second: 02:30 CET (UTC+1)", "01", "CET")]
)
def test_of_a_time_that_the_clocks_show_twice_the_owner_chooses_one(
    owner: DashboardBrowser, rt: Runtime, x: str, which: str, hour: str, zone: str
) -> None:
    owner.open("/compose")
    page = owner.press("Publish", {"Text": "Twice", "#when": "at", "Time": "2026-10-25T02:30"})
    assert (page.status, times_of_posts(rt)) == (400, [])
    assert (
        "Time : The clocks show 02:30 on 25 Oct 2026 in Europe/Berlin twice: at 02:30 CEST (UTC+2) and at 02:30 CET "
        "(UTC+1). Choose one of them." in page.role("alert")
    )
    page = owner.press("Schedule", {"#which": page.field(which).attributes["value"]})
    assert page.role("status") == f"The post is scheduled for 25 Oct 2026, 02:30 {zone}."
    assert times_of_posts(rt) == [f"2026-10-25T{hour}:30:00.000Z"]


def test_the_calendar_s_repeated_hour_leaves_the_choice_to_the_owner(
    owner: DashboardBrowser, rt: Runtime, x: str
) -> None:
    page = owner.open("/compose?at=2026-10-25T02:00")
    assert "The clocks show this time twice" in page.text
    page = owner.press("Schedule", {"Text": "Twice"})
    assert (page.status, times_of_posts(rt)) == (400, [])


def test_an_edit_knows_which_of_two_equal_times_the_post_has(owner: DashboardBrowser, rt: Runtime, x: str) -> None:
    post_id = accept(rt, x, body="Twice", at=datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
    page = owner.open(f"/posts/{post_id}/edit")
    assert "checked" in page.field("Second: 02:30 CET (UTC+1)").attributes
    owner.press("Save", {"Text": "Two times"})
    assert times_of_posts(rt) == ["2026-10-25T01:30:00.000Z"]
    owner.open(f"/posts/{post_id}/edit")
    page = owner.press("Save", {"#which": "first"})
    assert page.role("status") == "The post is changed."
    assert times_of_posts(rt) == ["2026-10-25T00:30:00.000Z"]
