"""The journal: posts, shares, pins, boards, accounts and tokens survive the sandbox."""

from collections.abc import Callable
from pathlib import Path

from httpx2 import Response
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app
from tests.sandbox.clients import (
    PinterestClient,
    TikTokClient,
    XClient,
    publish_id,
    sign_in_to_bluesky,
    xrpc_error,
)
from tests.sandbox.files import MP4, base64_text, picture

Restart = Callable[[], World]


def test_posts_accounts_and_tokens_survive_a_restart(restart: Restart, tmp_path: Path) -> None:
    before = restart()
    with TestClient(create_app(before)) as web:
        caller = XClient(web, before, "newcomer")
        kept = caller.post("kept", media={"media_ids": [caller.upload()]}).json()["data"]["id"]
        last = caller.post("last").json()["data"]["id"]
        form = {"grant_type": "refresh_token", "refresh_token": caller.refresh_token}
        pair = web.post("/x/2/oauth2/token", data=form, auth=("app", "secret")).json()
    # The world is not closed: it was killed, in the middle of a line.
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"network":"x","kind":"po')

    after = restart()
    assert [post.text for post in after.x.posts] == ["kept", "last"]
    assert after.x.posts[0].media[0].sha256 == before.x.posts[0].media[0].sha256
    assert after.x.posts[0].in_reply_to is None
    with TestClient(create_app(after)) as web:
        header = {"authorization": f"Bearer {pair['access_token']}"}
        made = web.post("/x/2/tweets", json={"text": "after"}, headers=header).json()["data"]["id"]
        assert web.post("/x/2/tweets", json={"text": "kept"}, headers=header).status_code == 403, "still a duplicate"
        old = web.post("/x/2/oauth2/token", data=form, auth=("app", "secret"))
        assert old.status_code == 400, "a spent token stays spent"
        assert "no longer stored" in web.get("/x/feed").text
    assert int(made) > int(last) > int(kept)
    assert [post.text for post in restart().x.posts] == ["kept", "last", "after"]


def test_shares_and_posts_survive_a_restart(restart: Restart) -> None:
    before = restart()
    with TestClient(create_app(before)) as web:
        demo = TikTokClient(web, before)
        posted, processing, begun = demo.post(title="one"), demo.post(title="two"), demo.begin(title="three")
        demo.status(posted)
        demo.status(posted)
        draft = demo.draft()
        demo.put(draft, MP4)
        demo.status(publish_id(draft))
        demo.status(publish_id(draft))
        before.tiktok.finish_draft(publish_id(draft), privacy="SELF_ONLY")
        before.tiktok.next_fate("spam_risk")
        failed = demo.post()
        demo.status(failed)
        demo.status(failed)

    after = restart()
    assert [(post.title, post.privacy) for post in after.tiktok.posts] == [("one", "SELF_ONLY"), ("", "SELF_ONLY")]
    assert [post.id for post in after.tiktok.posts] == [post.id for post in before.tiktok.posts]
    assert after.tiktok.posts[0].media == before.tiktok.posts[0].media
    with TestClient(create_app(after)) as web:
        demo.web = web
        assert demo.status(posted)["status"] == "PUBLISH_COMPLETE"
        assert demo.status(failed)["fail_reason"] == "spam_risk"
        demo.status(processing)
        assert demo.status(processing)["status"] == "PUBLISH_COMPLETE"
        assert demo.put(begun, MP4).status_code == 201, "its URL is still good"
        assert "no longer stored" in web.get("/tiktok/feed").text
    assert int(after.tiktok.posts[-1].id) > int(before.tiktok.posts[-1].id)


def test_pins_boards_and_videos_survive_a_restart(restart: Restart) -> None:
    before = restart()
    with TestClient(create_app(before)) as web:
        demo = PinterestClient(web, before)
        board = demo.call("POST", "/boards", json={"name": "New"}).json()["id"]
        part = demo.call("POST", f"/boards/{board}/sections", json={"name": "Part"}).json()["id"]
        item = {"content_type": "image/jpeg", "data": base64_text(picture()), "title": "First"}
        demo.pin({"source_type": "multiple_image_base64", "items": [item, item]}, board_id=board, board_section_id=part)
        film = demo.video()
        demo.pin({"source_type": "video_id", "media_id": film, "cover_image_key_frame_time": 2})
        last = demo.pin().json()["id"]

    after = restart()
    names = ("id", "kind", "board_id", "section_id", "pictures", "video_id", "key_frame_seconds", "created_at")
    for old, new in zip(before.pinterest.pins, after.pinterest.pins, strict=True):
        assert [getattr(old, name) for name in names] == [getattr(new, name) for name in names]
    assert after.pinterest.media[film].sha256 == before.pinterest.media[film].sha256
    with TestClient(create_app(after)) as web:
        demo.web = web
        assert int(demo.pin().json()["id"]) > int(last)
        assert "no longer stored" in web.get("/pinterest/feed").text
        assert [one["name"] for one in demo.call("GET", f"/boards/{board}/sections").json()["items"]] == ["Part"]


def test_accounts_of_the_other_networks_survive_too(restart: Restart) -> None:
    before = restart()
    tiktok, pinterest = before.tiktok.grant("neu"), before.pinterest.grant("neu")
    after = restart()
    for book, granted in ((after.tiktok.tokens, tiktok), (after.pinterest.tokens, pinterest)):
        assert book.bearer(granted["accessToken"]) is not None
    assert after.tiktok.account_named("neu") == before.tiktok.account_named("neu")
    assert after.pinterest.account_named("neu") == before.pinterest.account_named("neu")


def test_reset_empties_the_journal(restart: Restart) -> None:
    world = restart()
    world.x.grant("newcomer")
    world.reset()
    assert restart().x.account_named("newcomer") is None


def bluesky_session(web: TestClient, method: str, token: str) -> Response:
    return web.request(
        "GET" if method == "getSession" else "POST",
        f"/bluesky/xrpc/com.atproto.server.{method}",
        headers={"authorization": f"Bearer {token}"},
    )


def test_sessions_of_bluesky_survive_a_restart(restart: Restart) -> None:
    web = TestClient(create_app(restart()))
    first = sign_in_to_bluesky(web).json()
    ended = sign_in_to_bluesky(web).json()
    second = bluesky_session(web, "refreshSession", first["refreshJwt"]).json()
    bluesky_session(web, "deleteSession", ended["refreshJwt"])
    web = TestClient(create_app(restart()))
    assert bluesky_session(web, "getSession", second["accessJwt"]).status_code == 200
    assert bluesky_session(web, "refreshSession", second["refreshJwt"]).status_code == 200
    assert xrpc_error(bluesky_session(web, "refreshSession", ended["refreshJwt"])) == (400, "ExpiredToken")
