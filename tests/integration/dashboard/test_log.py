"""The delivery log with filters and download, and the audit log."""

import csv
import io
from datetime import timedelta

import pytest

from socialpub.accounts import api_keys
from socialpub.db.states import State
from socialpub.db.tables import audit_log, profile_rows
from socialpub.db.tables.audit_log import AuditAction
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import accept, add_profile, state_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock

MARKUP = "<img src=x onerror=alert(1)>"


def refused(rt: Runtime, world: World, clock: HandClock, profile: str, detail: str, body: str = "Not this one") -> str:
    world.x.next("create_post").fails_with(403, {"title": "Forbidden", "detail": detail, "status": 403})
    post = accept(rt, profile, body=body)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    return post


def test_an_empty_log_explains_its_entries(owner):
    page = owner.open("/log")
    assert "No deliveries yet" in page.text
    assert "Compose" in page.links()


def test_the_log_shows_each_outcome_and_links_to_the_post(owner, rt, world, clock, x):
    post = accept(rt, x, body="Hello out there")
    drain(rt, clock)
    failed = refused(rt, world, clock, x, f"No {MARKUP}", body=MARKUP)
    page = owner.open("/log")
    assert page.links()["Hello out there"].endswith(f"/posts/{post}")
    assert page.links()[MARKUP].endswith(f"/posts/{failed}")
    assert "View on X" in page.links()
    assert f"No {MARKUP}" in page.text
    assert page.root.all("img") == []
    results = [row.all("span")[0].text for row in page.root.all("tbody")[0].all("tr")]
    assert results == ["Failed", "Published"]
    everything = owner.press("Show", {"Type": "all"})
    results = [row.all("span")[0].text for row in everything.root.all("tbody")[0].all("tr")]
    assert results == ["Failed", "Accepted", "Published", "Accepted"]


def test_the_log_shows_outcomes_and_the_file_everything(owner, rt, clock, x):
    accept(rt, x, body="Already out")
    drain(rt, clock)
    for number in range(60):
        accept(rt, x, body=f"Later {number}", at=rt.now() + timedelta(days=number + 1))
    page = owner.open("/log")
    assert ("Already out" in page.text, "Later" in page.text) == (True, False)
    rows = list(csv.DictReader(io.StringIO(owner.ask("GET", page.links()["Download as CSV"]).body.decode())))
    assert len(rows) == 62
    rows = list(csv.DictReader(io.StringIO(owner.ask("GET", "/log.csv?type=published").body.decode())))
    assert [row["text"] for row in rows] == ["Already out"]
    assert "Later 59" in owner.open("/log?type=all").text
    nothing = owner.open("/log?search=nowhere")
    assert nothing.links()["Include accepted deliveries"].endswith("/log?search=nowhere&type=all")


def test_filters_combine_and_can_be_bookmarked(owner, rt, world, clock, x):
    profile, other = x, add_profile(rt, "tiktok", name="Clips")
    accept(rt, other, body="A clip", at=rt.now() + timedelta(days=9))
    accept(rt, profile, body="The first")
    drain(rt, clock, within=3600)
    clock.forward(2 * 86400)
    refused(rt, world, clock, profile, "You cannot do 100% of this")
    page = owner.press("Show", {"Network": "x", "Type": "failed", "Search in messages": "100% OF"}, on="/log")
    assert "network=x" in page.path
    assert ("Not this one" in page.text, "The first" in page.text, "A clip" in page.text) == (True, False, False)
    assert page.field("Type").all("option")[4].attributes.get("selected") == ""
    today = rt.now().strftime("%Y-%m-%d")
    page = owner.open(f"/log?from={today}&to={today}")
    assert ("Not this one" in page.text, "The first" in page.text) == (True, False)
    page = owner.open(f"/log?profile={other}&type=all")
    assert ("A clip" in page.text, "The first" in page.text) == (True, False)
    assert "No entries match" in owner.open("/log?search=nothing+like+it").text
    assert owner.follow("Clear filters").path == "/log"


def test_invalid_filters_are_errors_and_the_others_apply(owner, rt):
    accept(rt, add_profile(rt), body="Here")
    page = owner.open("/log?network=myspace&from=yesterday&to=9999-12-31&type=pending&below=x")
    assert (page.status, "Part of the filter is ignored" in page.role("alert")) == (400, True)
    assert "This is not a date" in page.text
    assert "Here" in page.text
    assert owner.open("/log.csv?from=yesterday").status == 400


def test_a_long_history_is_read_page_by_page(owner, rt, profile):
    for number in range(120):
        accept(rt, profile, body=f"Post number {number}.")
    page = owner.open("/log?network=x&type=all")
    assert ("Post number 119." in page.text, "Post number 69." in page.text) == (True, False)
    page = owner.follow("Older")
    assert "network=x" in page.path
    assert ("Post number 69." in page.text, "Post number 119." in page.text) == (True, False)
    page = owner.follow("Older")
    assert ("Post number 0." in page.text, "Older" in page.links()) == (True, False)
    assert "Post number 119." in owner.follow("Newest").text


@pytest.mark.parametrize("begins", ["=", "+", "-", "@", "\t"])
def test_the_file_quotes_hostile_texts(owner, rt, begins):
    hostile = f'{begins}cmd|"/c calc"!A1,\r\n;"quoted" ü 🌿'
    accept(rt, add_profile(rt, name=f"{begins}1+1"), body=hostile)
    owner.open("/log")
    reply = owner.ask("GET", "/log.csv")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/csv; charset=utf-8")
    assert "attachment" in reply.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(reply.body.decode(), newline=""))
    assert row["text"] == f"'{hostile}"
    assert row["profile"] == f"'{begins}1+1"
    assert not any((cell or "").startswith(begins) for cell in row.values())


def test_the_audit_log_says_who_did_what(owner, rt, profile):
    rt.write(api_keys.create, MARKUP)
    owner.press("Pause", on="/system")
    rt.db.write(lambda tx: profile_rows.update(tx, profile, name="Linen"))
    page = owner.open("/audit")
    entries = [one.text for one in page.root.all("ol")[0].all("li")]
    assert entries[0].startswith("Paused publishing. owner, in the dashboard ·")
    assert any(entry.startswith(f"Created the API key “{MARKUP}” (write)") for entry in entries)
    assert page.root.all("img") == []
    only = owner.press("Show", {"About": "publishing"})
    assert [one.text.partition(".")[0] for one in only.root.all("ol")[0].all("li")] == ["Paused publishing"]
    assert "No entries of this kind yet." in owner.press("Show", {"About": "backup"}).text


def test_times_in_the_audit_log_are_in_the_zone_of_the_browser(owner, rt):
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    post = accept(rt, add_profile(rt))
    at = "2027-10-31T01:30:00.000Z"
    rt.db.write(lambda tx: audit_log.record(tx, AuditAction.POST_CREATED, post, "Hello", scheduled_at=at))
    for path in ("/audit", f"/posts/{post}"):
        page = owner.open(path)
        assert "scheduled for 31 Oct 2027, 02:30 CET" in page.text, path
        assert "2027-10-31T01:30" not in page.text, path
