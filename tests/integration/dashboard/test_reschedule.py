"""A scheduled post gets another time on a page of its own, in the reader's time zone."""

from datetime import UTC, datetime

import pytest

from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Change
from socialpub.runtime import Runtime
from tests.support.appliance import OWNER, accept, add_profile
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.hand_clock import HandClock

AT = datetime(2026, 11, 5, 8, 0, tzinfo=UTC)


@pytest.fixture
def post(rt: Runtime) -> str:
    return accept(rt, add_profile(rt, name="Studio <b>X</b>"), body="Evening & <i>sky</i>", at=AT)


def time_of(rt: Runtime, post_id: str) -> str:
    times = rt.reader.one(
        "SELECT p.scheduled_at, d.scheduled_at, run_at FROM post p JOIN delivery d ON d.post_id = p.id WHERE p.id = ?",
        (post_id,),
    )
    assert times is not None
    assert len(set(times)) == 1
    return str(times[0])


def test_the_new_time_is_meant_in_the_zone_that_the_page_shows(owner: DashboardBrowser, rt: Runtime, post: str) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    page = owner.open(f"/posts/{post}/reschedule?back=/system")
    assert (page.heading, page.title) == ("Reschedule a post", "Reschedule a post – socialpub")
    assert page.field("Time").attributes["value"] == "2026-11-05T09:00"
    assert "In the time zone Europe/Berlin" in page.text
    assert "Evening & <i>sky</i>" in page.text
    assert "Studio <b>X</b>" in page.text

    owner.cookies["socialpub_zone"] = "Asia%2FKolkata"  # the traveller's page is older than the cookie
    page = owner.press("Reschedule", {"Time": "2026-11-06T18:30"})
    assert (page.path, page.role("status")) == ("/system", "The post is moved: it goes out on 6 Nov 2026, 18:30 CET.")
    assert time_of(rt, post) == "2026-11-06T17:30:00.000Z"


@pytest.mark.parametrize(
    ("zone", "given", "stored", "said"),
    [
        ("America/New_York", "2026-11-01T12:00", "2026-11-01T17:00:00.000Z", "1 Nov 2026, 12:00 EST"),
        ("Pacific/Apia", "2026-11-01T00:10", "2026-10-31T11:10:00.000Z", "1 Nov 2026, 00:10 UTC+13"),
    ],
)
def test_a_change_of_clocks_is_told_by_the_time_that_results(
    owner: DashboardBrowser, rt: Runtime, post: str, zone: str, given: str, stored: str, said: str
) -> None:
    owner.cookies["socialpub_zone"] = zone
    owner.open(f"/posts/{post}/reschedule?back=/system")
    page = owner.press("Reschedule", {"Time": given})
    assert said in page.role("status")
    assert time_of(rt, post) == stored


def test_a_time_that_the_clocks_skip_is_refused_with_the_next_valid_one(
    owner: DashboardBrowser, rt: Runtime, post: str
) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    owner.open(f"/posts/{post}/reschedule")
    page = owner.press("Reschedule", {"Time": "2027-03-28T02:30"})
    assert page.status == 400
    assert page.role("alert") == (
        "The post is not moved. The clocks skip 02:30 on 28 Mar 2027 in Europe/Berlin. The next valid time is 03:00 "
        "CEST."
    )
    assert page.field("Time").attributes["aria-invalid"] == "true"
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"


@pytest.mark.parametrize(("which", "hour"), [("First: 02:30 CEST (UTC+2)", "00"), ("Second: 02:30 CET (UTC+1)", "01")])
def test_of_a_time_that_the_clocks_show_twice_the_owner_chooses_one(
    owner: DashboardBrowser, rt: Runtime, post: str, which: str, hour: str
) -> None:
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    owner.open(f"/posts/{post}/reschedule")
    page = owner.press("Reschedule", {"Time": "2026-10-25T02:30"})
    assert page.status == 400
    assert "The clocks show 02:30 on 25 Oct 2026 in Europe/Berlin twice" in page.role("alert")
    choice = page.field(which).attributes["value"]
    page = owner.press("Reschedule", {"#which": choice})
    assert f"25 Oct 2026, {which.partition(': ')[2].partition(' (')[0]}" in page.role("status")
    assert time_of(rt, post) == f"2026-10-25T{hour}:30:00.000Z"

    page = owner.open(f"/posts/{post}/reschedule")
    assert "checked" in page.field(which).attributes, "it is known which of the two the post has"


# --- a change in between ---------------------------------------------------------------------------------------------


def test_after_a_change_in_between_nothing_is_moved_unasked(owner: DashboardBrowser, rt: Runtime, post: str) -> None:
    owner.open(f"/posts/{post}/reschedule?back=/system")
    rt.write(posts.edit, post, Change(frozenset({"body"}), body="Morning sky"), OWNER)
    page = owner.press("Reschedule", {"Time": "2026-11-06T10:00"})
    assert page.status == 409
    assert page.role("alert").startswith("The post was changed after this form was opened. Nothing is saved yet.")
    assert "Morning sky" in page.text
    assert page.field("Time").attributes["value"] == "2026-11-06T10:00"
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"

    page = owner.press("Save my changes")
    assert (page.path, page.role("status")) == ("/system", "The post is moved: it goes out on 6 Nov 2026, 10:00 UTC.")
    assert time_of(rt, post) == "2026-11-06T10:00:00.000Z"


def test_the_time_of_the_other_version_can_be_kept(owner: DashboardBrowser, rt: Runtime, post: str) -> None:
    owner.open(f"/posts/{post}/reschedule?back=/system")
    at = datetime(2026, 11, 9, 8, 0, 30, tzinfo=UTC)
    rt.write(posts.edit, post, Change(frozenset({"scheduled_at"}), scheduled_at=at), OWNER)
    owner.press("Reschedule", {"Time": "2026-11-06T10:00"})
    page = owner.press("Keep the other version")
    assert (page.path, "Your changes were discarded." in page.role("status")) == ("/system", True)
    assert time_of(rt, post) == "2026-11-09T08:00:30.000Z"


def test_the_present_time_sent_again_changes_nothing(owner: DashboardBrowser, rt: Runtime, post: str) -> None:
    before = rt.reader.value("SELECT count(*) FROM trail")
    owner.open(f"/posts/{post}/reschedule?back=/system")
    page = owner.press("Reschedule")
    assert page.role("status").startswith("The post has this time already")
    assert rt.reader.value("SELECT count(*) FROM trail") == before


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"), [("2026-10-12T08:59", "must be in the future"), ("", "Choose a date"), ("5.11.", "Choose")]
)
def test_a_time_that_cannot_be_is_refused_with_what_was_typed(
    owner: DashboardBrowser, rt: Runtime, post: str, given: str, reason: str
) -> None:
    owner.open(f"/posts/{post}/reschedule?back=/system")
    page = owner.press("Reschedule", {"Time": given})
    assert (page.status, page.heading) == (400, "Reschedule a post")
    assert reason in page.role("alert")
    field = page.field("Time")
    assert (field.attributes["value"], field.attributes["aria-invalid"]) == (given, "true")
    help_text = page.root_by_id(field.attributes["aria-describedby"])
    assert help_text is not None
    assert reason in help_text.text
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"
    assert owner.press("Reschedule", {"Time": "2026-11-05T10:00"}).path == "/system"


def test_a_post_whose_time_has_come_meanwhile_stays_and_the_reason_is_told(
    owner: DashboardBrowser, rt: Runtime, post: str, clock: HandClock
) -> None:
    owner.open(f"/posts/{post}/reschedule?back=/system")
    clock.forward((AT - clock.now()).total_seconds())
    owner.open(f"/posts/{post}/reschedule?back=/system")
    assert "Only posts scheduled for the future can be edited" in owner.page.role("alert")


def test_a_post_that_started_while_the_form_was_open_is_not_moved(
    owner: DashboardBrowser, rt: Runtime, post: str, clock: HandClock
) -> None:
    owner.open(f"/posts/{post}/reschedule?back=/system")
    clock.forward((AT - clock.now()).total_seconds())
    page = owner.press("Reschedule", {"Time": "2026-11-06T10:00"})
    assert page.path == "/system"
    assert "Only posts scheduled for the future can be edited" in page.role("alert")
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/\\evil.example", "evil"])
def test_nobody_is_led_elsewhere_after_a_move(owner: DashboardBrowser, post: str, back: str) -> None:
    page = owner.open(f"/posts/{post}/reschedule?back={back}")
    assert page.links()["Back without a change"].endswith(f"/posts/{post}")
    assert "evil" not in page.html


@pytest.mark.parametrize("post_id", ["nothing", "019a0000-0000-7000-8000-000000000000"])
def test_there_is_no_form_for_a_post_that_is_not_there(owner: DashboardBrowser, post_id: str) -> None:
    assert owner.open(f"/posts/{post_id}/reschedule").status == 404
