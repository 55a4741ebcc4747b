"""Posts on the sandbox's X: who may call, what becomes a post, and how it is read back."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.clients import XClient, message
from tests.sandbox.files import MP4
from tests.support.hand_clock import HandClock

# --- who may call -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer stranger"}, {"authorization": "Basic x"}])
def test_a_missing_or_unknown_token_is_401(web: TestClient, header: dict[str, str]) -> None:
    assert web.get("/x/2/users/me", headers=header).status_code == 401


@pytest.mark.parametrize(
    ("missing", "method", "path"),
    [
        ("media.write", "POST", "/2/media/upload"),
        ("media.write", "POST", "/2/media/upload/initialize"),
        ("media.write", "POST", "/2/media/metadata"),
        ("media.write", "GET", "/2/media/upload"),
        ("tweet.write", "POST", "/2/tweets"),
        ("users.read", "GET", "/2/users/me"),
        ("tweet.read", "GET", "/2/users/1/tweets"),
    ],
)
def test_every_endpoint_needs_its_scope(world: World, web: TestClient, missing: str, method: str, path: str) -> None:
    scopes = tuple({"tweet.read", "tweet.write", "users.read", "media.write"} - {missing})
    answer = XClient(web, world, "demo", scopes).call(method, path)
    assert (answer.status_code, answer.json()["detail"]) == (403, "Forbidden")


def test_a_suspended_account_receives_403(x: XClient) -> None:
    x.account.suspended = True
    assert x.post("a").json()["type"].endswith("/user-suspended")


def test_every_response_reports_the_window(x: XClient, clock: HandClock) -> None:
    first = x.post("one")
    clock.forward(10)
    second = x.post("one")
    reset = str(int(clock.now().timestamp()) + 890)
    for answer, left in ((first, "99"), (second, "98")):
        assert answer.headers["x-rate-limit-limit"] == "100"
        assert answer.headers["x-rate-limit-remaining"] == left
        assert answer.headers["x-rate-limit-reset"] == reset
    assert second.status_code == 403, "a refusal counts too"
    assert x.web.get("/x/2/users/me").headers["x-rate-limit-limit"] == "75", "without a token too"


def test_a_full_window_is_429_until_it_ends(world: World, x: XClient, clock: HandClock) -> None:
    world.x.limits["POST /2/tweets"] = 2
    assert [x.post(f"n{number}").status_code for number in range(3)] == [201, 201, 429]
    clock.forward(899)
    assert x.post("still").status_code == 429
    clock.forward(1)
    assert x.post("again").status_code == 201
    assert len(world.x.posts) == 3


def test_an_unknown_path_is_404_in_the_networks_own_shape(web: TestClient) -> None:
    assert web.get("/x/2/nothing").json()["type"] == "about:blank"
    assert web.put("/x/2/tweets").status_code == 405
    assert web.post("/tiktok/v2/nothing/").json()["error"]["code"] == "invalid_params"
    assert web.get("/pinterest/v5/nothing").json()["message"] == "Not found."


def test_who_am_i_shows_the_fields_asked_for(web: TestClient, world: World) -> None:
    studio = XClient(web, world, "studio")
    fields = "id,name,username,profile_image_url,verified,verified_type,subscription_type,protected,public_metrics"
    data = studio.call("GET", "/2/users/me", params={"user.fields": fields}).json()["data"]
    assert set(data) == set(fields.split(","))
    assert (data["subscription_type"], data["verified_type"]) == ("Premium", "blue")
    assert web.get(data["profile_image_url"]).headers["content-type"] == "image/png"
    assert studio.call("GET", "/2/users/me", params={"user.fields": "shoe_size"}).status_code == 400


# --- what becomes a post ----------------------------------------------------------------------------------------------


def test_a_text_becomes_a_post(world: World, x: XClient) -> None:
    answer = x.post("Hello, world!", reply_settings="following", made_with_ai=True)
    assert answer.status_code == 201
    (post,) = world.x.posts_of(x.account)
    data = answer.json()["data"]
    assert data == {"id": post.id, "text": "Hello, world!", "edit_history_post_ids": [post.id]}
    assert post.options == {"reply_settings": "following", "made_with_ai": True}
    assert len(post.id) == 19


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


def test_the_same_text_is_a_duplicate_until_the_window_ends(
    world: World, web: TestClient, x: XClient, clock: HandClock
) -> None:
    x.post("again")
    assert message(x.post("again")) == "You are not allowed to create a Tweet with duplicate content."
    assert XClient(web, world, "studio").post("again").status_code == 201, "another account may"
    world.x.duplicate_window_seconds = 60
    clock.forward(60)
    assert x.post("again").status_code == 201


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


# --- what is read back ------------------------------------------------------------------------------------------------


FIELDS = "created_at,text,entities"


def test_lists_are_newest_first_and_in_pages(x: XClient) -> None:
    ids = [x.post(f"n{number}").json()["data"]["id"] for number in range(7)]
    first = x.posts(max_results="5").json()
    assert [post["id"] for post in first["data"]] == ids[:1:-1]
    assert first["meta"]["result_count"] == 5
    second = x.posts(max_results="5", pagination_token=first["meta"]["next_token"]).json()
    assert [post["id"] for post in second["data"]] == [ids[1], ids[0]]
    assert "next_token" not in second["meta"]


def test_start_time_counts_in_whole_seconds(x: XClient, clock: HandClock) -> None:
    x.post("early")
    clock.forward(60.7)
    x.post("late")
    assert len(x.posts(start_time="2026-10-12T09:01:00.900Z").json()["data"]) == 1
    assert "data" not in x.posts(start_time="2026-10-12T09:01:01Z").json()
    (late,) = x.posts(start_time="2026-10-12T11:01:00+02:00", **{"tweet.fields": FIELDS}).json()["data"]
    assert late["created_at"] == "2026-10-12T09:01:00.000Z"


def test_a_setting_delays_new_posts_in_lists(world: World, x: XClient, clock: HandClock) -> None:
    world.x.list_lag_seconds = 30
    x.post("late")
    assert "data" not in x.posts().json()
    clock.forward(30)
    assert len(x.posts().json()["data"]) == 1


def test_a_long_text_is_cut_and_whole_in_its_note(world: World, web: TestClient) -> None:
    studio = XClient(web, world, "studio")
    studio.post("word " * 100)
    (read,) = studio.posts(**{"post.fields": "text,note_post"}).json()["data"]
    assert read["text"].endswith("…")
    assert read["note_post"]["text"] == "word " * 100


def test_a_reply_names_whom_it_answers_and_what(world: World, web: TestClient, x: XClient) -> None:
    studio = XClient(web, world, "studio")
    called = studio.post("hello @demo").json()["data"]["id"]
    first = x.post("Hi", reply={"in_reply_to_tweet_id": called}).json()["data"]["id"]
    x.post("and @studio", reply={"in_reply_to_tweet_id": called})
    x.post("More", reply={"in_reply_to_tweet_id": first})
    for asked, name, included in (
        ({"post.fields": "conversation_id", "expansions": "referenced_posts"}, "referenced_posts", "posts"),
        ({"tweet.fields": "conversation_id,referenced_tweets"}, "referenced_tweets", "tweets"),
    ):
        world.x.dialect = "new" if included == "posts" else "old"
        listed = x.posts(**asked).json()
        more, second, hi = listed["data"]
        assert (hi["text"], second["text"], more["text"]) == ("@studio Hi", "and @studio", "More")
        assert hi[name] == second[name] == [{"type": "replied_to", "id": called}]
        assert more[name] == [{"type": "replied_to", "id": first}]
        assert hi["conversation_id"] == more["conversation_id"] == called
        expanded = [one["id"] for one in listed.get("includes", {}).get(included, [])]
        assert expanded == ([first, called] if "expansions" in asked else [])
