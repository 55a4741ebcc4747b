"""X's list is asked in the names that were taken last, and once in the others when they are refused."""

from datetime import timedelta
from typing import Any

import pytest

from socialpub.providers.base import Readback
from socialpub.providers.errors import AppRefused, NoAnswer, Rejected, Throttled
from socialpub.providers.responses import HttpResponse
from socialpub.providers.x import X
from tests.unit.providers.x.script import NOW, SECTION, Script, answer, invalid, job, problem
from tests.unit.providers.x.test_find_post import shown, timeline

UNKNOWN_NAME = invalid("The query parameter [post.fields] is not one of [id,max_results,tweet.fields]")
FOUND = timeline(shown("5", "Hello"))


def look(adapter: X, script: Script, text: str = "Hello", **options: Any) -> Any:
    return adapter.recover(job(script, text, options=options, since=lambda: NOW - timedelta(minutes=1)))


def asked_in(script: Script) -> list[str]:
    return ["new" if "post.fields" in call.params else "old" for call in script.calls]


def test_the_names_that_were_taken_are_kept_for_the_next_look() -> None:
    adapter = X(SECTION)
    first, second, third = Script(UNKNOWN_NAME, FOUND), Script(FOUND), Script(invalid("[tweet.fields]"), FOUND)
    for script in (first, second, third):
        outcome = look(adapter, script)
        assert isinstance(outcome, Readback)
        assert [post.post_id for post in outcome.candidates] == ["5"]
    assert [asked_in(script) for script in (first, second, third)] == [["new", "old"], ["old"], ["old", "new"]]
    assert first.calls[1].params["start_time"] == first.calls[0].params["start_time"]


def test_a_question_refused_in_both_is_refused_and_nothing_is_learnt() -> None:
    adapter = X(SECTION)
    script = Script(UNKNOWN_NAME, invalid("No"))
    with pytest.raises(Rejected) as refusal:
        look(adapter, script)
    assert "post.fields" in refusal.value.message
    again = Script(FOUND)
    look(adapter, again)
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
def test_the_second_question_is_answered_as_any_other(second: Any, kind: type[Exception]) -> None:
    adapter, following = X(SECTION), Script(FOUND)
    with pytest.raises(kind):
        look(adapter, Script(UNKNOWN_NAME, second))
    look(adapter, following)
    assert asked_in(following) == ["new"], "only an answer tells"


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
def test_only_a_refusal_of_the_question_itself_leads_to_the_other_names(
    first: HttpResponse, kind: type[Exception]
) -> None:
    script = Script(first)
    with pytest.raises(kind):
        look(X(SECTION), script)
    assert len(script.calls) == 1


def test_names_that_change_in_the_middle_of_a_list_are_followed_once() -> None:
    more = timeline(shown("9", "Other"), next_token="more")
    script = Script(more, UNKNOWN_NAME, FOUND)
    assert isinstance(look(X(SECTION), script), Readback)
    assert asked_in(script) == ["new", "new", "old"]
    assert script.calls[2].params["pagination_token"] == "more"
    with pytest.raises(Rejected):
        look(X(SECTION), Script(UNKNOWN_NAME, more, UNKNOWN_NAME))


@pytest.mark.parametrize(
    ("options", "expansions"),
    [({}, None), ({"inReplyToPostId": "1"}, "referenced_posts"), ({"quotePostId": "1"}, "referenced_posts")],
)
def test_what_a_post_refers_to_is_asked_where_ours_refers_to_something(options: Any, expansions: str | None) -> None:
    script = Script(UNKNOWN_NAME, timeline())
    look(X(SECTION), script, **options)
    assert script.calls[0].params.get("expansions") == expansions
    assert "expansions" not in script.calls[1].params
    assert "referenced_tweets" in script.calls[1].params["tweet.fields"], "the old names have a field for it"
