"""A post that was refused for what it contains is changed and posted again. One that may pass is sent as it is."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from socialpub.accounts import profiles
from socialpub.db.states import State
from socialpub.db.tables import audit_log
from socialpub.ops import alerts
from socialpub.publishing.posts import retries
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.integration.api.test_retry import end
from tests.samples import media
from tests.support.appliance import OWNER, accept, add_profile, message_of, state_of
from tests.support.dashboard_browser import DashboardBrowser, Page
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, connect_pinterest, connect_x

CHANGE, AGAIN = "Change and post again", "Post again"


def main_action(page: Page) -> str:
    """The first action that is not secondary."""
    actions = next(one for one in page.root.all("div") if one.attributes.get("class") == "actions")
    found = [one for one in actions.all("a", "button") if "secondary" not in one.attributes.get("class", "")]
    return found[0].text


def posts(rt: Runtime) -> list[str]:
    return [row[0] for row in rt.reader.all("SELECT id FROM post ORDER BY id")]


@pytest.fixture
def refused(rt: Runtime, world: World, clock: HandClock, tmp_path: Path) -> str:
    """A post that is too long for X and has no board for Pinterest, and is out at another account of X."""
    photo = artifact(rt, media.jpeg(tmp_path / "one.jpg"), "image/jpeg")
    shop, pins = connect_x(rt, world, "shop"), connect_pinterest(rt, world)
    out = connect_x(rt, world, "out")
    options = {"x": {"replySettings": "following"}, "pinterest": {"title": "A view"}}
    text = "Much to say. " * 30
    post = accept(rt, shop, pins, out, body=text, media=(DraftMedia(photo, "A harbour"),), options=options)
    rt.write(lambda _, tx: tx.execute("UPDATE delivery SET state = 'published' WHERE profile_id = ?", (out,)))
    drain(rt, clock)
    assert [state_of(rt, post, at) for at in range(3)] == [State.FAILED, State.FAILED, State.PUBLISHED]
    return post


def test_the_main_action_opens_the_composer_with_the_content_that_was_refused(
    owner: DashboardBrowser, rt: Runtime, refused: str
) -> None:
    page = owner.open(f"/posts/{refused}")
    assert main_action(page) == CHANGE
    assert not page.has_button(AGAIN), "the same post would be refused again"
    page = owner.follow(CHANGE)
    assert page.heading == "Compose"
    told = page.role("status")
    assert told.startswith("This is a new post with the content of the one that failed. Change it before you publish")
    assert message_of(rt, refused).partition(", or run")[0] in told
    assert page.field("Text").raw_text.strip() == ("Much to say. " * 30).strip()
    assert page.field("Alt text").attributes["value"] == "A harbour"
    assert page.field("Title").attributes["value"] == "A view"
    ticked = [one for one in page.root.all("input") if one.attributes.get("name") == "profiles"]
    assert ["checked" in one.attributes for one in ticked] == [True, True, False]


def test_the_message_of_a_failure_is_shown_once_on_the_post_s_page(owner: DashboardBrowser, refused: str) -> None:
    page = owner.open(f"/posts/{refused}")
    assert page.text.count("X allows this account 280 characters") == 1
    assert page.text.count("See the message above.") == 2


def test_the_changed_post_is_a_retry_and_the_failed_one_no_longer_needs_its_owner(
    owner: DashboardBrowser, rt: Runtime, clock: HandClock, refused: str
) -> None:
    home = owner.open("/")
    assert home.links()[f"{CHANGE}: {alerts.read_needs(rt).failed.newest[0].text}"].endswith(
        f"/compose?again={refused}"
    )
    owner.open(f"/compose?again={refused}")
    page = owner.press("Check", {"Text": "Little to say"})
    assert "choose a board" in page.role("alert").lower()
    page = owner.press("Publish", {"Board": page.field("Board").all("option")[1].attributes["value"]})
    new = page.path.removeprefix("/posts/")
    assert posts(rt) == [refused, new]
    drain(rt, clock)
    assert [state_of(rt, new, at) for at in range(2)] == [State.PUBLISHED, State.PUBLISHED]
    assert alerts.read_needs(rt).failed.newest == []
    page = owner.open(f"/posts/{refused}")
    assert (CHANGE in page.links(), page.has_button(AGAIN)) == (False, False)
    assert page.links()[new].endswith(f"/posts/{new}")
    assert [(one.action, one.subject_id) for one in audit_log.read(rt.reader, ["post"]).entries] == [
        ("post.retried", refused)
    ]
    page = owner.open(f"/compose?again={refused}")
    assert page.path == f"/posts/{refused}"
    assert "was published by a later one" in page.role("alert")


def test_post_again_remains_beside_it_for_an_account_where_the_post_may_pass(
    owner: DashboardBrowser, rt: Runtime, refused: str
) -> None:
    rt.write(lambda _, tx: tx.execute("UPDATE delivery SET content_refused = 0 WHERE provider = 'pinterest'"))
    page = owner.open(f"/posts/{refused}")
    assert main_action(page) == CHANGE
    assert page.has_button(AGAIN)


def test_a_network_s_own_refusal_of_the_content_counts_the_same(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    post = accept(rt, connect_x(rt, world), body="Said before")
    body = {"detail": "You are not allowed to create a Tweet with duplicate content.", "title": "Forbidden"}
    world.x.next("create_post").fails_with(403, {**body, "type": "about:blank", "status": 403})
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    assert main_action(owner.open(f"/posts/{post}")) == CHANGE


def suspended(world: World) -> None:
    body = {"title": "Forbidden", "detail": "User suspended", "status": 403}
    world.x.next("create_post").fails_with(403, {**body, "type": "https://api.x.com/2/problems/user-suspended"})


def unreachable(world: World) -> None:
    world.x.next("create_post").fails_with(429, headers={"x-rate-limit-reset": "0"}).forever()


@pytest.mark.parametrize("meet", [suspended, unreachable])
def test_what_may_pass_the_second_time_is_posted_again_first(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock, meet: Any
) -> None:
    post = accept(rt, connect_x(rt, world))
    meet(world)
    drain(rt, clock)
    assert state_of(rt, post) is State.FAILED
    page = owner.open(f"/posts/{post}")
    assert main_action(page) == AGAIN
    assert CHANGE not in page.links()
    links = owner.open("/").links()
    assert [name.partition(":")[0] for name in links if "again" in name] == [AGAIN]


def test_a_failure_of_a_former_version_is_posted_again_first(owner: DashboardBrowser, rt: Runtime) -> None:
    post = accept(rt, add_profile(rt))
    end(rt, post, State.FAILED)
    assert main_action(owner.open(f"/posts/{post}")) == AGAIN


def test_an_account_that_another_try_reached_meanwhile_is_left_out(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock
) -> None:
    post = accept(rt, connect_x(rt, world), body="Hello")
    suspended(world)
    drain(rt, clock)
    owner.open(f"/compose?again={post}")
    later = rt.write(retries.retry, post, OWNER)
    page = owner.press("Publish", {"Text": "Hello again"})
    assert (page.status, posts(rt)) == (400, [post, later])
    assert f"x profile : Gets the post from another try ({later}): leave this profile out." in page.role("alert")


def test_where_the_outcome_is_unknown_nothing_is_changed_and_sent(owner: DashboardBrowser, rt: Runtime) -> None:
    shop, club = (add_profile(rt, account_id=name, name=name, username=name) for name in ("shop", "club"))
    post = accept(rt, shop, club)
    end(rt, post, State.FAILED, State.UNCONFIRMED)
    page = owner.open(f"/compose?again={post}")
    assert "checked" not in page.field("club").attributes
    page = owner.press("Publish", {"#profiles": [shop, club]})
    assert page.status == 400
    assert "club : May have the post already" in page.role("alert")
    page = owner.press("Publish", {"#profiles": [shop]})
    assert page.path.startswith("/posts/")


def test_an_account_that_was_connected_again_is_the_same_account(
    owner: DashboardBrowser, rt: Runtime, world: World
) -> None:
    former = connect_x(rt, world)
    post = accept(rt, former)
    end(rt, post, State.FAILED)
    rt.write(profiles.disconnect, former)
    again = connect_x(rt, world)
    page = owner.open(f"/compose?again={post}")
    assert [one.attributes["value"] for one in page.root.all("input") if one.attributes.get("name") == "profiles"] == [
        again
    ]
    owner.press("Publish", {"Text": "Changed"})
    assert alerts.read_needs(rt).failed.newest == []


def test_a_changed_post_can_wait_for_its_time(owner: DashboardBrowser, rt: Runtime, world: World) -> None:
    post = accept(rt, connect_x(rt, world))
    end(rt, post, State.FAILED)
    owner.open(f"/compose?again={post}")
    at = (rt.now() + timedelta(days=1)).strftime("%Y-%m-%dT10:00")
    owner.press("Publish", {"Text": "Tomorrow", "#when": "at", "Time": at})
    assert len(posts(rt)) == 2
    assert alerts.read_needs(rt).failed.newest == []
