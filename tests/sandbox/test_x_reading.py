"""Reading posts back from the sandbox's X."""

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World
from tests.sandbox.x_client import XClient
from tests.support.hand_clock import HandClock

FIELDS = "created_at,text,entities"


def test_links_come_back_wrapped_and_tell_where_they_lead(x: XClient) -> None:
    photo = x.upload()
    made = x.post("é see example.org and https://a.example.com/x?y=1", media={"media_ids": [photo]}).json()["data"]
    (read,) = x.posts(**{"tweet.fields": FIELDS}).json()["data"]
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


def test_lists_are_newest_first_and_in_pages(x: XClient) -> None:
    ids = [x.post(f"n{number}").json()["data"]["id"] for number in range(7)]
    first = x.posts(max_results="5").json()
    assert [post["id"] for post in first["data"]] == ids[:1:-1]
    assert first["meta"]["result_count"] == 5
    second = x.posts(max_results="5", pagination_token=first["meta"]["next_token"]).json()
    assert [post["id"] for post in second["data"]] == [ids[1], ids[0]]
    assert "next_token" not in second["meta"]


def test_an_empty_list_has_no_data(x: XClient) -> None:
    assert x.posts().json() == {"meta": {"result_count": 0}}


def test_start_time_counts_in_whole_seconds(x: XClient, clock: HandClock) -> None:
    x.post("early")
    clock.forward(60.7)
    x.post("late")
    assert len(x.posts(start_time="2026-10-12T09:01:00.900Z").json()["data"]) == 1
    assert "data" not in x.posts(start_time="2026-10-12T09:01:01Z").json()
    (late,) = x.posts(start_time="2026-10-12T11:01:00+02:00", **{"tweet.fields": FIELDS}).json()["data"]
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
def test_a_query_that_no_document_describes_is_400(x: XClient, query: dict[str, str]) -> None:
    assert x.posts(**query).status_code == 400


def test_new_posts_can_be_told_to_appear_late_in_lists(world: World, x: XClient, clock: HandClock) -> None:
    world.x.list_lag_seconds = 30
    made = x.post("late").json()["data"]["id"]
    assert "data" not in x.posts().json()
    assert x.call("GET", f"/2/tweets/{made}").status_code == 200, "alone it shows at once"
    clock.forward(30)
    assert len(x.posts().json()["data"]) == 1


def test_replies_can_be_left_out(x: XClient) -> None:
    own = x.post("thread").json()["data"]["id"]
    x.post("more", reply={"in_reply_to_tweet_id": own})
    assert len(x.posts(exclude="replies,retweets").json()["data"]) == 1
    assert len(x.posts(exclude="retweets").json()["data"]) == 2


def test_a_deleted_post_is_gone_but_not_forgotten(world: World, web: TestClient, x: XClient) -> None:
    made = x.post("oops").json()["data"]["id"]
    assert XClient(web, world, "studio").call("DELETE", f"/2/tweets/{made}").status_code == 403
    assert x.call("DELETE", f"/2/tweets/{made}").json() == {"data": {"deleted": True}}
    answer = x.call("GET", f"/2/tweets/{made}")
    assert answer.status_code == 404
    assert answer.json()["type"].endswith("/resource-not-found")
    assert x.call("DELETE", f"/2/tweets/{made}").status_code == 404
    assert len(world.x.posts) == 1
    assert "data" not in x.posts().json()


def test_a_missing_post_can_be_a_200_with_errors_alone(world: World, x: XClient) -> None:
    world.x.missing_post_status = 200
    answer = x.call("GET", "/2/tweets/1")
    assert (answer.status_code, list(answer.json())) == (200, ["errors"])


def test_a_long_text_is_cut_and_whole_in_its_note(world: World, web: TestClient) -> None:
    studio = XClient(web, world, "studio")
    studio.post("word " * 100)
    (read,) = studio.posts(**{"post.fields": "text,note_post"}).json()["data"]
    assert read["text"].endswith("…")
    assert read["note_post"]["text"] == "word " * 100


def test_a_protected_account_shows_its_posts_to_itself_alone(world: World, web: TestClient, x: XClient) -> None:
    world.x.add_account("shy", protected=True)
    shy = XClient(web, world, "shy")
    made = shy.post("secret").json()["data"]["id"]
    assert shy.call("GET", f"/2/tweets/{made}").status_code == 200
    assert x.call("GET", f"/2/tweets/{made}").status_code == 404
    assert "data" not in x.call("GET", f"/2/users/{shy.account.id}/tweets").json()


def test_signs_of_markup_can_be_told_to_come_back_escaped(world: World, x: XClient) -> None:
    world.x.escapes_html = True
    assert x.post("fish & <chips>").json()["data"]["text"] == "fish &amp; &lt;chips&gt;"


def test_the_old_dialect_speaks_of_tweets(world: World, x: XClient) -> None:
    world.x.dialect = "old"
    made = x.post("old").json()["data"]
    assert made["edit_history_tweet_ids"] == [made["id"]]
    assert x.call("GET", "/2/tweets/1").json()["type"].startswith("https://api.twitter.com/2/problems/")
    metrics = x.call("GET", "/2/users/me", params={"user.fields": "public_metrics"}).json()["data"]["public_metrics"]
    assert metrics["tweet_count"] == 1
