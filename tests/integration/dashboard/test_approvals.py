"""The owner approves or stops the posts of agents in the dashboard (contract 10.3)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.db.states import State
from socialpub.db.tables import audit_log
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import OWNER, accept, state_of, status_of
from tests.support.drain import drain

AGENT = Caller("agent", "write", name="claude", approval=True)
Ask = Callable[..., str]


@pytest.fixture
def ask(rt: Runtime, x: str) -> Ask:
    """A post of an agent, in this number of hours or now."""

    def create(text: str = "Draft", hours: float | None = None) -> str:
        at = None if hours is None else rt.now() + timedelta(hours=hours)
        return rt.write(posts.create, Draft(text, at, (x,)), AGENT)

    return create


def change(rt: Runtime, post: str, text: str, caller: Caller = AGENT) -> None:
    rt.write(posts.edit, post, Draft.change(body=text), caller)


def sent(world: World) -> list[str]:
    return [post.text for post in world.x.posts]


def test_a_waiting_post_is_approved_on_its_page(owner, rt, world, clock, ask):
    post = ask()
    drain(rt)
    page = owner.open(f"/posts/{post}")
    assert page.has_button("Approve")
    assert "Stop" in page.links()
    assert "Your approval." in page.text
    assert page.text.count("Waits for approval") == 2, "the post and its delivery"
    form = page.form_of(page.button("Approve"))
    page = owner.press("Approve")
    assert page.role("status") == "Approved. The post is published now."
    assert not page.has_button("Approve")
    drain(rt, clock)
    assert (sent(world), state_of(rt, post)) == (["Draft"], State.PUBLISHED)
    again = owner.send(form, owner.fields_of(form))
    assert "not approved" not in again.role("alert") + again.role("status")
    drain(rt, clock)
    assert sent(world) == ["Draft"]
    assert [(one.actor, one.action) for one in audit_log.load_page(rt.db, ["post"]).entries] == [
        ("dashboard", "post.approved")
    ]
    assert "Approved" in owner.open("/audit").text


def test_a_second_press_is_harmless_and_a_pause_is_named(owner, rt, ask):
    post = ask(hours=1)
    rt.write(resume.pause)
    page = owner.open(f"/posts/{post}")
    form = page.form_of(page.button("Approve"))
    assert "Resume" in owner.press("Approve").role("status")
    assert owner.send(form, owner.fields_of(form)).role("status") == "The post does not wait for an approval."


@pytest.mark.parametrize("by", [AGENT, OWNER], ids=["the agent", "another key"])
def test_only_the_version_that_the_owner_saw_is_approved(owner, rt, world, clock, ask, by):
    post = ask("Harmless", hours=1)
    page = owner.open(f"/posts/{post}")
    assert "Waits for your approval." in page.text
    assert "Next:" not in page.text, "the end of the wait is not a try"
    change(rt, post, "Buy my coins", by)
    page = owner.press("Approve")
    assert "changed after you read it, so it is not approved" in page.role("alert")
    assert "Buy my coins" in page.text
    clock.forward(2 * 3600)
    drain(rt)
    assert sent(world) == []
    # A page of another site or a stale form has no version.
    bare = page.form_of(page.button("Approve"))
    fields = [(name, value) for name, value in owner.fields_of(bare) if name != "version"]
    assert "not approved" in owner.send(bare, fields).role("alert")
    owner.open(f"/posts/{post}")
    assert owner.press("Approve").role("status") == "Approved. The post is published now."
    drain(rt, clock)
    assert sent(world) == ["Buy my coins"]


def test_publish_now_approves_nothing(owner, rt, world, ask):
    post = ask(hours=1)
    assert "Publish now" not in owner.open(f"/posts/{post}").links()
    assert "when you press “Approve”" in owner.open(f"/posts/{post}/publish").text
    page = owner.press("Publish now")
    assert "when you press “Approve”" in page.role("status")
    drain(rt)
    assert (sent(world), status_of(rt, post)) == ([], "pending")
    owner.press("Approve")
    drain(rt)
    assert sent(world) == ["Draft"]


def test_the_overview_lists_posts_that_wait_and_other_pages_show_the_state(owner, rt, x, ask):
    ordinary = accept(rt, x, body="Ordinary", at=rt.now() + timedelta(hours=2))
    post = ask("An idea", hours=1)
    page = owner.open("/")
    assert "Approve or stop a post of the key “claude”" in page.text
    assert "Waits for approval" in page.text
    assert owner.follow("Review: An idea").path == f"/posts/{post}"
    for path in ("/posts", "/calendar", f"/profiles/{x}"):
        assert owner.open(path).text.lower().count("waits for approval") == 1, path
    for number in range(12):
        ask(f"Idea {number}", hours=3 + number)
    page = owner.open("/")
    assert page.text.count("Approve or stop a post of the key") == 10
    assert "3 more posts wait for your approval. Posts that are not published yet" in page.text
    owner.open(f"/posts/{post}")
    owner.press("Approve")
    assert owner.open("/posts").text.lower().count("waits for approval") == 12
    assert "Waits for approval" not in owner.open(f"/posts/{ordinary}").text


def test_a_key_that_needs_approval_is_created_in_the_dashboard(owner, rt):
    page = owner.press("Create key", {"Name": "agent", "Posts a day": "5", "Needs approval": True}, on="/keys")
    assert "at most 5 posts in 24 hours" in page.text
    assert "Each of its posts waits until you approve it." in page.text
    (key,) = api_keys.list_all(rt.db)
    assert (key.posts_per_day, key.approval) == (5, True)
    assert "5 posts a day, with approval" in owner.open("/keys").text
    assert "5 posts a day, with approval" in owner.open("/audit").text
