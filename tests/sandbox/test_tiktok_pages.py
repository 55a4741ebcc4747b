"""What a viewer of TikTok sees."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.files import MP4, picture
from tests.sandbox.tiktok_client import TikTokClient, publish_id

HERE = "https://media.example.net/p/"


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.tiktok.processing_ticks = 0
    world.tiktok.probes_video = False
    world.tiktok.verified_prefixes.append(HERE)
    world.tiktok.fetch = lambda url: picture(color="navy" if "two" in url else "teal")


def test_viewers_see_films_photos_captions_and_labels(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    tiktok.post(title="Evening <b>light</b>", privacy_level="PUBLIC_TO_EVERYONE", is_aigc=True, disable_comment=True)
    tiktok.photos(HERE + "one.jpg", HERE + "two.jpg", title="Two views", description="From the roof")
    page = web.get("/tiktok/feed").text
    film = world.tiktok.posts[0].media[0].id
    assert f'<video controls preload="metadata" src="media/{film}">' in page
    assert "Evening &lt;b&gt;light" in page
    assert "Creator labeled as AI-generated" in page
    assert "Comments off" in page
    assert "1 / 2" in page
    assert "From the roof" in page
    assert page.count("Only me") == 1
    assert page.index("Two views") < page.index("Evening"), "newest first"
    part = web.get(f"/tiktok/media/{film}", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content, part.headers["content-type"]) == (206, MP4[4:8], "video/mp4")
    assert "Two views" in web.get("/tiktok/@demo").text
    assert "Two views" not in web.get("/tiktok/@studio").text


def test_every_tiktok_has_a_page_of_its_own(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    tiktok.post(title="alone")
    post = world.tiktok.posts[0]
    assert "alone" in web.get(f"/tiktok/@demo/video/{post.id}").text
    assert web.get(f"/tiktok/@studio/video/{post.id}").status_code == 404
    assert web.get("/tiktok/@demo/video/1").status_code == 404


def test_a_draft_is_finished_from_the_inbox(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    begun = tiktok.draft()
    tiktok.put(begun, MP4)
    assert "Waiting in the inbox" in web.get("/tiktok/feed").text
    done = web.post("/tiktok/feed/drafts", data={"publish_id": publish_id(begun)})
    assert (done.status_code, done.headers["location"]) == (303, "../feed")
    assert len(world.tiktok.posts) == 1
    assert "Waiting in the inbox" not in web.get("/tiktok/feed").text
