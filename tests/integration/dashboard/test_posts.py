"""The list of posts and the page of one post."""

from datetime import UTC, datetime, timedelta

import pytest

from socialpub.db.models import ArtifactRow, DeliveryRow
from socialpub.db.states import State
from socialpub.publishing.delivery import resume
from socialpub.publishing.posts.drafts import DraftMedia
from tests.samples import media
from tests.support.appliance import accept, add_profile, end_deliveries
from tests.support.drain import drain
from tests.support.rows import artifact as imagined
from tests.support.sandbox_http import artifact, connect_x
from tests.support.select import select_one, select_value
from tests.support.tab import Page

MARKUP = "<script>alert(1)</script><b onmouseover=x>&amp;"


def listed(page: Page) -> list[str]:
    (posts,) = page.root.of_class("posts")
    return [one.all("a")[-1].text for one in posts.all("article")]


def facts(page: Page) -> dict[str, str]:
    names = [one.text for one in page.root.all("dt")]
    return dict(zip(names, [one.text for one in page.root.all("dd")], strict=True))


def test_an_empty_list_links_to_compose(owner):
    page = owner.open("/posts")
    assert (page.heading, page.status) == ("Posts", 200)
    assert "No posts yet" in page.text
    assert page.links()["Compose"].endswith("/compose")


def test_the_list_shows_profiles_and_outcomes(owner, rt):
    x, pinterest = add_profile(rt, "x", "a", name="Shop"), add_profile(rt, "pinterest", "b", name="Boards")
    end_deliveries(rt, accept(rt, x, pinterest, body="First"), State.PUBLISHED, State.UNCONFIRMED)
    end_deliveries(rt, accept(rt, x, body="Second"), State.FAILED)
    accept(rt, pinterest, body="Third", at=rt.now() + timedelta(days=1))
    page = owner.open("/posts")
    assert listed(page) == ["Third", "Second", "First"]
    assert "3 posts" in page.text
    assert "X “Shop” Published" in page.text and "Pinterest “Boards” Outcome unknown" in page.text
    assert "in 1 day" in page.text


def test_paging_keeps_the_filters(owner, rt, profile):
    for number in range(45):
        accept(rt, profile, body=f"Number {number:02}")
    accept(rt, profile, body="Something else")
    page = owner.open("/posts?search=number")
    assert "45 posts match" in page.text
    assert listed(page) == [f"Number {number:02}" for number in range(44, 24, -1)]
    owner.follow("Older")
    page = owner.follow("Older")
    assert listed(page) == [f"Number {number:02}" for number in range(4, -1, -1)]
    assert page.path == "/posts?search=number&page=2"
    assert "search=number&page=1" in page.links()["Newer"]
    page = owner.open("/posts?page=9")
    assert "This page is empty" in page.text and page.links()["Show the newest posts"].endswith("/posts")


def test_every_filter_narrows_the_list_and_stays_in_its_field(owner, rt):
    x, pinterest = add_profile(rt, "x", "a", name="Shop"), add_profile(rt, "pinterest", "b", name="Boards")
    end_deliveries(rt, accept(rt, x, body="Failed one"), State.FAILED)
    end_deliveries(rt, accept(rt, x, pinterest, body="Both"), State.PUBLISHED, State.FAILED)
    accept(rt, pinterest, body="Tomorrow", at=rt.now() + timedelta(days=1))
    page = owner.press("Show", {"Status": "scheduled"}, on="/posts")
    assert listed(page) == ["Tomorrow"]
    assert page.field("Status").all("option")[1].attributes.get("selected") == ""
    assert listed(owner.press("Show", {"Status": "", "Delivery": "failed"})) == ["Both", "Failed one"]
    page = owner.press("Show", {"X": True})
    assert listed(page) == ["Failed one"], "one delivery must match all"
    assert "checked" in page.field("X").attributes and "open" in page.root.all("details")[0].attributes
    assert listed(owner.press("Show", {"Pinterest: Boards": True}, on="/posts")) == ["Tomorrow", "Both"]
    owner.cookies["socialpub_zone"] = "Europe%2FBerlin"
    local = rt.now() + timedelta(days=1, hours=2)  # summer time
    assert listed(owner.press("Show", {"Scheduled from": f"{local:%Y-%m-%dT%H:%M}"}, on="/posts")) == ["Tomorrow"]
    later = f"{local + timedelta(minutes=1):%Y-%m-%dT%H:%M}"
    page = owner.press("Show", {"Scheduled from": later})
    assert "No posts match." in page.text
    assert page.field("Scheduled from").attributes["value"] == later
    assert owner.follow("Clear filters").path == "/posts"


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("status=sent", "“sent” is not one of scheduled, pending, settled, canceled"),
        ("deliveryStatus=x", "“x” is not one of pending, published"),
        ("providers=x,myspace", "“myspace” is not a known network"),
        ("profileIds=123", "“123” is not a known profile"),
        ("scheduledAfter=yesterday", "“yesterday” is not a date and time"),
        (f"status={MARKUP}".replace("&", "%26"), "<script>alert(1)</script>"),
    ],
)
def test_invalid_values_in_the_address_are_errors_and_the_others_apply(owner, rt, part, said, profile):
    accept(rt, profile, body="Found")
    accept(rt, profile, body="Not this")
    page = owner.open(f"/posts?search=found&{part}")
    assert page.status == 400
    assert said in page.text and "ignored" in page.role("alert")
    assert listed(page) == ["Found"]
    assert "<script>alert" not in page.html


def test_a_post_at_the_last_possible_instant_can_be_shown(owner, rt):
    """In zones east of Greenwich, its local year is out of range."""
    post = accept(rt, add_profile(rt), body="Far away", at=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    owner.cookies["socialpub_zone"] = "Asia/Tokyo"
    for path in ("/", "/posts", f"/posts/{post}", f"/posts/{post}/reschedule", f"/posts/{post}/edit"):
        page = owner.open(path)
        assert (page.status, "Far away" in page.html) == (200, True), path
    for path in ("/posts?scheduledBefore=9999-12-31T23:59:59Z", "/compose?at=9999-12-31T23:59:59.000Z"):
        assert owner.open(path).status == 200, path


def test_the_page_of_a_post_shows_its_outcome(owner, rt, clock, tmp_path, x):
    photo = artifact(rt, media.jpeg(tmp_path / "holiday.jpg"), "image/jpeg")
    post = accept(rt, x, body="Good morning,\n  world", media=(DraftMedia(photo, "The sea"),))
    page = owner.open(f"/posts/{post}")
    assert (page.heading, page.title) == ("Post", "Post: Good morning, world – socialpub")
    assert 'hx-trigger="every 3s"' in page.html and "Earlier posts to the same account" in facts(page)["Waits for"]
    live = page.by_id("live")
    assert not live.all("form", "input")

    drain(rt, clock)
    page = owner.open(f"/posts/{post}")
    assert "hx-get" not in page.html, "a settled post needs no refresh"
    assert (facts(page)["State"], "✓ Create post done, makes it public" in page.text) == ("Published", True)
    link = facts(page)["Link"]
    (anchor,) = [one for one in page.root.all("a") if one.attributes["href"] == link]
    assert anchor.attributes["rel"] == "noopener noreferrer"
    assert facts(page)["X post id"] in link
    (body,) = page.root.of_class("text body")
    assert body.raw_text == "Good morning,\n  world"
    (own,) = page.root.of_class("media")
    (picture,) = own.all("img")
    assert picture.attributes["alt"] == "The sea" and "holiday.jpg" in page.text
    full = page.links()["Image 1 in full size"]
    assert full.startswith("http://testserver/storage/media/")
    assert owner.ask("GET", full).headers["content-type"] == "image/jpeg"


def test_the_details_of_a_published_post_are_folded_and_times_have_seconds(owner, rt, world, clock):
    x, lost = connect_x(rt, world), add_profile(rt, "tiktok")
    clock.forward(7)
    post = accept(rt, x)
    drain(rt, clock)
    page = owner.open(f"/posts/{post}")
    (folded,) = page.root.all("details")
    assert folded.all("summary")[0].text == "Details on X x profile"
    assert len(folded.all("table")) == len(folded.all("ol")) == 1
    assert facts(page)["Published"].startswith("12 Oct 2026, 09:00:07 UTC")
    end_deliveries(rt, accept(rt, x, lost), State.PUBLISHED, State.FAILED)
    partly = owner.open(f"/posts/{select_value(rt.db, 'SELECT max(id) FROM post')}")
    assert partly.root.all("details") == [], "what failed is there to be read"


def test_a_pin_s_page_names_its_board_and_section_without_asking_the_network(owner, rt, world, clock, tmp_path, pins):
    board = next(one for one in world.pinterest.boards_of("demo") if one.sections)
    section_id, section_name = next(iter(board.sections.items()))
    options = {"pinterest": {"boardId": board.id, "boardSectionId": section_id}}
    photo = (DraftMedia(artifact(rt, media.jpeg(tmp_path / "a.jpg"), "image/jpeg")),)
    later = accept(rt, pins, media=photo, options=options, at=rt.now() + timedelta(days=2))
    assert facts(owner.open(f"/posts/{later}"))["Board"] == board.id, "the name is not known yet"
    now = accept(rt, pins, media=photo, options=options)
    drain(rt, clock)
    found = facts(owner.open(f"/posts/{now}"))
    assert found["Board"] == f"{board.name} ({board.id})"
    assert found["Section"] == f"{section_name} ({section_id})"
    owner.open("/compose")
    world.pinterest.next("list_boards").times_out_before_effect()
    assert facts(owner.open(f"/posts/{later}"))["Board"] == f"{board.name} ({board.id})"


def test_a_page_that_refreshes_itself_reloads_after_the_last_outcome(owner, rt, world, clock):
    post = accept(rt, connect_x(rt, world))
    assert "hx-refresh" not in owner.ask("GET", f"/posts/{post}", headers={"hx-request": "true"}).headers
    drain(rt, clock)
    assert owner.ask("GET", f"/posts/{post}", headers={"hx-request": "true"}).headers["hx-refresh"] == "true"
    assert "hx-refresh" not in owner.ask("GET", f"/posts/{post}").headers


def test_texts_of_others_are_never_markup(owner, rt):
    profile = add_profile(rt, name=f"Label {MARKUP}")
    picture = imagined(rt, file_name=f"{MARKUP}.png", storage_key="ab/" + "0" * 36 + "-" + "1" * 16 + ".png")
    post = accept(
        rt, profile, body=f"Body {MARKUP}", media=(DraftMedia(picture, f"Alt {MARKUP}"),), options={"x": {"a": MARKUP}}
    )
    end_deliveries(rt, post, State.FAILED)
    columns = {"error_message": f"Message {MARKUP}", "url": "javascript:alert(1)", "provider_post_id": MARKUP}
    rt.db.write(
        lambda tx: tx.update(DeliveryRow, select_one(tx, "SELECT id FROM delivery")["id"], **columns)  # type: ignore[index]
    )
    attempt = {"message": f"Said {MARKUP}", "provider_code": MARKUP, "request_id": MARKUP}
    rt.db.write(
        lambda tx: tx.execute_sql(
            "UPDATE attempt SET message = ?, provider_code = ?, request_id = ?", tuple(attempt.values())
        )
    )
    for address in (f"/posts/{post}", "/posts", f"/posts/{post}/again"):
        page = owner.open(address)
        assert page.status == 200
        assert "<script>alert" not in page.html and "<b onmouseover" not in page.html
        assert not any("onmouseover" in one.attributes for one in page.root.all())
        assert "javascript:" not in " ".join(one.attributes.get("href", "") for one in page.root.all("a"))
        assert f"Body {MARKUP}" in page.text
    page = owner.open(f"/posts/{post}")
    for text in ("Label", "Message", "Said", "Alt"):
        assert f"{text} {MARKUP}" in page.text
    assert "javascript:alert(1)" in facts(page)["Link"]


def test_the_page_of_a_post_shows_removed_files_and_missing_alt_texts(owner, rt, tmp_path):
    clip = artifact(rt, media.video_mp4(tmp_path / "a.mp4", 0.25), "video/mp4")
    post = accept(rt, add_profile(rt), body=None, media=(DraftMedia(clip),))
    page = owner.open(f"/posts/{post}")
    assert page.title == "Post: Post without text (1 video) – socialpub"
    (video,) = page.root.all("video")
    assert video.attributes["src"].startswith("../storage/media/") and video.attributes["preload"] == "none"
    assert "No alt text" in page.text
    rt.db.write(lambda tx: tx.update(ArtifactRow, clip, removed_at=tx.stamp, storage_key=None))
    page = owner.open(f"/posts/{post}")
    assert not page.root.all("video") and "This video was removed." in page.text
    assert "1 video, removed" in owner.open("/posts").text


def test_the_page_of_a_post_shows_what_a_delivery_waits_for(owner, rt, profile):
    later = accept(rt, profile, body="Later", at=rt.now() + timedelta(hours=3))
    now = accept(rt, profile, body="Now")
    assert "The scheduled time. Until 12 Oct 2026" in facts(owner.open(f"/posts/{later}"))["Waits for"]
    assert 'hx-trigger="every 30s"' in owner.page.html
    rt.write(resume.pause)
    assert "Publishing is paused since" in facts(owner.open(f"/posts/{now}"))["Waits for"]


def test_a_thread_is_linked_in_both_directions(owner, rt, clock):
    profile = add_profile(rt)
    first = accept(rt, profile, body="1/2", at=clock.now() + timedelta(hours=1))
    reply = accept(rt, profile, body="2/2", options={"x": {"reply_to_post_id": first}})
    page = owner.open(f"/posts/{reply}")
    assert facts(page)["Reply to"] == "1/2"
    assert page.links()["1/2"].endswith(f"/posts/{first}")
    assert facts(page)["Waits for"] == "The post “1/2”, to which this post replies."
    page = owner.open(f"/posts/{first}")
    assert facts(page)["Replies"] == "2/2"
    assert page.links()["2/2"].endswith(f"/posts/{reply}")


def test_the_page_of_a_post_previews_it_on_request(owner, rt, world):
    text = "A unique text"
    post = accept(rt, connect_x(rt, world), body=text, at=rt.now() + timedelta(hours=1))
    assert owner.open(f"/posts/{post}").text.count(text) == 1
    assert text in owner.follow("Show preview").by_id("previews").text
