"""The journal: shares, posts, pins and boards survive the sandbox."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app
from tests.sandbox.pinterest_caller import Pinner, coded, picture
from tests.sandbox.tiktok_caller import FILM, TikToker, publish_id
from tests.support.hand_clock import HandClock

Life = Callable[[], World]


@pytest.fixture
def life(tmp_path: Path, clock: HandClock) -> Iterator[Life]:
    """Starts the sandbox anew over the same journal."""
    with ExitStack() as stack:

        def begin() -> World:
            world = stack.enter_context(closing(World(clock, journal=tmp_path / "journal.jsonl")))
            world.tiktok.probes_video = False
            world.pinterest.probes_video = False
            world.pinterest.processing_ticks = 0
            return world

        yield begin


def test_shares_and_posts_survive_a_restart(life: Life) -> None:
    before = life()
    with TestClient(create_app(before)) as web:
        demo = TikToker(web, before)
        posted, processing, begun = demo.post(title="one"), demo.post(title="two"), demo.begin(title="three")
        demo.status(posted)
        demo.status(posted)
        draft = demo.draft()
        demo.put(draft, FILM)
        demo.status(publish_id(draft))
        demo.status(publish_id(draft))
        before.tiktok.tasks.finish_draft(publish_id(draft), privacy="SELF_ONLY")
        before.tiktok.next_fate("spam_risk")
        failed = demo.post()
        demo.status(failed)
        demo.status(failed)

    after = life()
    assert [(post.title, post.privacy) for post in after.tiktok.posts] == [("one", "SELF_ONLY"), ("", "SELF_ONLY")]
    assert [post.id for post in after.tiktok.posts] == [post.id for post in before.tiktok.posts]
    assert after.tiktok.posts[0].media == before.tiktok.posts[0].media
    with TestClient(create_app(after)) as web:
        demo.web = web
        assert demo.status(posted)["status"] == "PUBLISH_COMPLETE"
        assert demo.status(failed)["fail_reason"] == "spam_risk"
        demo.status(processing)
        assert demo.status(processing)["status"] == "PUBLISH_COMPLETE"
        assert demo.put(begun, FILM).status_code == 201, "its URL is still good"
        assert "no longer kept" in web.get("/tiktok/feed").text
    assert int(after.tiktok.posts[-1].id) > int(before.tiktok.posts[-1].id)


def test_pins_boards_and_films_survive_a_restart(life: Life) -> None:
    before = life()
    with TestClient(create_app(before)) as web:
        demo = Pinner(web, before)
        board = demo.call("POST", "/boards", json={"name": "New"}).json()["id"]
        part = demo.call("POST", f"/boards/{board}/sections", json={"name": "Part"}).json()["id"]
        item = {"content_type": "image/jpeg", "data": coded(picture()), "title": "First"}
        demo.pin({"source_type": "multiple_image_base64", "items": [item, item]}, board_id=board, board_section_id=part)
        film = demo.film()
        demo.pin({"source_type": "video_id", "media_id": film, "cover_image_key_frame_time": 2})
        gone = demo.pin().json()["id"]
        demo.call("DELETE", f"/pins/{gone}")

    after = life()
    assert after.pinterest.find_pin(gone) is None
    names = ("id", "kind", "board_id", "section_id", "pictures", "film_id", "key_frame_seconds", "created_at")
    for old, new in zip(before.pinterest.pins, after.pinterest.pins, strict=True):
        assert [getattr(old, name) for name in names] == [getattr(new, name) for name in names]
    assert after.pinterest.media[film].sha256 == before.pinterest.media[film].sha256
    with TestClient(create_app(after)) as web:
        demo.web = web
        assert int(demo.pin().json()["id"]) > int(gone)
        assert "no longer kept" in web.get("/pinterest/feed").text
        assert [one["name"] for one in demo.call("GET", f"/boards/{board}/sections").json()["items"]] == ["Part"]
