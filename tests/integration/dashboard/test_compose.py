"""A post is written in the dashboard: checked, kept while it is put right, and accepted once."""

from pathlib import Path

from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support.appliance import status_of
from tests.support.dashboard_browser import DashboardBrowser
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import connect_pinterest, connect_x


def posts(rt: Runtime) -> list[str]:
    return [row[0] for row in rt.reader.all("SELECT id FROM post ORDER BY id")]


def test_without_a_profile_it_says_where_to_connect_one(owner: DashboardBrowser) -> None:
    page = owner.open("/compose")
    assert "No profile is connected yet" in page.text
    assert page.links()["Connect a profile"].endswith("/profiles")


def test_a_post_with_pictures_is_checked_and_goes_out_as_it_was_written(
    owner: DashboardBrowser, rt: Runtime, world: World, clock: HandClock, tmp_path: Path
) -> None:
    connect_x(rt, world)
    owner.open("/compose")
    files = [media.jpeg(tmp_path / "first.jpg"), media.jpeg(tmp_path / "second.jpg", width=64)]
    page = owner.press("Check", {"Text": "Two\npictures", "Media": files})
    assert (page.status, page.role("status")) == (200, "x profile: no problems found.")
    assert page.field("Text").raw_text == "\nTwo\npictures"
    page = owner.press("Move down first.jpg", {"Alt text": "The first one"})
    assert [one.text.partition(",")[0] for one in page.root.all("small") if one.attributes.get("class") == "file"][
        :2
    ] == [
        "second.jpg",
        "first.jpg",
    ]
    owner.press("Publish")
    (post_id,) = posts(rt)
    drain(rt, clock)
    assert status_of(rt, post_id) == "settled"
    (shown,) = world.x.posts
    assert shown.text == "Two\npictures"
    assert [one.alt_text for one in shown.media] == [None, "The first one"]


def test_what_is_wrong_is_told_at_its_field_and_nothing_that_was_typed_is_lost(
    owner: DashboardBrowser, rt: Runtime, world: World, tmp_path: Path
) -> None:
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    owner.open("/compose")
    no_picture = tmp_path / "notes.png"
    no_picture.write_bytes(b"these are words")
    page = owner.press(
        "Schedule" if owner.page.has_button("Schedule") else "Publish",
        {
            "Text": "Kept",
            "#profiles": [x, pins],
            "#when": "at",
            "Time": "2020-01-01T10:00",
            "Title": "A title",
            "Media": [media.jpeg(tmp_path / "good.jpg"), no_picture],
        },
    )
    assert page.status == 400
    assert "Time : Must be in the future" in page.role("alert")
    assert "notes.png" in page.role("alert")
    assert page.links()["Time"].endswith("#field-time")
    assert page.field("Time").attributes["aria-invalid"] == "true"
    assert page.field("Text").raw_text.strip() == "Kept"
    assert page.field("Title").attributes["value"] == "A title"
    assert [
        one.attributes["value"]
        for one in page.root.all("input")
        if one.attributes.get("name") == "profiles" and "checked" in one.attributes
    ] == [x, pins]
    assert "good.jpg" in page.text
    assert posts(rt) == []
