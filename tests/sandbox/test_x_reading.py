"""Reading posts back from the sandbox's X."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.x_caller import Caller
from tests.support.hand_clock import HandClock

FIELDS = "created_at,text,entities"


def test_links_come_back_wrapped_and_tell_where_they_lead(demo: Caller) -> None:
    photo = demo.upload()
    made = demo.post("é see example.org and https://a.example.com/x?y=1", media={"media_ids": [photo]}).json()["data"]
    (read,) = demo.posts(**{"tweet.fields": FIELDS}).json()["data"]
    assert read["id"] == made["id"]
    urls = read["entities"]["urls"]
    assert [url["expanded_url"] for url in urls] == [
        "http://example.org",
        "https://a.example.com/x?y=1",
        f"https://x.com/demo/status/{made['id']}/photo/1",
    ]
    for url in urls:
        assert read["text"][url["start"] : url["end"]] == url["url"]
        assert url["url"].startswith("https://t.co/")
    assert read["text"].endswith(urls[-1]["url"]), "the media link trails"
    assert urls[-1]["media_key"] == f"3_{photo}"


def test_lists_are_newest_first_and_in_pages(demo: Caller) -> None:
    ids = [demo.post(f"n{number}").json()["data"]["id"] for number in range(7)]
    first = demo.posts(max_results="5").json()
    assert [post["id"] for post in first["data"]] == ids[:1:-1]
    assert first["meta"]["result_count"] == 5
    second = demo.posts(max_results="5", pagination_token=first["meta"]["next_token"]).json()
    assert [post["id"] for post in second["data"]] == [ids[1], ids[0]]
    assert "next_token" not in second["meta"]


def test_an_empty_list_has_no_data(demo: Caller) -> None:
    assert demo.posts().json() == {"meta": {"result_count": 0}}


def test_start_time_counts_in_whole_seconds(demo: Caller, clock: HandClock) -> None:
    demo.post("early")
    clock.forward(60.7)
    demo.post("late")
    assert len(demo.posts(start_time="2026-10-12T09:01:00.900Z").json()["data"]) == 1
    assert "data" not in demo.posts(start_time="2026-10-12T09:01:01Z").json()
    (late,) = demo.posts(start_time="2026-10-12T11:01:00+02:00", **{"tweet.fields": FIELDS}).json()["data"]
    assert late["created_at"] == "2026-10-12T09:01:00.000Z"


@pytest.mark.parametrize(
    "query",
    [
        {"max_results": "4"},
        {"max_results": "101"},
        {"start_time": "2026-10-12T09:00:00"},
        {"start_time": "2026-10-12T09:00:00 00:00"},
        {"start_time": "yesterday"},
        {"tweet.fields": "created_at,note_post"},
        {"post.fields": "created_at,note_tweet"},
        {"tweet.fields": "text", "post.fields": "text"},
        {"exclude": "quotes"},
        {"fields": "text"},
    ],
)
def test_a_query_that_no_document_describes_is_400(demo: Caller, query: dict[str, str]) -> None:
    assert demo.posts(**query).status_code == 400


def test_new_posts_can_be_told_to_appear_late_in_lists(world: World, demo: Caller, clock: HandClock) -> None:
    world.x.list_lag_seconds = 30
    made = demo.post("late").json()["data"]["id"]
    assert "data" not in demo.posts().json()
    assert demo.call("GET", f"/2/tweets/{made}").status_code == 200, "alone it shows at once"
    clock.forward(30)
    assert len(demo.posts().json()["data"]) == 1


def test_replies_can_be_left_out(demo: Caller) -> None:
    own = demo.post("thread").json()["data"]["id"]
    demo.post("more", reply={"in_reply_to_tweet_id": own})
    assert len(demo.posts(exclude="replies,retweets").json()["data"]) == 1
    assert len(demo.posts(exclude="retweets").json()["data"]) == 2


def test_a_deleted_post_is_gone_but_not_forgotten(world: World, web: TestClient, demo: Caller) -> None:
    made = demo.post("oops").json()["data"]["id"]
    assert Caller(web, world, "studio").call("DELETE", f"/2/tweets/{made}").status_code == 403
    assert demo.call("DELETE", f"/2/tweets/{made}").json() == {"data": {"deleted": True}}
    answer = demo.call("GET", f"/2/tweets/{made}")
    assert answer.status_code == 404
    assert answer.json()["type"].endswith("/resource-not-found")
    assert demo.call("DELETE", f"/2/tweets/{made}").status_code == 404
    assert len(world.x.posts) == 1
    assert "data" not in demo.posts().json()


def test_a_missing_post_can_be_a_200_with_errors_alone(world: World, demo: Caller) -> None:
    world.x.missing_post_status = 200
    answer = demo.call("GET", "/2/tweets/1")
    assert (answer.status_code, list(answer.json())) == (200, ["errors"])


def test_a_long_text_is_cut_and_whole_in_its_note(world: World, web: TestClient) -> None:
    studio = Caller(web, world, "studio")
    studio.post("word " * 100)
    (read,) = studio.posts(**{"post.fields": "text,note_post"}).json()["data"]
    assert read["text"].endswith("…")
    assert read["note_post"]["text"] == "word " * 100


def test_a_protected_account_shows_its_posts_to_itself_alone(world: World, web: TestClient, demo: Caller) -> None:
    world.x.add_account("shy", protected=True)
    shy = Caller(web, world, "shy")
    made = shy.post("secret").json()["data"]["id"]
    assert shy.call("GET", f"/2/tweets/{made}").status_code == 200
    assert demo.call("GET", f"/2/tweets/{made}").status_code == 404
    assert "data" not in demo.call("GET", f"/2/users/{shy.account.id}/tweets").json()


def test_signs_of_markup_can_be_told_to_come_back_escaped(world: World, demo: Caller) -> None:
    world.x.escapes_html = True
    assert demo.post("fish & <chips>").json()["data"]["text"] == "fish &amp; &lt;chips&gt;"


def test_the_old_dialect_speaks_of_tweets(world: World, demo: Caller) -> None:
    world.x.dialect = "old"
    made = demo.post("old").json()["data"]
    assert made["edit_history_tweet_ids"] == [made["id"]]
    assert demo.call("GET", "/2/tweets/1").json()["type"].startswith("https://api.twitter.com/2/problems/")
    metrics = demo.call("GET", "/2/users/me", params={"user.fields": "public_metrics"}).json()["data"]["public_metrics"]
    assert metrics["tweet_count"] == 1
