"""What a reader sees."""

from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.files import MP4, PNG
from tests.sandbox.x_client import XClient


def test_the_feed_shows_texts_pictures_films_and_labels(world: World, web: TestClient, x: XClient) -> None:
    world.x.processing_ticks = 0
    photo, film = x.upload(), x.video()
    alt = {"id": photo, "metadata": {"alt_text": {"text": 'A "red" bicycle'}}}
    x.call("POST", "/2/media/metadata", json=alt)
    x.post("First line\nsee example.com", media={"media_ids": [photo]}, made_with_ai=True, paid_partnership=True)
    x.post("A film", media={"media_ids": [film]}, reply_settings="verified")
    page = web.get("/x/feed").text
    assert '<a href="http://example.com" rel="nofollow noreferrer">example.com</a>' in page
    assert "First line\nsee" in page
    assert 'alt="A &#34;red&#34; bicycle"' in page
    assert "Made with AI" in page
    assert "Paid partnership" in page
    assert "Only verified accounts can reply" in page
    assert f'<video controls preload="metadata" src="media/{film}">' in page
    assert page.index("A film") < page.index("First line"), "newest first"
    shown = web.get(f"/x/media/{photo}")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    part = web.get(f"/x/media/{film}", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, MP4[4:8])


def test_markup_in_a_post_stays_text(web: TestClient, x: XClient) -> None:
    x.post('<script>alert(1)</script> http://example.com/"onclick=')
    page = web.get("/x/feed").text
    assert "<script" not in page
    assert '"onclick' not in page


def test_every_post_has_a_page_of_its_own(web: TestClient, x: XClient) -> None:
    made = x.post("alone").json()["data"]["id"]
    assert "alone" in web.get(f"/x/demo/status/{made}").text
    assert "alone" in web.get(f"/x/i/status/{made}").text, "for whoever does not know the author"
    assert web.get(f"/x/studio/status/{made}").status_code == 404


def test_an_account_has_a_page_with_its_posts(world: World, web: TestClient, x: XClient) -> None:
    x.post("alone")
    world.x.add_account("nobody")
    assert "alone" in web.get("/x/Demo").text
    assert "Nothing was posted yet" in web.get("/x/nobody").text
    assert web.get("/x/stranger").status_code == 404
