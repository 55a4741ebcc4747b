"""A scheduled post is changed in the form that it was made in."""

from datetime import datetime, timedelta
from pathlib import Path

import orjson
import pytest

from socialpub.db.queries import api_json
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import accept, status_of
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.sandbox_http import artifact, connect_pinterest, connect_tiktok, connect_x


@pytest.fixture
def at(rt: Runtime) -> datetime:
    return (rt.now() + timedelta(days=1)).replace(minute=30, second=0, microsecond=0)


def shown(rt: Runtime, post_id: str) -> dict[str, object]:
    found = api_json.post(rt.reader, post_id)
    assert found is not None
    post: dict[str, object] = orjson.loads(found)
    return post


def test_everything_of_it_stands_there_and_is_saved(
    owner: DashboardBrowser, rt: Runtime, world: World, at: datetime, tmp_path: Path
) -> None:
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    pictures = [artifact(rt, media.jpeg(tmp_path / f"{name}.jpg"), "image/jpeg") for name in ("one", "two")]
    options = {"x": {"replySettings": "following"}, "pinterest": {"boardId": "1", "title": "Title"}}
    items = (DraftMedia(pictures[0], "The first"), DraftMedia(pictures[1]))
    post_id = accept(rt, x, pins, body="Before", at=at, media=items, options=options)

    page = owner.open(f"/posts/{post_id}/edit")
    assert page.heading == "Edit post"
    assert page.field("Text").raw_text.strip() == "Before"
    assert page.field("Alt text").attributes["value"] == "The first"
    assert page.field("Time").attributes["value"] == at.strftime("%Y-%m-%dT%H:%M")
    assert page.field("Title").attributes["value"] == "Title"
    assert "disabled" in page.field("x profile").attributes
    before = shown(rt, post_id)
    page = owner.press("Save")
    assert page.role("status") == "Nothing was changed."
    assert shown(rt, post_id) == before

    owner.open(f"/posts/{post_id}/edit")
    owner.press("Remove one.jpg")
    later = (at + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    owner.press("Save", {"Text": "After", "Time": later, "Title": "Another", "Who may reply": "everyone"})
    post = shown(rt, post_id)
    assert (post["body"], str(post["scheduledAt"])[:16]) == ("After", later)
    assert [item["artifactId"] for item in post["media"]] == [pictures[1]]  # type: ignore[attr-defined]
    given = [one["providerOptions"] for one in post["deliveries"]]  # type: ignore[attr-defined]
    assert given == [{"replySettings": "everyone"}, {"boardId": "1", "title": "Another"}]


def test_an_option_without_a_stored_default_names_the_default_of_the_network(
    owner: DashboardBrowser, rt: Runtime, world: World
) -> None:
    x = connect_x(rt, world)
    assert owner.open("/compose").field("Who may reply").all("option")[0].text == "Default: Everyone"
    rt.write(lambda _, tx: tx.execute("UPDATE profile SET options = ? WHERE id = ?", ('{"madeWithAi": true}', x)))
    page = owner.open("/compose")
    assert page.field("Made with AI").all("option")[0].text == "As stored: yes"
    assert page.field("Paid partnership").all("option")[0].text == "Default: no"


def test_it_can_be_sent_at_once(owner: DashboardBrowser, rt: Runtime, world: World, at: datetime) -> None:
    post_id = accept(rt, connect_x(rt, world), at=at)
    owner.open(f"/posts/{post_id}/edit")
    owner.press("Save", {"#when": "now"})
    assert status_of(rt, post_id) == "pending"


def test_what_is_wrong_is_told_and_the_post_stays_as_it_was(
    owner: DashboardBrowser, rt: Runtime, world: World, at: datetime
) -> None:
    post_id = accept(rt, connect_x(rt, world), body="Before", at=at)
    owner.open(f"/posts/{post_id}/edit")
    page = owner.press("Save", {"Text": "", "Time": "2020-01-01T10:00"})
    assert page.status == 400
    assert "Must be in the future" in page.role("alert")
    assert shown(rt, post_id)["body"] == "Before"


def test_tiktok_s_choices_are_explicit_here_as_well(
    owner: DashboardBrowser, rt: Runtime, world: World, at: datetime, tmp_path: Path
) -> None:
    video = artifact(rt, media.video_mp4(tmp_path / "a.mp4", width=640, height=360, rate=30), "video/mp4")
    options = {"tiktok": {"privacyLevel": "SELF_ONLY", "disableComment": False}}
    rt.settings.providers.tiktok.__dict__["audited"] = True
    post_id = accept(rt, connect_tiktok(rt, world), at=at, media=(DraftMedia(video),), options=options)
    page = owner.open(f"/posts/{post_id}/edit")
    assert [one.text for one in page.field("Who can see it").all("option") if "selected" in one.attributes] == [
        "Only me"
    ]
    assert "checked" in page.field("Allow comments").attributes
    page = owner.press("Save", {"Who can see it": ""})
    assert page.status == 400
    owner.press("Save", {"Who can see it": "PUBLIC_TO_EVERYONE", "Allow comments": False})
    (given,) = [one["providerOptions"] for one in shown(rt, post_id)["deliveries"]]  # type: ignore[attr-defined]
    assert (given["privacyLevel"], given["disableComment"]) == ("PUBLIC_TO_EVERYONE", True)


def test_a_post_that_is_out_cannot_be_changed(owner: DashboardBrowser, rt: Runtime, world: World) -> None:
    post_id = accept(rt, connect_x(rt, world))
    page = owner.open(f"/posts/{post_id}/edit")
    assert page.status == 409
    assert "Only posts scheduled for the future can be edited." in page.role("alert")
    assert owner.open("/posts/019a4c8e-7c1b-7a55-9f0e-3b1f0c2d4e5f/edit").status == 404
