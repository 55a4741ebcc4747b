"""What readers of the networks see, and what holds for all pages."""

import re
from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.clients import (
    BLUESKY_CREATED_AT,
    BlueskyClient,
    PinterestClient,
    TikTokClient,
    XClient,
    publish_id,
)
from tests.sandbox.files import MP4, PNG, base64_text, picture

HERE = "https://media.example.net/p/"


@pytest.fixture(autouse=True)
def settings(world: World) -> None:
    world.x.processing_ticks = world.tiktok.processing_ticks = world.pinterest.processing_ticks = 0
    world.tiktok.probes_video = world.pinterest.probes_video = False
    world.tiktok.verified_prefixes.append(HERE)
    world.tiktok.fetch = lambda url: picture(color="navy" if "two" in url else "teal")


# --- all pages --------------------------------------------------------------------------------------------------------


def test_pages_need_no_script_and_no_foreign_host(
    world: World, web: TestClient, x: XClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    x.post("plain")
    tiktok.post()
    pinterest.pin()
    for path in ("/", "/accounts", "/x/feed", "/tiktok/feed", "/pinterest/feed", "/tiktok/@demo"):
        page = web.get(path)
        assert page.status_code == 200
        assert "script-src" not in page.headers["content-security-policy"]
        assert not re.findall(r"""(?:src|href|action)=["'](?:https?:)?//""", page.text)
    assert web.get("/sandbox.css").headers["content-type"].startswith("text/css")


def test_an_account_is_changed_on_a_page_of_the_sandboxs_own(world: World, web: TestClient, x: XClient) -> None:
    assert 'href="accounts"' in web.get("/").text
    sent = {"network": "x", "username": "demo", "handle": "renamed", "name": "Re & named", "picture": "Zebra"}
    answer = web.post("/accounts", data={**sent, "subscription_type": "Premium"})
    assert answer.status_code == 303
    page = web.get(f"/{answer.headers['location']}")
    assert "The account @renamed is changed." in page.text
    assert "Re &amp; named" in page.text
    fields = {"user.fields": "subscription_type,profile_image_url"}
    user = x.call("GET", "/2/users/me", params=fields).json()["data"]
    assert (user["username"], user["name"], user["subscription_type"]) == ("renamed", "Re & named", "Premium")
    assert user["profile_image_url"].endswith("/x/avatars/Zebra_normal.png")
    private = {"network": "tiktok", "username": "demo", "name": "Night", "private": "yes"}
    web.post("/accounts", data=private)
    demo = world.tiktok.existing_account("demo")
    assert (demo.display_name, demo.private) == ("Night", True)


def test_a_change_that_cannot_be_made_changes_nothing(world: World, web: TestClient) -> None:
    for change in ({"handle": "studio"}, {"handle": "two words"}, {"subscription_type": "Gold"}, {"id": "7"}):
        page = web.post("/accounts", data={"network": "x", "username": "demo", "name": "Other", **change})
        assert page.status_code == 400
        assert 'role="alert"' in page.text
    assert web.post("/accounts", data={"network": "myspace", "username": "demo"}).status_code == 400
    assert world.x.existing_account("demo").name == "Demo"


def test_a_form_on_each_feed_scripts_the_next_fault(
    world: World, web: TestClient, x: XClient, tiktok: TikTokClient, pinterest: PinterestClient
) -> None:
    for network, fault, noted in (
        ("x", "503_after", "is done, then gets a 503"),
        ("tiktok", "spam_risk_too_many_posts", "daily cap"),
        ("pinterest", "spam", "blocked as spam"),
    ):
        answer = web.post(f"/{network}/feed/faults", data={"fault": fault})
        assert (answer.status_code, answer.headers["location"]) == (303, f"../feed?scripted={fault}")
        assert noted in web.get(f"/{network}/feed?scripted={fault}").text
        assert web.post(f"/{network}/feed/faults", data={"fault": "unknown"}).headers["location"] == "../feed"
    assert x.post("a").status_code == 503
    assert tiktok.begin().json()["error"]["code"] == "spam_risk_too_many_posts"
    assert pinterest.pin().json()["code"] == 8
    assert len(world.x.posts) == 1


# --- X ----------------------------------------------------------------------------------------------------------------


def test_the_feed_shows_texts_images_videos_and_labels(world: World, web: TestClient, x: XClient) -> None:
    photo, film = x.upload(), x.video()
    alt = {"id": photo, "metadata": {"alt_text": {"text": 'A "red" bicycle'}}}
    x.call("POST", "/2/media/metadata", json=alt)
    x.post("First line\nsee http://example.com", media={"media_ids": [photo]}, made_with_ai=True, paid_partnership=True)
    x.post("A video", media={"media_ids": [film]}, reply_settings="verified")
    page = web.get("/x/feed").text
    assert '<a href="http://example.com" rel="nofollow noreferrer">http://example.com</a>' in page
    assert "First line\nsee" in page
    assert 'alt="A &#34;red&#34; bicycle"' in page
    assert "Made with AI" in page
    assert "Paid partnership" in page
    assert "Only verified accounts can reply" in page
    assert f'<video controls preload="metadata" src="media/{film}">' in page
    assert page.index("A video") < page.index("First line"), "newest first"
    shown = web.get(f"/x/media/{photo}")
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    part = web.get(f"/x/media/{film}", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, MP4[4:8])


def test_markup_in_a_post_stays_text(web: TestClient, x: XClient) -> None:
    x.post('<script>alert(1)</script> http://example.com/"onclick=')
    page = web.get("/x/feed").text
    assert "<script" not in page
    assert '"onclick' not in page


# --- TikTok -----------------------------------------------------------------------------------------------------------


def test_viewers_see_videos_photos_captions_and_labels(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    tiktok.post(title="Evening <b>light</b>", privacy_level="PUBLIC_TO_EVERYONE", is_aigc=True, disable_comment=True)
    tiktok.photos(HERE + "one.jpg", HERE + "two.jpg", title="Two views", description="From the roof")
    page = web.get("/tiktok/feed").text
    film = world.tiktok.posts[0].media[0].id
    assert f'<video controls preload="metadata" src="media/{film}">' in page
    assert "Evening &lt;b&gt;light" in page
    assert "Creator labeled as AI-generated" in page
    assert "Comments off" in page
    assert page.count('alt=""') == 2 + 2, "two photos and two avatars"
    assert "From the roof" in page
    assert page.count("Only me") == 1
    assert page.index("Two views") < page.index("Evening"), "newest first"
    part = web.get(f"/tiktok/media/{film}", headers={"range": "bytes=4-7"})
    assert (part.status_code, part.content, part.headers["content-type"]) == (206, MP4[4:8], "video/mp4")
    assert "Two views" in web.get("/tiktok/@demo").text
    assert "Two views" not in web.get("/tiktok/@studio").text


def test_a_draft_is_finished_from_the_inbox(world: World, web: TestClient, tiktok: TikTokClient) -> None:
    begun = tiktok.draft()
    tiktok.put(begun, MP4)
    assert "Waiting in the inbox" in web.get("/tiktok/feed").text
    done = web.post("/tiktok/feed/drafts", data={"publish_id": publish_id(begun)})
    assert (done.status_code, done.headers["location"]) == (303, "../feed")
    assert len(world.tiktok.posts) == 1
    assert "Waiting in the inbox" not in web.get("/tiktok/feed").text


# --- Pinterest --------------------------------------------------------------------------------------------------------


def test_readers_see_boards_with_pins(world: World, web: TestClient, pinterest: PinterestClient) -> None:
    texts = {"title": "Poster <no> 4", "description": "Two colours", "alt_text": 'A "red" roof'}
    made = pinterest.pin(**texts, link="https://www.studio.test/4").json()["id"]
    item = {"content_type": "image/jpeg", "data": base64_text(picture()), "title": "First"}
    pinterest.pin({"source_type": "multiple_image_base64", "items": [item, item]}, title="Series")
    film = pinterest.video(MP4)
    pinterest.pin({"source_type": "video_id", "media_id": film, "cover_image_key_frame_time": 0}, title="Moving")
    page = web.get("/pinterest/feed").text
    assert "Summer prints" in page
    assert "Poster &lt;no&gt; 4" in page
    assert 'alt="A &#34;red&#34; roof"' in page
    assert '<a href="https://www.studio.test/4" rel="nofollow noreferrer">studio.test</a>' in page
    assert page.count('alt="First"') == 2
    assert f'src="media/{film}"' in page
    shown = web.get(f"/pinterest/media/{world.pinterest.pins[0].pictures[0].id}")
    assert (shown.content, shown.headers["content-type"]) == (picture(), "image/jpeg")
    alone = web.get(f"/pinterest/pin/{made}/")
    assert "on Summer prints" in alone.text


# --- Bluesky ----------------------------------------------------------------------------------------------------------


def marked(text: str, part: str, feature: dict[str, Any]) -> dict[str, Any]:
    """A facet for this part of the text."""
    begin = len(text.partition(part)[0].encode())
    kind = {"$type": f"app.bsky.richtext.facet#{feature.pop('kind')}", **feature}
    return {"index": {"byteStart": begin, "byteEnd": begin + len(part.encode())}, "features": [kind]}


def test_readers_see_what_facets_mark(web: TestClient, world: World, bluesky: BlueskyClient) -> None:
    studio = world.bluesky.existing_account("studio")
    text = "👨‍👩‍👧 <b> https://example.com/ü #täg @studio.test."
    facets = [
        marked(text, "https://example.com/ü", {"kind": "link", "uri": "https://example.com/ü"}),
        marked(text, "#täg", {"kind": "tag", "tag": "täg"}),
        marked(text, "@studio.test", {"kind": "mention", "did": studio.did}),
    ]
    bluesky.post(text, facets=facets)
    wrong = marked("No", "No", {"kind": "link", "uri": "javascript:alert(1)"})
    bluesky.post("No", facets=[wrong])
    bluesky.post("ü broken", facets=[{**wrong, "index": {"byteStart": 1, "byteEnd": 4}}])
    page = web.get("/bluesky/feed").text
    assert (
        '<p class="text">👨‍👩‍👧 &lt;b&gt; <a href="https://example.com/ü" rel="nofollow noreferrer">'
        "https://example.com/ü</a> #täg "
        f'<a href="profile/{studio.did}">@studio.test</a>.</p>'
    ) in page
    assert '<p class="text">No</p>' in page
    assert '<p class="text">ü broken</p>' in page
    assert "javascript" not in page


def test_readers_see_images_videos_cards_labels_and_gates(
    web: TestClient, world: World, bluesky: BlueskyClient
) -> None:
    image, film = bluesky.upload(), bluesky.upload(MP4, "video/mp4")
    shown = {"image": image, "alt": 'A "red" roof', "aspectRatio": {"width": 4, "height": 3}}
    labels = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "graphic-media"}]}
    key = bluesky.key()
    bluesky.put(
        bluesky.record(embed={"$type": "app.bsky.embed.images", "images": [shown]}, labels=labels, langs=["de"]), key
    )
    gate = {"$type": "app.bsky.feed.threadgate", "post": "at://a", "allow": [], "createdAt": BLUESKY_CREATED_AT}
    bluesky.put(gate, key, collection="app.bsky.feed.threadgate")
    bluesky.post(embed={"$type": "app.bsky.embed.video", "video": film, "alt": "Evening"})
    card = {"uri": "https://www.studio.test/4", "title": "Poster <4>", "description": "Two colors", "thumb": image}
    bluesky.post(embed={"$type": "app.bsky.embed.external", "external": card})
    page = web.get("/bluesky/feed").text
    cid, film_cid = image["ref"]["$link"], film["ref"]["$link"]
    assert f'<img src="media/{cid}" alt="A &#34;red&#34; roof"' in page
    assert f'<video controls preload="metadata" src="media/{film_cid}"' in page
    assert '<a href="https://www.studio.test/4" rel="nofollow noreferrer">studio.test</a>' in page
    for words in ("Poster &lt;4&gt;", "Two colors", "Graphic media", "Replies are off", ">de<"):
        assert words in page
    assert web.get(f"/bluesky/media/{cid}").content == PNG
    assert web.get("/bluesky/avatars/Demo.png").status_code == 200


def test_pages_name_bluesky_only_when_it_is_shown(web: TestClient, world: World) -> None:
    for path in ("/", "/accounts", "/_control/"):
        assert "bluesky" not in web.get(path).text.lower()
    world.shows_bluesky = True
    for path in ("/", "/accounts", "/_control/"):
        assert "bluesky" in web.get(path).text.lower()
    assert "Four simulated networks" in web.get("/").text
