"""The one reader of all networks' options: it guesses nothing and drops nothing in silence."""

from typing import Any

import pytest

from socialpub.providers.content import Problem
from socialpub.providers.options import MAX_KEYS, Option, OptionType, artifacts, merge, read

TABLE = (
    Option("audience", OptionType.CHOICE, values=("EVERYONE", "ONLY_ME")),
    Option("isLabelled", OptionType.BOOLEAN),
    Option("coverAtMs", OptionType.INTEGER, maximum=1000),
    Option("title", OptionType.TEXT, maximum=5),
    Option("placeId", OptionType.DIGITS, aliases=("venue",), hint="A name is not an id."),
    Option("coverId", OptionType.ARTIFACT),
    Option("labels", OptionType.CHOICES, values=("MADE_BY_AI", "SPONSORED")),
)


def only_problem(given: dict[str, Any]) -> Problem:
    options, problems = read("demo", TABLE, given)
    assert options == {}
    (problem,) = problems
    return problem


def test_both_spellings_are_read_into_one_name() -> None:
    given = {
        "is_labelled": True,
        "coverAtMs": 5,
        "venue": "42",
        "audience": "ONLY_ME",
        "title": "Hi",
        "labels": ["SPONSORED"],
    }
    options, problems = read("demo", TABLE, given)
    assert problems == []
    assert options == {
        "isLabelled": True,
        "coverAtMs": 5,
        "placeId": "42",
        "audience": "ONLY_ME",
        "title": "Hi",
        "labels": ["SPONSORED"],
    }


def test_a_misspelt_key_names_the_key_that_was_meant() -> None:
    problem = only_problem({"audiance": "ONLY_ME"})
    assert problem.path == ("providerOptions", "demo", "audiance")
    assert problem.message == "audiance is not known; did you mean audience?"


def test_a_key_like_no_other_is_answered_with_all_of_them() -> None:
    assert "audience, isLabelled, coverAtMs, title, placeId, coverId, labels" in only_problem({"zzzzzzzz": 1}).message


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"isLabelled": "true"}, 'true or false, not "true"'),
        ({"isLabelled": 1}, "true or false, not 1"),
        ({"coverAtMs": "5"}, 'whole number, not "5"'),
        ({"coverAtMs": True}, "whole number, not true"),
        ({"coverAtMs": 5.0}, "whole number, not 5.0"),
        ({"coverAtMs": -1}, "at least 0, not -1"),
        ({"coverAtMs": 1001}, "at most 1000, not 1001"),
        ({"title": ""}, "must not be empty"),
        ({"title": "abc👋👋"}, "at most 5 characters and has 7"),
        ({"title": ["a"]}, "a string, not a list"),
        ({"placeId": 42}, "string of digits, not 42. A name is not an id."),
        ({"placeId": "My place"}, 'string of digits, not "My place". A name is not an id.'),
        ({"placeId": "４２"}, "string of digits"),
        ({"audience": "only_me"}, "did you mean ONLY_ME?"),
        ({"audience": {}}, "one of EVERYONE, ONLY_ME, not an object"),
        ({"coverId": 5}, "must be the id of an artifact, not 5"),
        ({"coverId": " "}, "must be the id of an artifact"),
        ({"labels": "SPONSORED"}, 'must be a list of MADE_BY_AI, SPONSORED, not "SPONSORED"'),
        ({"labels": []}, "must not be empty"),
        ({"labels": ["SPONSORED", "SPONSERED"]}, "did you mean SPONSORED?"),
        ({"labels": [["SPONSORED"]]}, "must name only MADE_BY_AI, SPONSORED, not a list"),
        ({"labels": ["SPONSORED", "SPONSORED"]}, "must name nothing twice"),
    ],
)
def test_a_wrong_value_is_named_with_the_rule_and_what_was_found(given: dict[str, Any], says: str) -> None:
    problem = only_problem(given)
    assert problem.path == ("providerOptions", "demo", next(iter(given)))
    assert says in problem.message


def test_the_same_option_in_two_spellings_is_refused_rather_than_chosen() -> None:
    options, problems = read("demo", TABLE, {"placeId": "1", "place_id": "2"})
    assert options == {"placeId": "1"}
    assert [problem.path[-1] for problem in problems] == ["place_id"]


def test_the_artifacts_that_options_name_are_told_with_the_key_as_given() -> None:
    given = {"title": "a1", "cover_id": "a1", "coverId": 5, "unknown": "a1"}
    assert artifacts(TABLE, given) == [("cover_id", "a1")]


def test_null_takes_a_stored_default_back() -> None:
    merged = merge(TABLE, {"title": "Old", "audience": "EVERYONE"}, {"title": None})
    assert read("demo", TABLE, merged) == ({"audience": "EVERYONE"}, [])


def test_a_posts_own_key_wins_in_whatever_spelling() -> None:
    merged = merge(TABLE, {"place_id": "1", "isLabelled": True, "unknown": 1}, {"placeId": "2"})
    assert merged == {"placeId": "2", "isLabelled": True, "unknown": 1}


def test_a_hundred_thousand_keys_are_one_problem() -> None:
    problem = only_problem({f"key{number}": 1 for number in range(100_000)})
    assert problem.path == ("providerOptions", "demo")
    assert str(MAX_KEYS) in problem.message
