"""Read-backs of an account on X: our post is found, and other posts are ignored."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.providers.base import CannotTell, MediaFile, Readback
from socialpub.providers.responses import AppRefused, AuthExpired, HttpResponse, NoAnswer, Rejected, Throttled
from socialpub.providers.x import X
from tests.unit.providers.x.script import NOW, SECTION, Script, answer, invalid, job, problem


def shown(
    post_id: str, text: str, *urls: dict[str, Any], media: int = 0, key: str = "3", **more: Any
) -> dict[str, Any]:
    post: dict[str, Any] = {"id": post_id, "text": text, "created_at": "2026-11-21T12:00:01.000Z", **more}
    if urls:
        post["entities"] = {"urls": list(urls)}
    if media:
        post["attachments"] = {"media_keys": [f"{key}_{n}" for n in range(media)]}
    return post


def timeline(*posts: dict[str, Any], next_token: str | None = None) -> HttpResponse:
    meta: dict[str, Any] = {"result_count": len(posts)}
    if next_token:
        meta["next_token"] = next_token
    return answer(200, {"data": list(posts), "meta": meta} if posts else {"meta": meta})


SINCE = NOW - timedelta(minutes=3)


def read_back(
    script: Script, text: str, *media: MediaFile, adapter: X | None = None, **options: Any
) -> Readback | CannotTell:
    asked = job(script, text, *media, options=options, since=lambda: SINCE)
    return (adapter or X(SECTION)).recover(asked)


def found(text: str, *posts: dict[str, Any], media: tuple[MediaFile, ...] = (), **options: Any) -> list[str | None]:
    outcome = read_back(Script(timeline(*posts)), text, *media, **options)
    assert isinstance(outcome, Readback)
    return [post.post_id for post in outcome.candidates]


def test_the_read_back_asks_for_all_posts_since_the_commit():
    script = Script(timeline())
    assert read_back(script, "Hello") == Readback(())
    assert script.asked == ["GET /2/users/2244990001/tweets"]
    assert script.calls[0].params == {
        "max_results": "100",
        "start_time": "2026-11-21T11:57:00Z",
        "exclude": "retweets",
        "post.fields": "attachments,conversation_id,created_at,entities,note_post,text",
    }


@pytest.mark.parametrize(
    ("created_at", "ours"),
    [
        ("2026-11-21T11:56:59.000Z", False),
        ("2026-11-21T11:57:00.000Z", True),
        ("2026-11-21T12:57:00+01:00", True),
        ("2026-11-21T11:56:59", False),
        (None, True),
        ("yesterday", True),
        (7, True),
    ],
)
def test_a_post_dated_before_the_commit_is_not_ours(created_at, ours):
    assert found("Hi", shown("5", "Hi", created_at=created_at)) == (["5"] if ours else [])


def test_the_date_of_the_response_narrows_the_window():
    known = [NOW - timedelta(days=1), SINCE]
    script = Script(timeline(shown("5", "Hi", created_at="2026-11-20T18:00:00.000Z"), shown("6", "Hi")))
    outcome = X(SECTION).recover(job(script, "Hi", since=lambda: known.pop(0) if len(known) > 1 else known[0]))
    assert script.calls[0].params["start_time"] == "2026-11-20T12:00:00Z"
    assert isinstance(outcome, Readback)
    assert [post.post_id for post in outcome.candidates] == ["6"]


def test_a_post_is_found_with_its_address():
    outcome = read_back(Script(timeline(shown("9", "Other"), shown("5", "Hello"))), "Hello")
    assert isinstance(outcome, Readback)
    (post,) = outcome.candidates
    assert (post.post_id, post.url) == ("5", "https://x.com/acme/status/5")


def test_several_candidates_are_returned_oldest_first():
    assert found("Hi", shown("10", "Hi"), shown("9", "Hi"), shown("8", "Hi there")) == ["9", "10"]


def test_the_whole_list_is_read():
    script = Script(timeline(shown("9", "Other"), next_token="more"), timeline(shown("5", "Hello")))
    outcome = read_back(script, "Hello")
    assert isinstance(outcome, Readback)
    assert [post.post_id for post in outcome.candidates] == ["5"]
    assert script.calls[1].params["pagination_token"] == "more"


def test_reading_stops_after_a_page_older_than_the_commit():
    old = {"created_at": "2026-11-21T11:00:00.000Z"}
    script = Script(
        timeline(next_token="of reposts alone"),
        timeline(shown("9", "Hello"), shown("8", "Hello", **old), next_token="more"),
        timeline(shown("7", "Hello", **old), next_token="still more"),
    )
    outcome = read_back(script, "Hello")
    assert isinstance(outcome, Readback)
    assert [post.post_id for post in outcome.candidates] == ["9"]


def test_a_list_without_end_cannot_decide():
    outcome = read_back(Script(*[timeline(shown("9", "Other"), next_token="more")] * 10), "Hello")
    assert isinstance(outcome, CannotTell)
    assert "https://x.com/acme" in outcome.hint


def test_a_partial_success_is_a_read_back():
    partly = answer(200, {"data": [shown("5", "Hello")], "errors": [{"title": "Not Found"}], "meta": {}})
    assert isinstance(read_back(Script(partly), "Hello"), Readback)


NOT_ENROLLED = {
    "client_id": "1",
    "detail": "When authenticating requests to the Twitter API v2 endpoints, you must use keys and tokens from a "
    "Twitter developer App that is attached to a Project.",
    "registration_url": "https://developer.twitter.com/",
    "title": "Client Forbidden",
    "required_enrollment": "Standard Basic",
    "reason": "client-not-enrolled",
    "type": "https://api.twitter.com/2/problems/client-forbidden",
}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (answer(200, b"<html>"), NoAnswer),
        (answer(200, {}), NoAnswer),
        (answer(200, []), NoAnswer),
        (answer(200, {"errors": [{"title": "Not Found Error"}]}), NoAnswer),
        (answer(200, {"meta": {"result_count": 0}, "errors": [{"title": "Not Found Error"}]}), NoAnswer),
        (answer(200, {"data": [], "meta": {"result_count": 3}}), NoAnswer),
        (answer(200, {"data": "none", "meta": {"result_count": 0}}), NoAnswer),
        (answer(503), NoAnswer),
        (NoAnswer("cut"), NoAnswer),
        (problem(401, "Unauthorized"), AuthExpired),
        (problem(429, "Too Many Requests"), Throttled),
        (problem(403, "Forbidden"), Rejected),
        (problem(404, "Not Found"), Rejected),
        (problem(429, "Monthly cap", "https://api.x.com/2/problems/usage-capped"), AppRefused),
        (answer(403, NOT_ENROLLED), AppRefused),
        (answer(403, {"errors": [{"code": 453, "message": "You currently have access to a subset"}]}), AppRefused),
    ],
)
def test_a_read_back_without_a_response_is_an_error(reply, kind):
    with pytest.raises(kind):
        read_back(Script(reply), "Hello")


UNKNOWN_NAME = invalid("The query parameter [post.fields] is not one of [id,max_results,tweet.fields]")
FOUND = timeline(shown("5", "Hello"))


def asked_in(script: Script) -> list[str]:
    return ["new" if "post.fields" in call.params else "old" for call in script.calls]


def test_the_accepted_dialect_is_used_for_the_next_read_back():
    adapter = X(SECTION)
    first, second, third = Script(UNKNOWN_NAME, FOUND), Script(FOUND), Script(invalid("[tweet.fields]"), FOUND)
    for script in (first, second, third):
        outcome = read_back(script, "Hello", adapter=adapter)
        assert isinstance(outcome, Readback)
        assert [post.post_id for post in outcome.candidates] == ["5"]
    assert [asked_in(script) for script in (first, second, third)] == [["new", "old"], ["old"], ["old", "new"]]
    assert first.calls[1].params["start_time"] == first.calls[0].params["start_time"]


def test_a_refusal_in_both_dialects_is_a_refusal_and_changes_nothing():
    adapter = X(SECTION)
    script = Script(UNKNOWN_NAME, invalid("No"))
    with pytest.raises(Rejected) as refusal:
        read_back(script, "Hello", adapter=adapter)
    assert "post.fields" in refusal.value.message
    again = Script(FOUND)
    read_back(again, "Hello", adapter=adapter)
    assert asked_in(again) == ["new"]


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        (answer(503), NoAnswer),
        (answer(200, b"<html>"), NoAnswer),
        (problem(429, "Too Many Requests"), Throttled),
        (problem(402, "No credits"), AppRefused),
        (problem(403, "Forbidden"), Rejected),
        (NoAnswer("cut"), NoAnswer),
    ],
)
def test_an_error_of_the_second_request_is_raised(second, kind):
    adapter, following = X(SECTION), Script(FOUND)
    with pytest.raises(kind):
        read_back(Script(UNKNOWN_NAME, second), "Hello", adapter=adapter)
    read_back(following, "Hello", adapter=adapter)
    assert asked_in(following) == ["new"], "only a response decides"


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (answer(400, b"<html>Bad Request</html>"), NoAnswer),
        (answer(400), NoAnswer),
        (answer(400, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}), Throttled),
        (problem(403, "Forbidden"), Rejected),
        (problem(404, "Not Found"), Rejected),
    ],
)
def test_only_a_refusal_of_the_question_itself_leads_to_the_other_names(first, kind):
    script = Script(first)
    with pytest.raises(kind):
        read_back(script, "Hello")
    assert len(script.calls) == 1


def test_names_that_change_in_the_middle_of_a_list_are_followed_once():
    more = timeline(shown("9", "Other"), next_token="more")
    script = Script(more, UNKNOWN_NAME, FOUND)
    assert isinstance(read_back(script, "Hello"), Readback)
    assert asked_in(script) == ["new", "new", "old"]
    assert script.calls[2].params["pagination_token"] == "more"
    with pytest.raises(Rejected):
        read_back(Script(UNKNOWN_NAME, more, UNKNOWN_NAME), "Hello")


@pytest.mark.parametrize(
    ("options", "expansions"),
    [({}, None), ({"inReplyToPostId": "1"}, "referenced_posts"), ({"quotePostId": "1"}, "referenced_posts")],
)
def test_references_are_requested_only_for_replies_and_quotes(options, expansions):
    script = Script(UNKNOWN_NAME, timeline())
    read_back(script, "Hello", **options)
    assert script.calls[0].params.get("expansions") == expansions
    assert "expansions" not in script.calls[1].params
    assert "referenced_tweets" in script.calls[1].params["tweet.fields"], "the old names have a field for it"
