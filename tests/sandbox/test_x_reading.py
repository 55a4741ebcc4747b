"""Reading posts back from the sandbox's X."""

from typing import Literal

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
        {"expansions": "parents"},
        {"tweet.fields": "text", "expansions": "referenced_posts"},
        {"post.fields": "text", "expansions": "referenced_tweets.id"},
    ],
)
def test_a_query_that_no_document_describes_is_400(x: XClient, query: dict[str, str]) -> None:
    assert x.posts(**query).status_code == 400


def test_new_posts_can_be_told_to_appear_late_in_lists(world: World, x: XClient, clock: HandClock) -> None:
    world.x.list_lag_seconds = 30
    x.post("late")
    assert "data" not in x.posts().json()
    clock.forward(30)
    assert len(x.posts().json()["data"]) == 1


def test_replies_can_be_left_out(x: XClient) -> None:
    own = x.post("thread").json()["data"]["id"]
    x.post("more", reply={"in_reply_to_tweet_id": own})
    assert len(x.posts(exclude="replies,retweets").json()["data"]) == 1
    assert len(x.posts(exclude="retweets").json()["data"]) == 2


def test_a_long_text_is_cut_and_whole_in_its_note(world: World, web: TestClient) -> None:
    studio = XClient(web, world, "studio")
    studio.post("word " * 100)
    (read,) = studio.posts(**{"post.fields": "text,note_post"}).json()["data"]
    assert read["text"].endswith("…")
    assert read["note_post"]["text"] == "word " * 100


def test_signs_of_markup_can_be_told_to_come_back_escaped(world: World, x: XClient) -> None:
    world.x.escapes_html = True
    assert x.post("fish & <chips>").json()["data"]["text"] == "fish &amp; &lt;chips&gt;"


def test_what_cannot_be_seen_can_be_told_to_be_gone(world: World, x: XClient) -> None:
    world.x.strips_invisible = True
    made = x.post("a\u200bb \u200fc\nexample.com").json()["data"]["id"]
    (read,) = x.posts(**{"tweet.fields": FIELDS}).json()["data"]
    (url,) = read["entities"]["urls"]
    assert read["text"] == f"ab c\n{url['url']}"
    assert read["text"][url["start"] : url["end"]] == url["url"]
    assert world.x.find_post(made).text == "a\u200bb \u200fc\nexample.com", "as it was sent"  # type: ignore[union-attr]


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


def test_members_can_be_told_to_be_left_out(world: World, x: XClient) -> None:
    x.post("a", media={"media_ids": [x.upload()]})
    world.x.leaves_out = ["attachments", "entities"]
    (read,) = x.posts(**{"tweet.fields": f"{FIELDS},attachments"}).json()["data"]
    assert set(read) == {"id", "text", "edit_history_post_ids", "created_at"}


@pytest.mark.parametrize(
    ("dialect", "taken", "refused"),
    [
        ("new", {"post.fields": "note_post", "expansions": "referenced_posts"}, {"tweet.fields": "text"}),
        ("new", {"expansions": "referenced_posts"}, {"expansions": "referenced_tweets.id"}),
        ("old", {"tweet.fields": "note_tweet,referenced_tweets"}, {"post.fields": "text"}),
        ("old", {"expansions": "referenced_tweets.id"}, {"expansions": "referenced_posts"}),
    ],
)
def test_the_names_of_the_other_dialect_can_be_told_to_be_refused(
    world: World, x: XClient, dialect: Literal["new", "old"], taken: dict[str, str], refused: dict[str, str]
) -> None:
    world.x.dialect = dialect
    assert x.posts(**taken).status_code == x.posts(**refused).status_code == 200
    world.x.one_dialect = True
    assert x.posts(**taken).status_code == 200
    answer = x.posts(**refused)
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/2/problems/invalid-request")
    (name,) = refused
    assert name in answer.json()["errors"][0]["message"]
    assert answer.json()["errors"][0]["parameters"] == {name: [refused[name]]}


def test_the_old_dialect_speaks_of_tweets(world: World, x: XClient) -> None:
    world.x.dialect = "old"
    made = x.post("old").json()["data"]
    assert made["edit_history_tweet_ids"] == [made["id"]]
    assert x.post("old", shoe=1).json()["type"].startswith("https://api.twitter.com/2/problems/")
    metrics = x.call("GET", "/2/users/me", params={"user.fields": "public_metrics"}).json()["data"]["public_metrics"]
    assert metrics["tweet_count"] == 1
