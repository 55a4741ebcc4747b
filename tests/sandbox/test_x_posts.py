"""What the sandbox's X lets become a post."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.files import MP4
from tests.sandbox.x_client import XClient, message
from tests.support.hand_clock import HandClock


def test_a_text_becomes_a_post(world: World, x: XClient) -> None:
    answer = x.post("Hello, world!", reply_settings="following", made_with_ai=True)
    assert answer.status_code == 201
    (post,) = world.x.posts_of(x.account)
    data = answer.json()["data"]
    assert data == {"id": post.id, "text": "Hello, world!", "edit_history_post_ids": [post.id]}
    assert post.options == {"reply_settings": "following", "made_with_ai": True}
    assert len(post.id) == 19


def test_ids_only_grow_even_when_the_clock_goes_back(world: World, x: XClient, clock: HandClock) -> None:
    x.post("one")
    clock.jump(-3600)
    x.post("two")
    assert int(world.x.posts[0].id) < int(world.x.posts[1].id)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": "a", "replySettings": "following"}, "$.replySettings"),
        ({"text": "a", "reply_settings": "everyone"}, "enumeration"),
        ({"text": 5}, "string expected"),
        ({"text": None}, "string expected"),
        ({"text": "a", "made_with_ai": "yes"}, "boolean expected"),
        ({"text": "a", "made_with_ai": None}, "boolean expected"),
        ({}, "text is required"),
        ({"text": "  "}, "text is required"),
        ({"text": "a\ufeff"}, "not allowed"),
        ({"media": {"media_ids": []}}, "at least 1 items"),
        ({"media": {"media_ids": ["1"] * 5}}, "at most 4 items"),
        ({"media": {"media_ids": ["3_190"]}}, "regex"),
        ({"media": {"media_ids": [190]}}, "string expected"),
        ({"media": None}, "object expected"),
        ({"media": {"media_ids": ["1"], "alt_text": "x"}}, "additional properties"),
        ({"text": "a", "quote_tweet_id": "1", "media": {"media_ids": ["1"]}}, "only provide one of"),
        ({"text": "a", "reply": {}}, "required"),
    ],
)
def test_a_body_outside_the_document_is_400(world: World, x: XClient, body: dict[str, Any], words: str) -> None:
    answer = x.call("POST", "/2/tweets", json=body)
    assert answer.status_code == 400
    assert words in message(answer)
    assert answer.json()["type"].endswith("/invalid-request")
    assert world.x.posts == []


@pytest.mark.parametrize(
    ("content", "content_type", "words"),
    [
        (b"", "application/json", "Request body must be a JSON object."),
        (b"[]", "application/json", "Request body must be a JSON object."),
        (b"{", "application/json", "Request body is not valid JSON."),
        (b"{}", "text/plain", "Requests with bodies must have content-type of application/json."),
    ],
)
def test_a_body_that_is_no_json_object_is_told_so(
    x: XClient, web: TestClient, content: bytes, content_type: str, words: str
) -> None:
    headers = {"authorization": f"Bearer {x.token}", "content-type": content_type}
    answer = web.post("/x/2/tweets", content=content, headers=headers)
    assert (answer.status_code, message(answer)) == (400, words)


def test_280_weighted_characters_fit_and_one_more_does_not(x: XClient) -> None:
    assert x.post("é" * 280).status_code == 201
    assert x.post("한" * 140).status_code == 201
    assert x.post("https://example.com/" + "a" * 300 + " " + "b" * 256).status_code == 201
    too_long = x.post("한" * 140 + "b")
    assert too_long.status_code == 400
    assert "too long" in message(too_long)


def test_premium_accounts_have_25000_and_an_account_may_have_its_own_limit(world: World, web: TestClient) -> None:
    studio = XClient(web, world, "studio")
    assert studio.post("b" * 25_000).status_code == 201
    assert studio.post("c" * 25_001).status_code == 400
    world.x.too_long_status = 403
    assert message(studio.post("c" * 25_001)) == "You are not permitted to perform this action."
    studio.account.max_length = 4
    assert studio.post("dddd").status_code == 201
    assert studio.post("ddddd").status_code == 403


def test_one_cashtag_is_enough(x: XClient) -> None:
    assert x.post("buy $ACME for $25").status_code == 201
    answer = x.post("buy $ACME or $OTHER")
    assert (answer.status_code, "maximum of one cashtag" in message(answer)) == (403, True)


def test_the_same_text_is_a_duplicate_until_the_window_ends(
    world: World, web: TestClient, x: XClient, clock: HandClock
) -> None:
    x.post("again")
    assert message(x.post("again")) == "You are not allowed to create a Tweet with duplicate content."
    assert XClient(web, world, "studio").post("again").status_code == 201, "another account may"
    world.x.duplicate_window_seconds = 60
    clock.forward(60)
    assert x.post("again").status_code == 201


def test_a_refused_post_leaves_nothing_behind(world: World, x: XClient) -> None:
    x.post("$A $B")
    assert x.post("$A").status_code == 201
    assert len(world.x.posts) == 1


def test_replies_go_to_own_posts_and_to_those_that_mention_the_account(
    world: World, web: TestClient, x: XClient
) -> None:
    studio = XClient(web, world, "studio")
    own = x.post("mine").json()["data"]["id"]
    strange = studio.post("theirs").json()["data"]["id"]
    calling = studio.post("hello @demo").json()["data"]["id"]
    assert x.post("r1", reply={"in_reply_to_tweet_id": own}).status_code == 201
    assert x.post("r2", reply={"in_reply_to_tweet_id": calling}).status_code == 201
    assert "have not been mentioned" in message(x.post("r3", reply={"in_reply_to_tweet_id": strange}))
    assert "deleted or not visible" in message(x.post("r4", reply={"in_reply_to_tweet_id": "1"}))


def test_a_body_without_text_can_be_told_to_be_refused_as_behind_the_gateway(world: World, x: XClient) -> None:
    media = {"media_ids": [x.upload()]}
    assert x.post(media=media).status_code == 201
    world.x.needs_text = True
    assert "required" in message(x.post(media=media))
    assert x.post("", media=media).status_code == 201


def test_quotes_are_refused(x: XClient) -> None:
    own = x.post("mine").json()["data"]["id"]
    assert x.post("q", quote_tweet_id=own).status_code == 403


def test_media_go_as_photos_or_one_gif_or_one_video(world: World, x: XClient) -> None:
    world.x.processing_ticks = 0
    photos = [x.upload() for _ in range(4)]
    gif, video = x.video(b"GIF89a\x01\x00\x01\x00;", "tweet_gif", "image/gif"), x.video()
    assert x.post(media={"media_ids": photos}).status_code == 201
    assert x.post(media={"media_ids": [gif]}).status_code == 201
    assert x.post(media={"media_ids": [video]}).status_code == 201
    for mixed in ([photos[0], gif], [video, photos[0]], [video, gif], [photos[0], photos[0]]):
        assert message(x.post(media={"media_ids": mixed})) == "Your media IDs are invalid."
    assert [len(post.media) for post in world.x.posts] == [4, 1, 1]


def test_media_that_cannot_be_used_are_refused_at_the_post(
    world: World, web: TestClient, x: XClient, clock: HandClock
) -> None:
    studio = XClient(web, world, "studio")
    unfinished = x.initialize(len(MP4))
    processing = x.video()
    for media_id in ("1900000000000000000", studio.upload(), unfinished, processing):
        answer = x.post("with media", media={"media_ids": [media_id]})
        assert (answer.status_code, message(answer)) == (400, "Your media IDs are invalid.")
    mine = x.upload()
    clock.forward(86400)
    fresh = XClient(web, world)
    assert fresh.post(media={"media_ids": [mine]}).status_code == 400, "expired"
    assert world.x.posts == []


def test_a_finished_video_can_still_be_refused_at_the_post(world: World, x: XClient) -> None:
    world.x.processing, world.x.processing_ticks = "refused_at_post", 1
    video = x.video()
    assert x.look(video).json()["data"]["processing_info"]["state"] == "succeeded"
    assert x.post(media={"media_ids": [video]}).status_code == 400


def test_using_a_media_id_twice_can_be_switched_off(world: World, x: XClient) -> None:
    photo = x.upload()
    x.post("one", media={"media_ids": [photo]})
    assert x.post("two", media={"media_ids": [photo]}).status_code == 201
    world.x.media_reuse_allowed = False
    assert x.post("three", media={"media_ids": [photo]}).status_code == 400
