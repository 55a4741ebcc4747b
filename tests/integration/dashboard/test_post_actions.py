"""What the owner does to a post: asked once more, refused with the reason, told afterwards, written into the trail."""

from datetime import timedelta
from pathlib import Path

import pytest

from socialpub.accounts import profiles
from socialpub.db import appliance_state
from socialpub.db.states import State
from socialpub.db.tables import audit_log
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.integration.api.test_retry import end
from tests.samples import media
from tests.support.appliance import accept, add_profile, state_of, status_of
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, connect_pinterest, connect_x


@pytest.fixture
def later(rt: Runtime) -> str:
    """A post for tomorrow."""
    return accept(rt, add_profile(rt, name="Shop"), body="Tomorrow", at=rt.now() + timedelta(days=1))


def offered(owner: DashboardBrowser, post: str) -> set[str]:
    """What the page of the post offers to do."""
    page = owner.open(f"/posts/{post}")
    names = {"Edit", "Reschedule", "Publish now", "Post again", "Cancel post", "Stop"}
    return {name for name in names if name in page.links() or page.has_button(name)}


def acts(rt: Runtime) -> list[tuple[str, str, str | None]]:
    return [(one.actor, one.action, one.subject_id) for one in audit_log.read(rt.reader, ["post"]).entries]


def test_each_action_is_offered_where_it_applies(owner: DashboardBrowser, rt: Runtime, later: str) -> None:
    assert offered(owner, later) == {"Edit", "Reschedule", "Publish now", "Cancel post"}
    now = accept(rt, add_profile(rt, account_id="b"))
    assert offered(owner, now) == {"Stop"}
    end(rt, now, State.FAILED)
    assert offered(owner, now) == {"Post again"}
    rt.write(posts.stop, later)
    assert offered(owner, later) == set()


# --- edit ------------------------------------------------------------------------------------------------------------


def test_a_scheduled_post_is_edited_from_its_page(owner: DashboardBrowser, rt: Runtime, later: str) -> None:
    owner.open(f"/posts/{later}")
    page = owner.follow("Edit")
    assert page.field("Text").raw_text.strip() == "Tomorrow"
    page = owner.press("Save", {"Text": "The day after"})
    assert (page.path, page.title) == (f"/posts/{later}", "Post: The day after – socialpub")
    assert page.role("status") == "The post is changed."
    assert acts(rt) == [("dashboard", "post.edited", later)]
    rt.write(posts.stop, later)
    assert "Only posts scheduled for the future can be edited." in owner.open(f"/posts/{later}/edit").role("alert")


# --- cancel ----------------------------------------------------------------------------------------------------------


def test_a_post_is_canceled_after_asking_once_more(owner: DashboardBrowser, rt: Runtime, later: str) -> None:
    owner.open(f"/posts/{later}")
    page = owner.follow("Cancel post")
    assert (page.heading, status_of(rt, later)) == ("Cancel this post?", "scheduled")
    assert "Tomorrow" in page.text and "Shop" in page.text
    page = owner.press("Cancel post")
    assert (page.path, page.role("status")) == (f"/posts/{later}", "Canceled: “Tomorrow” is not sent.")
    assert status_of(rt, later) == "canceled"
    assert acts(rt) == [("dashboard", "post.canceled", later)]
    assert "Canceled this post." in page.text and "owner, in the dashboard" in page.text
    page = owner.open(f"/posts/{later}/cancel")
    assert page.path == f"/posts/{later}" and "The post is canceled; only" in page.role("alert")


def test_a_post_that_started_meanwhile_is_not_canceled(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    post = accept(rt, connect_x(rt, world), at=rt.now() + timedelta(hours=1))
    owner.open(f"/posts/{post}/cancel")
    drain(rt, clock)
    page = owner.press("Cancel post")
    assert "The post is settled; only a scheduled post" in page.role("alert")
    assert state_of(rt, post) is State.PUBLISHED


def test_whoever_came_from_another_page_is_led_back_there(owner: DashboardBrowser, later: str) -> None:
    owner.open(f"/posts/{later}/cancel?back=/posts?status=scheduled")
    page = owner.press("Cancel post")
    assert page.path == "/posts?status=scheduled" and page.role("status").startswith("Canceled")
    page = owner.open(f"/posts/{later}/cancel?back=https://evil.example/")
    assert page.path == f"/posts/{later}"


# --- publish now -----------------------------------------------------------------------------------------------------


def test_a_scheduled_post_goes_out_now(owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock) -> None:
    post = accept(rt, connect_x(rt, world), at=rt.now() + timedelta(days=1))
    owner.open(f"/posts/{post}")
    page = owner.follow("Publish now")
    assert page.heading == "Publish this post now?" and "at once to X “x profile”" in page.text
    assert owner.press("Publish now").role("status") == "The post goes out now."
    drain(rt)
    assert state_of(rt, post) is State.PUBLISHED
    assert acts(rt) == [("dashboard", "post.edited", post)]
    page = owner.open(f"/posts/{post}/publish")
    assert "Only posts scheduled for the future can be edited" in page.role("alert")


def test_publishing_now_says_when_publishing_is_paused(owner: DashboardBrowser, rt: Runtime, later: str) -> None:
    rt.write(resume.pause)
    assert "Publishing is paused" in owner.open(f"/posts/{later}/publish").text


# --- stop ------------------------------------------------------------------------------------------------------------


def test_what_can_be_stopped_is_told_before_and_after(owner: DashboardBrowser, rt: Runtime) -> None:
    shop, club, other = (add_profile(rt, account_id=name, name=name) for name in ("shop", "club", "other"))
    post = accept(rt, shop, club, other)
    end(rt, post, State.PUBLISHED, State.QUEUED, State.QUEUED)
    rt.db.write(lambda tx: tx.execute("UPDATE delivery SET committed_at = ? WHERE profile_id = ?", (tx.stamp, club)))
    owner.open(f"/posts/{post}")
    page = owner.follow("Stop")
    assert page.heading == "Stop this post?"
    assert "X “shop”: published already" in page.text
    assert "X “club”: past its commit" in page.text
    assert "X “other”: not sent any more." in page.text
    page = owner.press("Stop")
    assert "nothing more of the post is sent. To X “club” it may be out already" in page.role("status")
    assert [state_of(rt, post, at) for at in range(3)] == [State.PUBLISHED, State.QUEUED, State.FAILED]
    assert acts(rt) == [("dashboard", "post.stopped", post)]


def test_a_settled_post_has_nothing_to_stop(owner: DashboardBrowser, rt: Runtime) -> None:
    post = accept(rt, add_profile(rt))
    owner.open(f"/posts/{post}/stop")
    end(rt, post, State.FAILED)
    page = owner.press("Stop")
    assert page.role("alert") == "The post was settled already; nothing was left to stop."
    assert owner.open(f"/posts/{post}/stop").role("alert") == page.role("alert")
    assert acts(rt) == []


def test_what_the_original_of_a_restored_copy_may_have_sent_is_stopped_and_not_canceled(
    owner: DashboardBrowser, rt: Runtime, clock: HandClock
) -> None:
    post = accept(rt, add_profile(rt), at=rt.now() + timedelta(hours=1))
    rt.db.write(lambda tx: appliance_state.note_restore(tx, tx.stamp))
    clock.forward(7200)
    assert offered(owner, post) == {"Stop"}
    assert "restored from a backup" in owner.open(f"/posts/{post}/cancel").role("alert")


# --- post again ------------------------------------------------------------------------------------------------------


def test_what_failed_is_posted_again_at_once(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    post = accept(rt, connect_x(rt, world), connect_pinterest(rt, world), body="Again", options={"pinterest": {}})
    drain(rt, clock)
    assert (state_of(rt, post, 0), state_of(rt, post, 1)) == (State.PUBLISHED, State.FAILED)
    rt.db.write(lambda tx: tx.execute("UPDATE delivery SET state = 'failed' WHERE provider = 'x'"))
    owner.open(f"/posts/{post}")
    page = owner.press("Post again")
    assert page.title == "Post: Again – socialpub" and page.path != f"/posts/{post}"
    new = page.path.removeprefix("/posts/")
    assert page.role("status") == f"Posted again: this is the new post, {new}."
    assert page.links()[post].endswith(f"/posts/{post}")
    assert acts(rt) == [("dashboard", "post.retried", post)]
    page = owner.open(f"/posts/{post}")
    assert page.links()[new].endswith(f"/posts/{new}") and not page.has_button("Post again")
    page = owner.open(f"/posts/{post}/again")
    assert "is being published again by another one" in page.role("alert")


def test_the_form_of_post_again_sent_twice_makes_one_post(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    post = accept(rt, connect_x(rt, world), body="Again")
    end(rt, post, State.FAILED)
    page = owner.open(f"/posts/{post}")
    new = owner.press("Post again").path
    end(rt, new.removeprefix("/posts/"), State.FAILED)  # so that it could be tried once more
    owner.page = page
    again = owner.press("Post again")
    assert (again.path, again.role("status")) == (
        new,
        "You already submitted this form. This is the post that it created.",
    )
    owner.open(f"/posts/{post}")
    assert owner.press("Post again").path not in (new, f"/posts/{post}"), "another form makes another try"


def test_where_the_outcome_is_unknown_the_account_is_looked_at_first(owner: DashboardBrowser, rt: Runtime) -> None:
    shop, club = (add_profile(rt, account_id=name, name=name, username=name) for name in ("shop", "club"))
    post = accept(rt, shop, club)
    end(rt, post, State.FAILED, State.UNCONFIRMED)
    owner.open(f"/posts/{post}")
    page = owner.follow("Post again")
    assert page.heading == "Post this again?"
    assert page.links()["Look at X “club”"].endswith("/x/club")
    new = owner.press("Post again").path.removeprefix("/posts/")
    assert [row[0] for row in rt.reader.all("SELECT profile_id FROM delivery WHERE post_id = ?", (new,))] == [shop]


def test_what_is_only_unknown_wants_the_tick(owner: DashboardBrowser, rt: Runtime) -> None:
    post = accept(rt, add_profile(rt, username=None))
    end(rt, post, State.UNCONFIRMED)
    owner.open(f"/posts/{post}/again")
    page = owner.press("Post again")
    assert page.status == 400 and "Look at the account first" in page.role("alert")
    field = page.field("Post it there, too: it may appear twice")
    assert (field.attributes["aria-invalid"], field.attributes["aria-describedby"]) == ("true", "includeUnknown-help")
    assert acts(rt) == []
    page = owner.press("Post again", {"Post it there, too: it may appear twice": True})
    assert page.role("status").startswith("Posted again")


def test_what_cannot_be_posted_again_says_why(owner: DashboardBrowser, rt: Runtime, tmp_path: Path) -> None:
    profile = add_profile(rt, name="Shop")
    photo = artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")
    post = accept(rt, profile, media=(DraftMedia(photo),))
    end(rt, post, State.FAILED)
    rt.db.write(lambda tx: tx.update("artifact", photo, removed_at=tx.stamp, storage_key=None))
    owner.open(f"/posts/{post}")
    page = owner.press("Post again")
    assert page.path == f"/posts/{post}" and "bytes were removed; upload the file again" in page.role("alert")
    rt.write(profiles.disconnect, profile)
    page = owner.press("Post again")
    assert "The account can no longer be reached: x “Shop” was disconnected" in page.role("alert")
    published = accept(rt, add_profile(rt, account_id="b"))
    end(rt, published, State.PUBLISHED)
    assert owner.open(f"/posts/{published}/again").role("alert").startswith("Nothing of this post has failed")
