"""The actions on a post ask first, are refused with a reason, and are in the audit log."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from socialpub.accounts import profiles
from socialpub.db import appliance_state
from socialpub.db.models import ArtifactRow
from socialpub.db.states import State
from socialpub.db.tables import audit_log
from socialpub.ops import alerts
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts, retries
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import OWNER, accept, add_profile, end_deliveries, message_of, state_of, status_of
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.rows import post_ids
from tests.support.sandbox_http import artifact, connect_pinterest, connect_x
from tests.support.select import select_all, select_one, select_value
from tests.support.tab import Page, Tab


@pytest.fixture
def later(rt: Runtime) -> str:
    return accept(rt, add_profile(rt, name="Shop"), body="Tomorrow", at=rt.now() + timedelta(days=1))


def offered(owner: Tab, post: str) -> set[str]:
    page = owner.open(f"/posts/{post}")
    names = {"Edit", "Reschedule", "Publish now", "Post again", "Cancel post", "Stop"}
    return {name for name in names if name in page.links() or page.has_button(name)}


def acts(rt: Runtime) -> list[tuple[str, str, str | None]]:
    return [(one.actor, one.action, one.subject_id) for one in audit_log.load_page(rt.db, ["post"]).entries]


def test_each_action_is_offered_where_it_applies(owner, rt, later):
    assert offered(owner, later) == {"Edit", "Reschedule", "Publish now", "Cancel post"}
    now = accept(rt, add_profile(rt, account_id="b"))
    assert offered(owner, now) == {"Stop"}
    end_deliveries(rt, now, State.FAILED)
    assert offered(owner, now) == {"Post again"}
    rt.write(posts.stop, later)
    assert offered(owner, later) == set()


def test_a_post_is_canceled_after_a_question(owner, rt, later):
    owner.open(f"/posts/{later}")
    page = owner.follow("Cancel post")
    assert (page.heading, status_of(rt, later)) == ("Cancel this post?", "scheduled")
    assert "Tomorrow" in page.text and "Shop" in page.text
    page = owner.press("Cancel post")
    assert (page.path, page.role("status")) == (f"/posts/{later}", "Canceled. “Tomorrow” will not be published.")
    assert status_of(rt, later) == "canceled"
    assert acts(rt) == [("dashboard", "post.canceled", later)]
    assert "Canceled this post." in page.text and "owner, in the dashboard" in page.text
    page = owner.open(f"/posts/{later}/cancel")
    assert page.path == f"/posts/{later}" and "The post is canceled; only" in page.role("alert")


def test_an_action_returns_to_the_former_page(owner, later):
    page = owner.press("Cancel post", on=f"/posts/{later}/cancel?back=/posts?status=scheduled")
    assert page.path == "/posts?status=scheduled" and page.role("status").startswith("Canceled")
    page = owner.open(f"/posts/{later}/cancel?back=https://evil.example/")
    assert page.path == f"/posts/{later}"


def test_a_scheduled_post_can_be_published_now(owner, rt, world):
    post = accept(rt, connect_x(rt, world), at=rt.now() + timedelta(days=1))
    owner.open(f"/posts/{post}")
    page = owner.follow("Publish now")
    assert page.heading == "Publish this post now?" and "now to X “x profile”" in page.text
    assert owner.press("Publish now").role("status") == "The post is being published."
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED
    assert acts(rt) == [("dashboard", "post.edited", post)]
    page = owner.open(f"/posts/{post}/publish")
    assert "Only posts scheduled for the future can be edited" in page.role("alert")


def test_publishing_now_says_when_publishing_is_paused(owner, rt, later):
    rt.write(resume.pause)
    assert "Publishing is paused" in owner.open(f"/posts/{later}/publish").text


def test_stop_shows_the_state_of_each_delivery_before_and_after(owner, rt):
    shop, club, other = (add_profile(rt, account_id=name, name=name) for name in ("shop", "club", "other"))
    post = accept(rt, shop, club, other)
    end_deliveries(rt, post, State.PUBLISHED, State.QUEUED, State.QUEUED)
    rt.db.write(
        lambda tx: tx.execute_sql("UPDATE delivery SET committed_at = ? WHERE profile_id = ?", (tx.stamp, club))
    )
    owner.open(f"/posts/{post}")
    page = owner.follow("Stop")
    assert page.heading == "Stop this post?"
    assert "X “shop”: published. This does not change" in page.text
    assert "X “club”: already sent, so it may be public" in page.text
    assert "X “other”: will not be sent." in page.text
    page = owner.press("Stop")
    assert "Nothing more of this post is sent. It may already be public on X “club”" in page.role("status")
    assert [state_of(rt, post, at) for at in range(3)] == [State.PUBLISHED, State.QUEUED, State.FAILED]
    assert acts(rt) == [("dashboard", "post.stopped", post)]


def test_a_due_post_of_a_restored_installation_can_be_stopped_but_not_canceled(owner, rt, clock):
    post = accept(rt, add_profile(rt), at=rt.now() + timedelta(hours=1))
    rt.db.write(lambda tx: appliance_state.note_restore(tx, tx.stamp))
    clock.forward(7200)
    assert offered(owner, post) == {"Stop"}
    page = owner.open(f"/posts/{post}/cancel")
    assert "restored from a backup" in page.role("alert")
    assert "press “Resume” under System in the dashboard." in page.role("alert")
    assert "socialpub admin" not in page.text


def test_failed_deliveries_are_posted_again_at_once(owner, rt, world, clock):
    post = accept(rt, connect_x(rt, world), connect_pinterest(rt, world), body="Again", options={"pinterest": {}})
    drain(rt, clock)
    assert (state_of(rt, post, 0), state_of(rt, post, 1)) == (State.PUBLISHED, State.FAILED)
    rt.db.write(lambda tx: tx.execute_sql("UPDATE delivery SET state = 'failed' WHERE provider = 'x'"))
    page = owner.press("Post again", on=f"/posts/{post}")
    assert page.title == "Post: Again – socialpub" and page.path != f"/posts/{post}"
    new = page.path.removeprefix("/posts/")
    assert page.role("status") == f"Posted again. This is the new post, {new}."
    assert page.links()[post].endswith(f"/posts/{post}")
    assert acts(rt) == [("dashboard", "post.retried", post)]
    page = owner.open(f"/posts/{post}")
    assert page.links()[new].endswith(f"/posts/{new}") and not page.has_button("Post again")
    page = owner.open(f"/posts/{post}/again")
    assert "Another post already retries the failed deliveries" in page.role("alert")


def test_post_again_submitted_twice_creates_one_post(owner, rt, world):
    post = accept(rt, connect_x(rt, world), body="Again")
    end_deliveries(rt, post, State.FAILED)
    page = owner.open(f"/posts/{post}")
    new = owner.press("Post again").path
    end_deliveries(rt, new.removeprefix("/posts/"), State.FAILED)  # so that another retry is possible
    owner.page = page
    again = owner.press("Post again")
    assert (again.path, again.role("status")) == (
        new,
        "You already submitted this form. This is the post that it created.",
    )
    owner.open(f"/posts/{post}")
    assert owner.press("Post again").path not in (new, f"/posts/{post}"), "another form makes another try"


def test_an_unknown_outcome_links_to_the_account_first(owner, rt):
    shop, club = (add_profile(rt, account_id=name, name=name, username=name) for name in ("shop", "club"))
    post = accept(rt, shop, club)
    end_deliveries(rt, post, State.FAILED, State.UNCONFIRMED)
    owner.open(f"/posts/{post}")
    page = owner.follow("Post again")
    assert page.heading == "Post this again?"
    assert page.links()["Open X “club”"].endswith("/x/club")
    new = owner.press("Post again").path.removeprefix("/posts/")
    assert [row[0] for row in select_all(rt.db, "SELECT profile_id FROM delivery WHERE post_id = ?", (new,))] == [shop]


def test_an_unknown_outcome_needs_a_tick(owner, rt):
    post = accept(rt, add_profile(rt, username=None))
    end_deliveries(rt, post, State.UNCONFIRMED)
    page = owner.press("Post again", on=f"/posts/{post}/again")
    assert page.status == 400 and "Check the account first" in page.role("alert")
    field = page.field("Post there again (it may appear twice)")
    assert (field.attributes["aria-invalid"], field.attributes["aria-describedby"]) == ("true", "includeUnknown-help")
    assert acts(rt) == []
    page = owner.press("Post again", {"Post there again (it may appear twice)": True})
    assert page.role("status").startswith("Posted again")


CHANGE, AGAIN = "Change and post again", "Post again"


def main_action(page: Page) -> str:
    """Return the first action that is not secondary."""
    found = [
        one
        for one in page.root.of_class("actions")[0].all("a", "button")
        if "secondary" not in one.attributes.get("class", "")
    ]
    return found[0].text


@pytest.fixture
def refused(rt: Runtime, world: World, clock: HandClock, tmp_path: Path) -> str:
    """A post that is too long for X, has no board for Pinterest, and is published on another X account."""
    photo = artifact(rt, media.jpeg(tmp_path / "one.jpg"), "image/jpeg")
    shop, pins = connect_x(rt, world, "shop"), connect_pinterest(rt, world)
    out = connect_x(rt, world, "out")
    options = {"x": {"replySettings": "following"}, "pinterest": {"title": "A view"}}
    text = "Much to say. " * 30
    post = accept(rt, shop, pins, out, body=text, media=(DraftMedia(photo, "A harbour"),), options=options)
    rt.write(lambda _, tx: tx.execute_sql("UPDATE delivery SET state = 'published' WHERE profile_id = ?", (out,)))
    drain(rt, clock)
    assert [state_of(rt, post, at) for at in range(3)] == [State.FAILED, State.FAILED, State.PUBLISHED]
    return post


def test_the_main_action_opens_the_composer_with_the_refused_content(owner, rt, refused):
    page = owner.open(f"/posts/{refused}")
    assert main_action(page) == CHANGE
    assert not page.has_button(AGAIN), "the same post would be refused again"
    page = owner.follow(CHANGE)
    assert page.heading == "Compose"
    told = page.role("status")
    assert told.startswith("This is a new post with the content of the failed post. Change it before you publish")
    assert message_of(rt, refused).partition(", or run")[0] in told
    assert page.field("Text").raw_text.strip() == ("Much to say. " * 30).strip()
    assert page.field("Alt text").attributes["value"] == "A harbour"
    assert page.field("Title").attributes["value"] == "A view"
    assert ["checked" in one.attributes for one in page.boxes("profiles")] == [True, True, False]


def test_the_message_of_a_failure_is_shown_once_on_the_post_s_page(owner, refused):
    page = owner.open(f"/posts/{refused}")
    assert page.text.count("X allows this account 280 characters") == 1
    assert page.text.count("See the message above.") == 2


def test_the_changed_post_is_a_retry_and_ends_the_alert(owner, rt, clock, refused):
    home = owner.open("/")
    assert home.links()[f"{CHANGE}: {alerts.load_alert_facts(rt).failed.newest[0].text}"].endswith(
        f"/compose?again={refused}"
    )
    page = owner.press("Check", {"Text": "Little to say"}, on=f"/compose?again={refused}")
    assert "choose a board" in page.role("alert").lower()
    page = owner.press("Publish", {"Board": page.field("Board").all("option")[1].attributes["value"]})
    new = page.path.removeprefix("/posts/")
    assert post_ids(rt) == [refused, new]
    drain(rt, clock)
    assert [state_of(rt, new, at) for at in range(2)] == [State.PUBLISHED, State.PUBLISHED]
    assert alerts.load_alert_facts(rt).failed.newest == []
    page = owner.open(f"/posts/{refused}")
    assert (CHANGE in page.links(), page.has_button(AGAIN)) == (False, False)
    assert page.links()[new].endswith(f"/posts/{new}")
    assert [(one.action, one.subject_id) for one in audit_log.load_page(rt.db, ["post"]).entries] == [
        ("post.retried", refused)
    ]
    page = owner.open(f"/compose?again={refused}")
    assert page.path == f"/posts/{refused}"
    assert "A later post has published" in page.role("alert")


def test_post_again_remains_if_the_same_post_can_succeed(owner, rt, refused):
    rt.write(lambda _, tx: tx.execute_sql("UPDATE delivery SET content_refused = 0 WHERE provider = 'pinterest'"))
    page = owner.open(f"/posts/{refused}")
    assert main_action(page) == CHANGE
    assert page.has_button(AGAIN)


def suspended(world: World) -> None:
    body = {"title": "Forbidden", "detail": "User suspended", "status": 403}
    world.x.next("create_post").fails_with(403, {**body, "type": "https://api.x.com/2/problems/user-suspended"})


def unreachable(world: World) -> None:
    world.x.next("create_post").fails_with(429, headers={"x-rate-limit-reset": "0"}).forever()


@pytest.mark.parametrize("meet", [suspended, unreachable])
def test_post_again_is_the_main_action_if_the_same_post_can_succeed(owner, rt, world, clock, meet):
    post = accept(rt, connect_x(rt, world))
    meet(world)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    page = owner.open(f"/posts/{post}")
    assert main_action(page) == AGAIN
    assert CHANGE not in page.links()
    links = owner.open("/").links()
    assert [name.partition(":")[0] for name in links if "again" in name] == [AGAIN]


def test_an_account_of_another_retry_is_left_out(owner, rt, world, clock):
    post = accept(rt, connect_x(rt, world), body="Hello")
    suspended(world)
    drain(rt, clock)
    owner.open(f"/compose?again={post}")
    later = rt.write(retries.retry, post, OWNER)
    page = owner.press("Publish", {"Text": "Hello again"})
    assert (page.status, post_ids(rt)) == (400, [post, later])
    assert f"x profile : Gets the post from another retry ({later}); leave this profile out." in page.role("alert")


def test_a_changed_post_is_not_sent_to_accounts_with_an_unknown_outcome(owner, rt):
    shop, club = (add_profile(rt, account_id=name, name=name, username=name) for name in ("shop", "club"))
    post = accept(rt, shop, club)
    end_deliveries(rt, post, State.FAILED, State.UNCONFIRMED)
    page = owner.open(f"/compose?again={post}")
    assert "checked" not in page.field("club").attributes
    page = owner.press("Publish", {"#profiles": [shop, club]})
    assert page.status == 400
    assert "club : May already have the post" in page.role("alert")
    page = owner.press("Publish", {"#profiles": [shop]})
    assert page.path.startswith("/posts/")


def test_a_reconnected_account_is_the_same_account(owner, rt, world):
    former = connect_x(rt, world)
    post = accept(rt, former)
    end_deliveries(rt, post, State.FAILED)
    rt.write(profiles.disconnect, former)
    again = connect_x(rt, world)
    page = owner.open(f"/compose?again={post}")
    assert [one.attributes["value"] for one in page.boxes("profiles")] == [again]
    owner.press("Publish", {"Text": "Changed"})
    assert alerts.load_alert_facts(rt).failed.newest == []


AT = datetime(2026, 11, 5, 8, 0, tzinfo=UTC)


@pytest.fixture
def post(rt: Runtime) -> str:
    return accept(rt, add_profile(rt, name="Studio <b>X</b>"), body="Evening & <i>sky</i>", at=AT)


def time_of(rt: Runtime, post_id: str) -> str:
    times = select_one(
        rt.db,
        "SELECT p.scheduled_at, d.scheduled_at, run_at FROM post p JOIN delivery d ON d.post_id = p.id WHERE p.id = ?",
        (post_id,),
    )
    assert times is not None
    assert len(set(times)) == 1
    return str(times[0])


def test_the_new_time_is_in_the_zone_of_the_form(owner, rt, post):
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    page = owner.open(f"/posts/{post}/reschedule?back=/system")
    assert (page.heading, page.title) == ("Reschedule post", "Reschedule post – socialpub")
    assert page.field("Time").attributes["value"] == "2026-11-05T09:00"
    assert "Time zone: Europe/Berlin" in page.text
    assert "Evening & <i>sky</i>" in page.text
    assert "Studio <b>X</b>" in page.text

    owner.cookies["socialpub_zone"] = "Asia%2FKolkata"  # the traveller's page is older than the cookie
    page = owner.press("Reschedule", {"Time": "2026-11-06T18:30"})
    assert (page.path, page.role("status")) == ("/system", "The post is rescheduled to 6 Nov 2026, 18:30 CET.")
    assert time_of(rt, post) == "2026-11-06T17:30:00.000Z"


def test_after_a_concurrent_change_rescheduling_asks_first(owner, rt, post, clock):
    owner.open(f"/posts/{post}/reschedule?back=/system")
    clock.forward(0.001)
    rt.write(posts.edit, post, Draft.change(body="Morning sky"), OWNER)
    page = owner.press("Reschedule", {"Time": "2026-11-06T10:00"})
    assert page.status == 409
    assert page.role("alert").startswith("The post was changed after this form was opened. Nothing is saved.")
    assert "Morning sky" in page.text
    assert page.field("Time").attributes["value"] == "2026-11-06T10:00"
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"

    page = owner.press("Reschedule")
    assert (page.path, page.role("status")) == ("/system", "The post is rescheduled to 6 Nov 2026, 10:00 UTC.")
    assert time_of(rt, post) == "2026-11-06T10:00:00.000Z"


def test_rescheduling_to_the_same_time_changes_nothing(owner, rt, post):
    before = select_value(rt.db, "SELECT count(*) FROM trail")
    page = owner.press("Reschedule", on=f"/posts/{post}/reschedule?back=/system")
    assert page.role("status").startswith("The post already has this time")
    assert select_value(rt.db, "SELECT count(*) FROM trail") == before


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("2026-10-12T08:59", "must be in the future"),
        ("", "Choose a date"),
        ("5.11.", "Choose"),
        ("2027-03-28T02:30", "The next valid time is 03:00 CEST."),
    ],
)
def test_an_invalid_time_is_refused_and_stays_in_the_field(owner, rt, post, given, reason):
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    page = owner.press("Reschedule", {"Time": given}, on=f"/posts/{post}/reschedule?back=/system")
    assert (page.status, page.heading) == (400, "Reschedule post")
    assert reason in page.role("alert")
    field = page.field("Time")
    assert (field.attributes["value"], field.attributes["aria-invalid"]) == (given, "true")
    assert reason in page.by_id(field.attributes["aria-describedby"]).text
    assert time_of(rt, post) == "2026-11-05T08:00:00.000Z"
    assert owner.press("Reschedule", {"Time": "2026-11-05T10:00"}).path == "/system"


def test_a_page_that_is_out_of_date_changes_nothing_and_shows_the_reason(owner, rt, later):
    owner.open(f"/posts/{later}/cancel")
    end_deliveries(rt, later, State.FAILED)
    assert "The post is settled; only a scheduled post" in owner.press("Cancel post").role("alert")
    nothing = "The post is already settled. There is nothing to stop."
    assert owner.open(f"/posts/{later}/stop").role("alert") == nothing
    page = owner.open(f"/posts/{later}/reschedule?back=/system")
    assert (page.path, "Only posts scheduled for the future can be edited" in page.role("alert")) == ("/system", True)
    now = accept(rt, add_profile(rt, account_id="b"))
    owner.open(f"/posts/{now}/stop")
    end_deliveries(rt, now, State.PUBLISHED)
    assert owner.press("Stop").role("alert") == nothing
    assert owner.open(f"/posts/{now}/again").role("alert").startswith("No delivery of this post has failed")
    assert acts(rt) == []


def test_a_post_that_cannot_be_posted_again_shows_the_reason(owner, rt, tmp_path):
    profile = add_profile(rt)
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    post = accept(rt, profile, media=(DraftMedia(photo),))
    end_deliveries(rt, post, State.FAILED)
    rt.db.write(lambda tx: tx.update(ArtifactRow, photo, removed_at=tx.stamp, storage_key=None))
    page = owner.press("Post again", on=f"/posts/{post}")
    assert page.path == f"/posts/{post}" and "bytes were removed; upload the file again" in page.role("alert")
