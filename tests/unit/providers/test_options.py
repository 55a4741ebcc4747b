"""The reader of all options neither guesses nor ignores anything."""

from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from socialpub.core.errors import FieldError
from socialpub.providers.options import (
    MAX_BYTES,
    Option,
    OptionType,
    is_surely_too_large,
    is_too_large,
    list_artifacts,
    merge_options,
    read_options,
    read_value,
)

TABLE = (
    Option("audience", OptionType.CHOICE, values=("EVERYONE", "ONLY_ME")),
    Option("isLabelled", OptionType.BOOLEAN),
    Option("coverAtMs", OptionType.INTEGER, maximum=1000),
    Option("title", OptionType.TEXT, maximum=5),
    Option("placeId", OptionType.DIGITS, aliases=("venue",), hint="A name is not an id."),
    Option("coverId", OptionType.ARTIFACT),
    Option("languages", OptionType.LANGUAGES, maximum=2),
    Option("labels", OptionType.CHOICES, values=("MADE_BY_AI", "SPONSORED")),
)


def only_problem(given: dict[str, Any]) -> FieldError:
    options, problems = read_options("demo", TABLE, given)
    assert options == {}
    (problem,) = problems
    return problem


def test_both_spellings_are_read_into_one_name():
    given = {
        "is_labelled": True,
        "coverAtMs": 5,
        "venue": "42",
        "audience": "ONLY_ME",
        "title": "Hi",
        "labels": ["SPONSORED"],
        "languages": ["de", "zh-Hant-TW"],
    }
    options, problems = read_options("demo", TABLE, given)
    assert problems == []
    assert options == {
        "isLabelled": True,
        "coverAtMs": 5,
        "placeId": "42",
        "audience": "ONLY_ME",
        "title": "Hi",
        "labels": ["SPONSORED"],
        "languages": ["de", "zh-Hant-TW"],
    }


def test_the_error_of_a_misspelled_key_names_the_nearest_key():
    problem = only_problem({"audiance": "ONLY_ME"})
    assert problem.path == ("providerOptions", "demo", "audiance")
    assert problem.message == "audiance is not known; did you mean audience?"


def test_the_error_of_an_unknown_key_names_all_keys():
    assert (
        "audience, isLabelled, coverAtMs, title, placeId, coverId, languages, labels"
        in only_problem({"zzzzzzzz": 1}).message
    )


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
        ({"title": "abc👋👋"}, "at most 5 characters, but has 7"),
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
        ({"labels": [["SPONSORED"]]}, "must contain only MADE_BY_AI, SPONSORED, not a list"),
        ({"labels": ["SPONSORED", "SPONSORED"]}, "must not contain a value twice"),
        ({"languages": "de"}, 'must be a list of language tags, not "de"'),
        ({"languages": []}, "must not be empty"),
        ({"languages": ["de", "en", "fr"]}, "at most 2 language tags, but has 3"),
        ({"languages": ["english language"]}, 'such as "en" or "pt-BR", not "english language"'),
        ({"languages": ["de_DE"]}, 'not "de_DE"'),
        ({"languages": [5]}, "not 5"),
        ({"languages": ["pt-BR", "PT-br"]}, "must not contain a value twice"),
    ],
)
def test_the_error_of_a_wrong_value_names_the_rule_and_the_value(given, says):
    problem = only_problem(given)
    assert problem.path == ("providerOptions", "demo", next(iter(given)))
    assert says in problem.message


def test_the_same_option_in_two_spellings_is_refused_rather_than_chosen():
    options, problems = read_options("demo", TABLE, {"placeId": "1", "place_id": "2"})
    assert options == {"placeId": "1"}
    assert [problem.path[-1] for problem in problems] == ["place_id"]


def test_artifacts_are_listed_with_the_key_as_given():
    given = {"title": "a1", "cover_id": "a1", "coverId": 5, "unknown": "a1"}
    assert list_artifacts(TABLE, given) == [("cover_id", "a1")]


def test_null_cancels_a_stored_default():
    merged = merge_options(TABLE, {"title": "Old", "audience": "EVERYONE"}, {"title": None})
    assert read_options("demo", TABLE, merged) == ({"audience": "EVERYONE"}, [])


def test_a_posts_own_key_wins_in_any_spelling():
    merged = merge_options(TABLE, {"place_id": "1", "isLabelled": True, "unknown": 1}, {"placeId": "2"})
    assert merged == {"placeId": "2", "isLabelled": True, "unknown": 1}


@pytest.mark.parametrize("typed", ["de, pt-BR", '["de", "pt-BR"]'])
def test_languages_are_typed_with_commas_or_as_json(typed):
    assert read_value(TABLE, "languages", typed) == ["de", "pt-BR"]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@drawn(st.dictionaries(st.text(), VALUES), st.integers(0, MAX_BYTES // 8))
def test_surely_too_large_options_are_too_large(options, times):
    for filled in (options, {"a": [options] * times}, {"a": "\x00" * times, **options}):
        assert is_too_large(filled) or not is_surely_too_large(filled)
