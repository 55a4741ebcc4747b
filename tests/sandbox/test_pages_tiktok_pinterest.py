"""What a viewer of TikTok and a reader of Pinterest see."""

import re

from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.pinterest_caller import FILM as PIN_FILM
from tests.sandbox.pinterest_caller import Pinner, coded, picture
from tests.sandbox.tiktok_caller import FILM, TikToker, publish_id

HERE = "https://media.example.net/p/"


def tiktok(world: World, web: TestClient) -> TikToker:
    world.tiktok.processing_ticks = 0
    world.tiktok.probes_video = False
    world.tiktok.verified_prefixes.append(HERE)
    world.tiktok.fetch = lambda url: picture(color="navy" if "two" in url else "teal")
    return TikToker(web, world)


def test_viewers_see_films_photos_captions_and_labels(world: World, web: TestClient) -> None:
    demo = tiktok(world, web)
    demo.post(title="Evening <b>light</b>", privacy_level="PUBLIC_TO_EVERYONE", is_aigc=True, disable_comment=True)
    demo.photos(HERE + "one.jpg", HERE + "two.jpg", title="Two views", description="From the roof")
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
    assert (part.status_code, part.content, part.headers["content-type"]) == (206, FILM[4:8], "video/mp4")
    assert "Two views" in web.get("/tiktok/@demo").text
    assert "Two views" not in web.get("/tiktok/@studio").text


def test_every_tiktok_has_a_page_of_its_own(world: World, web: TestClient) -> None:
    tiktok(world, web).post(title="alone")
    post = world.tiktok.posts[0]
    assert "alone" in web.get(f"/tiktok/@demo/video/{post.id}").text
    assert web.get(f"/tiktok/@studio/video/{post.id}").status_code == 404
    assert web.get("/tiktok/@demo/video/1").status_code == 404


def test_a_draft_is_finished_from_the_inbox(world: World, web: TestClient) -> None:
    demo = tiktok(world, web)
    begun = demo.draft()
    demo.put(begun, FILM)
    assert "Waiting in the inbox" in web.get("/tiktok/feed").text
    done = web.post("/tiktok/feed/drafts", data={"publish_id": publish_id(begun)})
    assert (done.status_code, done.headers["location"]) == (303, "../feed")
    assert len(world.tiktok.posts) == 1
    assert "Waiting in the inbox" not in web.get("/tiktok/feed").text


def test_readers_see_boards_with_pins(world: World, web: TestClient) -> None:
    world.pinterest.processing_ticks = 0
    world.pinterest.probes_video = False
    demo = Pinner(web, world)
    texts = {"title": "Poster <no> 4", "description": "Two colours", "alt_text": 'A "red" roof'}
    made = demo.pin(**texts, link="https://www.studio.test/4").json()["id"]
    item = {"content_type": "image/jpeg", "data": coded(picture()), "title": "First"}
    demo.pin({"source_type": "multiple_image_base64", "items": [item, item]}, title="Series")
    film = demo.film(PIN_FILM)
    demo.pin({"source_type": "video_id", "media_id": film, "cover_image_key_frame_time": 0}, title="Moving")
    page = web.get("/pinterest/feed").text
    assert "Summer prints" in page
    assert "3 pins" in page
    assert "Poster &lt;no&gt; 4" in page
    assert 'alt="A &#34;red&#34; roof"' in page
    assert '<a href="https://www.studio.test/4" rel="nofollow noreferrer">studio.test</a>' in page
    assert "1 / 2 · First" in page
    assert f'src="media/{film}"' in page
    shown = web.get(f"/pinterest/media/{world.pinterest.pins[0].pictures[0].id}")
    assert (shown.content, shown.headers["content-type"]) == (picture(), "image/jpeg")
    alone = web.get(f"/pinterest/pin/{made}/")
    assert "on Summer prints" in alone.text
    demo.call("DELETE", f"/pins/{made}")
    assert web.get(f"/pinterest/pin/{made}/").status_code == 404
    assert "Poster" not in web.get("/pinterest/feed").text


def test_media_that_made_room_for_others_are_mentioned_as_gone(world: World, web: TestClient) -> None:
    tiktok(world, web).post()
    world.tiktok.tasks.cache.take(world.tiktok.posts[0].media[0].id)
    assert "no longer kept" in web.get("/tiktok/feed").text
    Pinner(web, world).pin()
    world.pinterest.cache.take(world.pinterest.pins[0].pictures[0].id)
    assert "no longer kept" in web.get("/pinterest/feed").text


def test_their_pages_need_no_script_and_no_foreign_host(world: World, web: TestClient) -> None:
    tiktok(world, web).post()
    Pinner(web, world).pin()
    for path in ("/", "/tiktok/feed", "/pinterest/feed", "/tiktok/@demo"):
        page = web.get(path)
        assert page.status_code == 200
        assert "script-src" not in page.headers["content-security-policy"]
        assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", page.text)
    front = web.get("/").text
    assert "1 post is up" in front
    assert "1 pin is up" in front


def test_faults_can_be_arranged_from_their_feeds(world: World, web: TestClient) -> None:
    answer = web.post("/pinterest/feed/faults", data={"fault": "2787"})
    assert answer.status_code == 303
    assert "told 400 code 2787" in web.get("/pinterest/feed?" + answer.headers["location"].partition("?")[2]).text
    assert Pinner(web, world).pin().json()["code"] == 2787
    assert len(world.pinterest.pins) == 1
    web.post("/tiktok/feed/faults", data={"fault": "capped"})
    assert TikToker(web, world).creator().json()["error"]["code"] == "spam_risk_too_many_posts"
    assert web.post("/tiktok/feed/faults", data={"fault": "unknown"}).headers["location"] == "../feed"
