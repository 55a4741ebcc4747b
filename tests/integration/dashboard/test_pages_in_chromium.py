"""Pages with long texts fit a phone, are accessible, and fold long lists."""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from socialpub.core import manual
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.samples import media
from tests.support import axe
from tests.support.appliance import accept
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import artifact, connect_pinterest, connect_tiktok, connect_x

pytestmark = [pytest.mark.chromium, pytest.mark.endurance]

LONG = "A view of the harbour with everything that can be said of it in one sentence " * 3
SIZES = {"phone": (390, 844), "desk": (1280, 900)}


@pytest.fixture
def posts(page: Page, rt: Runtime, world: World, clock: HandClock, tmp_path: Path) -> dict[str, str]:
    x, pins = connect_x(rt, world), connect_pinterest(rt, world)
    connect_tiktok(rt, world)
    board = world.pinterest.boards_of("demo")[0]
    photo = (DraftMedia(artifact(rt, media.jpeg(tmp_path / "sea.jpg"), "image/jpeg")),)
    published = accept(rt, x, pins, body=LONG[:200], media=photo, options={"pinterest": {"boardId": board.id}})
    drain(rt, clock)
    world.x.next("create_post").fails_with(403, {"title": "Forbidden", "detail": LONG, "status": 403})
    refused = accept(rt, x, body=f"Refused {LONG}"[:200])
    drain(rt, clock)
    for number in range(6):
        accept(rt, x, pins, body=f"{LONG[:150]} {number}", media=photo, at=rt.now() + timedelta(days=number + 1))
    return {"published": published, "refused": refused}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_fits_and_is_accessible(page, posts, size, scheme):
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    paths = ("/", "/posts", "/log", "/system", "/audit", "/nowhere", *(f"/posts/{one}" for one in posts.values()))
    for path in (*paths, f"/posts/{posts['published']}?preview=on"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert axe.violations(page) == [], path


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_topic_of_the_manual_fits_and_is_accessible(page, size, scheme):
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for path in ("/manual", *(f"/manual/{topic}" for topic in manual.list_topics())):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert axe.violations(page) == [], path


def test_a_long_text_takes_one_line(page, posts):
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/", "/posts", "/log"):
        page.goto(path)
        shown = page.locator("main .one-line")
        assert shown.count() > 0
        for one in shown.all():
            if one.is_visible():
                box = one.bounding_box()
                assert box is not None
                assert box["height"] < 35, path


def test_a_series_is_opened_and_stays_open_while_the_page_refreshes_itself(page, posts):
    page.goto("/")
    folded = page.locator("details", has_text="and 5 more")
    expect(folded.get_by_role("link")).to_have_count(0)
    folded.locator("summary").click()
    expect(folded.get_by_role("link")).to_have_count(5)
    page.evaluate("htmx.ajax('GET', location.pathname, {target: '#live', select: '#live', swap: 'outerMorph'})")
    page.wait_for_load_state("networkidle")
    expect(folded.get_by_role("link")).to_have_count(5)
