"""An edit saves only changed fields. After a concurrent change, it saves nothing and shows both texts."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.dashboard.posts import submissions
from tests.samples import media
from tests.support.appliance import OWNER, accept, status_of
from tests.support.hand_clock import HandClock
from tests.support.rows import read_post
from tests.support.sandbox_http import artifact, connect_pinterest, connect_tiktok, connect_x
from tests.support.tab import Tab

CHANGED = "The post is changed."
CONFLICT = (
    "The post was changed after this form was opened. Nothing is saved. The form still contains your version. "
    "To replace the post with it, press “Save” again."
)


@pytest.fixture
def at(rt: Runtime) -> datetime:
    return (rt.now() + timedelta(days=1)).replace(minute=30, second=17, microsecond=250_000)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[Draft]:
    """The given fields of each edit."""
    given: list[Draft] = []
    edit = posts.edit

    def note(*args: Any) -> None:
        given.append(args[3])
        edit(*args)

    monkeypatch.setattr(posts, "edit", note)
    return given


@pytest.fixture
def post_id(owner: Tab, rt: Runtime, x: str, at: datetime) -> str:
    post_id = accept(rt, x, body="Helo", at=at)
    owner.open(f"/posts/{post_id}/edit")
    return post_id


def options_of(rt: Runtime, post_id: str) -> list[dict[str, Any]]:
    return [one["providerOptions"] for one in read_post(rt, post_id)["deliveries"]]


def move_clock(rt: Runtime) -> None:
    """Let a millisecond pass: `updatedAt` is the version of a post."""
    assert isinstance(rt.clock, HandClock)
    rt.clock.forward(0.001)


def change(rt: Runtime, post_id: str, **given: Any) -> None:
    """Change the post elsewhere."""
    move_clock(rt)
    rt.write(posts.edit, post_id, Draft.change(**given), OWNER)


def test_every_field_is_shown_and_saved(owner, rt, world, at, tmp_path):
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    pictures = [artifact(rt, media.jpeg(tmp_path / f"{name}.jpg"), "image/jpeg") for name in ("one", "two")]
    options = {"x": {"replySettings": "following"}, "pinterest": {"boardId": "1", "title": "Title"}}
    items = (DraftMedia(pictures[0], "The first"), DraftMedia(pictures[1]))
    post_id = accept(rt, x, pins, body="Before", at=at, media=items, options=options)

    page = owner.open(f"/posts/{post_id}/edit")
    assert page.heading == "Edit post"
    assert page.field("Text").raw_text.strip() == "Before"
    assert page.field("Alt text").attributes["value"] == "The first"
    assert page.field("Time").attributes["value"] == at.strftime("%Y-%m-%dT%H:%M:17.250")
    assert page.field("Title").attributes["value"] == "Title"
    assert "disabled" in page.field("x profile").attributes
    before = read_post(rt, post_id)
    page = owner.press("Save")
    assert page.role("status") == "Nothing was changed."
    assert read_post(rt, post_id) == before

    owner.press("Remove one.jpg", on=f"/posts/{post_id}/edit")
    later = (at + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    owner.press("Save", {"Text": "After", "Time": later, "Title": "Another", "Who may reply": "everyone"})
    post = read_post(rt, post_id)
    assert (post["body"], str(post["scheduledAt"])[:16]) == ("After", later)
    assert [item["artifactId"] for item in post["media"]] == [pictures[1]]
    given = [one["providerOptions"] for one in post["deliveries"]]
    assert given == [{"replySettings": "everyone"}, {"boardId": "1", "title": "Another"}]


def test_a_wrong_edit_is_refused_and_the_post_stays(owner, rt, world, at):
    post_id = accept(rt, connect_x(rt, world), body="Before", at=at)
    page = owner.press("Save", {"Text": "", "Time": "2020-01-01T10:00"}, on=f"/posts/{post_id}/edit")
    assert page.status == 400
    assert "Must be in the future" in page.role("alert")
    assert read_post(rt, post_id)["body"] == "Before"


def test_an_edit_needs_tiktok_s_choices(owner, rt, world, at, tmp_path):
    video = artifact(rt, media.video_mp4(tmp_path / "a.mp4", width=640, height=360, rate=30), "video/mp4")
    options = {"tiktok": {"privacyLevel": "SELF_ONLY", "disableComment": False}}
    rt.settings.providers.tiktok.__dict__["audited"] = True
    post_id = accept(rt, connect_tiktok(rt, world), at=at, media=(DraftMedia(video),), options=options)
    page = owner.open(f"/posts/{post_id}/edit")
    assert page.chosen("Who can see it") == ["Only me"]
    assert "checked" in page.field("Allow comments").attributes
    page = owner.press("Save", {"Who can see it": ""})
    assert page.status == 400
    owner.press("Save", {"Who can see it": "PUBLIC_TO_EVERYONE", "Allow comments": False})
    (given,) = [one["providerOptions"] for one in read_post(rt, post_id)["deliveries"]]
    assert (given["privacyLevel"], given["disableComment"]) == ("PUBLIC_TO_EVERYONE", True)


def test_a_corrected_typo_touches_neither_the_time_nor_the_options_nor_the_media(
    owner, rt, world, x, at, tmp_path, changes
):
    other, pins = connect_x(rt, world, "other"), connect_pinterest(rt, world)
    photo = artifact(rt, media.jpeg(tmp_path / "one.jpg"), "image/jpeg")
    options = {"x": {"reply_settings": "following"}, "pinterest": {"boardId": "1", "aiDisclosures": ["AI_MODIFIED"]}}
    items = (DraftMedia(photo, " A view\nwith two lines"),)
    post_id = accept(rt, x, other, pins, body="Helo\r\n\r\nworld ", at=at, media=items, options=options)
    own = orjson.dumps({"madeWithAi": True}).decode()
    rt.write(lambda _, tx: tx.execute_sql("UPDATE delivery SET options = ? WHERE profile_id = ?", (own, other)))
    before = read_post(rt, post_id)

    page = owner.open(f"/posts/{post_id}/edit")
    assert page.field("Time").attributes["value"] == at.isoformat("T", "milliseconds")[:23]
    page = owner.press("Check")
    page = owner.press("Save", {"Text": "Hello\n\nworld"})
    assert page.role("status") == CHANGED
    assert [one.given for one in changes] == [frozenset({"body"})]
    after = read_post(rt, post_id)
    assert after["body"] == "Hello\n\nworld"
    assert {**after, "body": None, "updatedAt": None} == {**before, "body": None, "updatedAt": None}


def test_an_option_changes_alone_and_an_emptied_one_is_the_profile_s_again(owner, rt, x, at, tmp_path, pins):
    photo = DraftMedia(artifact(rt, media.jpeg(tmp_path / "one.jpg"), "image/jpeg"))
    stored = orjson.dumps({"title": "Of the profile"}).decode()
    rt.write(lambda _, tx: tx.execute_sql("UPDATE profile SET options = ? WHERE id = ?", (stored, pins)))
    options = {"x": {"reply_settings": "following", "madeWithAi": True}, "pinterest": {"boardId": "1", "title": "Own"}}
    post_id = accept(rt, x, pins, at=at, media=(photo,), options=options)
    owner.press("Save", {"Title": "", "Made with AI": "false"}, on=f"/posts/{post_id}/edit")
    assert options_of(rt, post_id) == [
        {"replySettings": "following", "madeWithAi": False},
        {"boardId": "1", "title": "Of the profile"},
    ]


def test_after_a_concurrent_change_nothing_is_saved_and_the_page_shows_both_texts(owner, rt, x, at):
    post_id = accept(rt, x, body="Helo", at=at)
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    owner.open(f"/posts/{post_id}/edit")
    later = at + timedelta(days=2)
    change(rt, post_id, body="Of the API", scheduled_at=later)
    page = owner.press("Save", {"Text": "Hello"})
    assert (page.status, page.role("alert")) == (409, CONFLICT)
    now = page.root.all("section")[0].text
    assert now.startswith(f"The post now Of the API Scheduled for {later.day} Oct 2026, {later.hour + 2}:30 CEST")
    assert page.field("Text").raw_text.strip() == "Hello"
    assert page.field("Time").attributes["value"].startswith(f"{at.date()}T")
    assert page.links()["Open the post"].endswith(f"/posts/{post_id}")
    post = read_post(rt, post_id)
    assert (post["body"], post["scheduledAt"][:10]) == ("Of the API", str(later.date()))

    page = owner.press("Save", {"Time": f"{later.date()}T10:00"})
    assert page.role("status") == CHANGED
    post = read_post(rt, post_id)
    assert (post["body"], post["scheduledAt"][:10]) == ("Hello", str(later.date()))


def test_the_version_is_compared_in_the_write_that_saves(owner, rt, post_id, monkeypatch):
    edit = submissions.edit_version

    def late(rt: Runtime, tx: Any, *args: Any) -> None:
        posts.edit(rt, tx, post_id, Draft.change(body="First"), OWNER)
        edit(rt, tx, *args)

    monkeypatch.setattr(submissions, "edit_version", late)
    move_clock(rt)
    page = owner.press("Save", {"Text": "Hello"})
    assert page.status == 409
    assert read_post(rt, post_id)["body"] == "Helo", "the write is undone as a whole"


def test_an_edit_that_is_submitted_twice_asks_no_question(owner, rt, post_id):
    page = owner.page
    move_clock(rt)
    owner.press("Save", {"Text": "Hello"})
    owner.page = page
    page = owner.press("Save", {"Text": "Hello"})
    assert (page.path, page.role("status")) == (f"/posts/{post_id}", CHANGED)


@pytest.mark.parametrize("how", ["started", "canceled", "due"])
def test_the_content_of_an_edit_that_is_too_late_can_become_a_new_post(owner, rt, post_id, at, clock, tmp_path, how):
    match how:
        case "started":
            change(rt, post_id, scheduled_at=None)
        case "canceled":
            rt.write(posts.cancel, post_id, OWNER)
        case "due":
            clock.forward((at - clock.now()).total_seconds() + 1)
    page = owner.press("Save", {"Text": "Hello", "Media": [media.jpeg(tmp_path / "a.jpg")]})
    assert page.status == 409
    reason = {"started": "it is being published", "canceled": "it was canceled", "due": "its time has come"}[how]
    assert page.role("alert").startswith(f"The post can no longer be edited: {reason}. Nothing is saved.")
    assert page.links()["Open the post"].endswith(f"/posts/{post_id}")
    assert page.field("Text").raw_text.strip() == "Hello"
    assert not page.has_button("Save")

    page = owner.press("Compose a copy")
    assert page.heading == "Compose"
    assert page.role("status") == "This is a new post with the content of your form. Nothing is published yet."
    assert page.field("Text").raw_text.strip() == "Hello"
    assert "checked" in page.field("x profile").attributes
    page = owner.press("Schedule" if how != "due" else "Publish")
    assert page.path not in ("/compose", f"/posts/{post_id}")
    copy = read_post(rt, page.path.removeprefix("/posts/"))
    assert (copy["body"], len(copy["media"])) == ("Hello", 1)
    assert read_post(rt, post_id)["body"] == "Helo"


def test_now_clears_the_time(owner, rt, x, at):
    post_id = accept(rt, x, at=at)
    page = owner.press("Save", {"#when": "now", "Time": "2026-12-24T09:00"}, on=f"/posts/{post_id}/edit")
    assert (page.status, status_of(rt, post_id)) == (400, "scheduled"), "this time and “Now” were chosen"
    owner.press("Save", {"#when": "now"}, on=f"/posts/{post_id}/edit")
    assert status_of(rt, post_id) == "pending"
