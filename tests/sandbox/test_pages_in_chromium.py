"""The sandbox's pages in a real browser: on a phone and on a desk, with everything that posts can be full of."""

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import httpx2
import pytest
from playwright.sync_api import Browser, Page

from tests.sandbox.clients import BlueskyClient, PinterestClient, TikTokClient, XClient, publish_id
from tests.sandbox.files import MP4, base64_text, picture
from tests.stand_ins import World
from tests.support.chromium import chromium

pytestmark = pytest.mark.chromium

PHONE, DESK = 390, 1280
LONG = "W" * 150
"""A word without an end."""
BACK = "http://127.0.0.1:9/oauth/callback"
ASKED = {"redirect_uri": BACK, "response_type": "code", "state": "s", "code_challenge_method": "S256"}
CONSENTS = {
    "x": "/x/i/oauth2/authorize?"
    + urlencode({**ASKED, "client_id": "a" * 90, "scope": "tweet.write offline.access", "code_challenge": "a" * 43}),
    "tiktok": "/tiktok/v2/auth/authorize/?"
    + urlencode(
        {
            **ASKED,
            "client_key": "a" * 90,
            "scope": "user.info.basic,video.publish,video.upload,video.list",
            "code_challenge": "a" * 64,
        }
    ),
    "pinterest": "/pinterest/oauth/?" + urlencode({**ASKED, "client_id": "a" * 90, "scope": "boards:read,pins:write"}),
}
Open = Callable[[str], Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def world() -> World:
    """By the machine's clock, as the browser's."""
    world = World()
    world.x.processing_ticks = world.tiktok.processing_ticks = world.pinterest.processing_ticks = 0
    world.tiktok.probes_video = world.pinterest.probes_video = False
    world.shows_bluesky = True
    return world


@pytest.fixture
def paths(world: World, server: str) -> list[str]:
    """Every page of a sandbox on which much has happened."""
    image = {"content_type": "image/jpeg", "data": base64_text(picture()), "title": LONG[:100]}
    with httpx2.Client(base_url=server, trust_env=False) as web:
        x, tiktok, pinterest = XClient(web, world), TikTokClient(web, world), PinterestClient(web, world)
        x.post(LONG, media={"media_ids": [x.upload() for _ in range(3)]}, made_with_ai=True, paid_partnership=True)
        post = x.post(f"https://example.com/{LONG}", media={"media_ids": [x.video()]}).json()["data"]["id"]
        clip = tiktok.post(title=LONG)
        draft = tiktok.draft()
        tiktok.put(draft, MP4)
        for one in (clip, publish_id(draft)):
            tiktok.status(one)
        pinterest.pin(title=LONG[:100], description=LONG, link=f"https://{'l' * 60}.example.com/{LONG}")
        pin = pinterest.pin({"source_type": "multiple_image_base64", "items": [image, image]}).json()["id"]
        bluesky = BlueskyClient(web, world)
        blob = bluesky.upload(picture(), "image/jpeg")
        card = {"uri": f"https://{'l' * 60}.example.com/{LONG}", "title": LONG, "description": LONG, "thumb": blob}
        images = [{"image": blob, "alt": LONG, "aspectRatio": {"width": 4000, "height": 3000}}] * 3
        bluesky.post(LONG, embed={"$type": "app.bsky.embed.images", "images": images}, langs=["de", "en"])
        key = bluesky.key()
        bluesky.put(bluesky.record(embed={"$type": "app.bsky.embed.external", "external": card}), key)
    (shown,) = world.tiktok.posts
    return [
        "/", "/accounts", "/_control/", "/x/feed?scripted=credits_depleted", f"/x/demo/status/{post}",
        "/tiktok/feed?scripted=cut_after",
        "/tiktok/@demo", f"/tiktok/@demo/video/{shown.id}", "/pinterest/feed?scripted=trial", f"/pinterest/pin/{pin}/",
        "/x/demo/status/1", "/tiktok/@demo/video/1", "/pinterest/pin/1", "/bluesky/feed?scripted=limited",
        "/bluesky/profile/demo.test", f"/bluesky/profile/{bluesky.account.did}/post/{key}",
        "/bluesky/profile/demo.test/post/1", *CONSENTS.values(),
        *(consent.partition("?")[0] for consent in CONSENTS.values()),
    ]  # fmt: skip


@pytest.mark.parametrize("width", [PHONE, pytest.param(DESK, marks=pytest.mark.endurance)])
def test_every_page_fits_and_nothing_is_wrong_with_it(browser, server, paths, width):
    wide, wrong = [], []
    with browser.new_context(viewport={"width": width, "height": 844}) as context:
        for path in paths:
            page = context.new_page()
            page.on("pageerror", lambda error, path=path: wrong.append((path, str(error))))  # type: ignore[misc]
            page.on(
                "console",
                # That the page itself is one of an error is meant.
                lambda said, path=path: said.location["url"] == server + path or wrong.append((path, said.text)),  # type: ignore[misc]
            )
            page.goto(server + path)
            found = page.evaluate("document.documentElement.scrollWidth")
            cut = page.evaluate(CUT_OFF)
            if found > width or cut:
                wide.append((path, found, cut))
            page.close()
    assert wrong == []
    assert wide == []


CUT_OFF = """
    [...document.querySelectorAll("h1, h2, h3, p, label, select, button, li")]
        .filter(one => one.getBoundingClientRect().right > innerWidth || one.scrollWidth > one.clientWidth + 1)
        .filter(one => getComputedStyle(one).display != "inline" && !one.closest(".carousel"))
        .map(one => one.outerHTML.slice(0, 80))
"""
"""What reaches beyond the page, or beyond the box that hides it."""


@pytest.mark.parametrize("network", CONSENTS)
def test_a_consent_given_in_a_browser_leads_back_to_the_app(browser, server, network):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server + CONSENTS[network])
        with page.expect_request(f"{BACK}?*") as back:
            page.get_by_role("button", name="access").or_(page.get_by_role("button", name="Authorize")).click()
        assert "code=" in back.value.url and "state=s" in back.value.url
