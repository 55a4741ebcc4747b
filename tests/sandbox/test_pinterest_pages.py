"""What a reader of Pinterest sees."""

from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.files import MP4, base64_text, picture
from tests.sandbox.pinterest_client import PinterestClient


def test_readers_see_boards_with_pins(world: World, web: TestClient, pinterest: PinterestClient) -> None:
    world.pinterest.processing_ticks = 0
    world.pinterest.probes_video = False
    texts = {"title": "Poster <no> 4", "description": "Two colours", "alt_text": 'A "red" roof'}
    made = pinterest.pin(**texts, link="https://www.studio.test/4").json()["id"]
    item = {"content_type": "image/jpeg", "data": base64_text(picture()), "title": "First"}
    pinterest.pin({"source_type": "multiple_image_base64", "items": [item, item]}, title="Series")
    film = pinterest.video(MP4)
    pinterest.pin({"source_type": "video_id", "media_id": film, "cover_image_key_frame_time": 0}, title="Moving")
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


def test_an_account_leads_to_the_boards(web: TestClient, pinterest: PinterestClient) -> None:
    pinterest.pin(title="Poster")
    assert "Poster" in web.get("/pinterest/demo/", follow_redirects=True).text
    assert web.get("/pinterest/stranger/").status_code == 404
