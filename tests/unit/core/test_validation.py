"""Messages about invalid data."""

from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from socialpub.core import validation
from socialpub.core.validation import AlsoCalled, Keys, did_you_mean, nearest


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Item(Strict):
    alt_text: str = ""


def check_name(value: Any) -> Any:
    if value == "taken":
        raise validation.field_error("is {taken}")
    if value == "pair":
        raise validation.inner_errors([((1,), "is listed twice")], 1)
    if value == "odd":
        raise ValueError("is odd")
    return value


class Order(Strict):
    title: Annotated[str, Field(min_length=1, max_length=5)] = "a"
    count: Annotated[int, Field(ge=1, le=9)] = 1
    wait: Annotated[timedelta, Field(gt=timedelta(0))] = timedelta(1)
    loud: bool = True
    colour: Literal["red", "blue"] = "red"
    name: Annotated[str, BeforeValidator(check_name)] = ""
    items: Annotated[list[Item], Field(max_length=2)] = []  # pydantic copies it
    required: Item


def errors_in(**given: Any) -> dict[tuple[str | int, ...], str]:
    _, mistakes = validation.parse(Order, {"required": {}, **given})
    assert mistakes.total == len(mistakes.errors)
    return {one.path: one.message for one in mistakes.errors}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("title", 5, "must be a string, not a number"),
        ("title", None, "must be a string, not null"),
        ("title", "", "must not be empty"),
        ("title", "abcdef", "may have at most 5 characters"),
        ("count", "5", "must be a whole number, not a string"),
        ("count", 5.0, "must be a whole number, not a decimal number"),
        ("count", True, "must be a whole number, not a boolean"),
        ("count", 0, "must be at least 1"),
        ("count", 10, "must be at most 9"),
        ("wait", timedelta(0), "must be greater than 0 seconds"),
        ("loud", 1, "must be true or false, not a number"),
        ("colour", "green", "must be one of 'red' or 'blue'"),
        ("name", "taken", "is {taken}"),
        ("name", "odd", "is odd"),
        ("items", {}, "must be an array, not an object"),
        ("items", [{}, {}, {}], "may have at most 2 items"),
        ("required", [], "must be an object, not an array"),
    ],
)
def test_a_wrong_value_is_answered_with_what_it_must_be(field, value, message):
    assert errors_in(**{field: value}) == {(field,): message}


def test_a_missing_field_is_required():
    order, mistakes = validation.parse(Order, {})
    assert order is None
    assert [(one.path, one.message) for one in mistakes.errors] == [(("required",), "is required")]


def test_everything_is_reported_at_once_each_with_its_path():
    assert errors_in(count=0, name="pair", items=[{}, {"alt_text": 1}]) == {
        ("count",): "must be at least 1",
        ("name", 1): "is listed twice",
        ("items", 1, "alt_text"): "must be a string, not a number",
    }


def test_an_unknown_name_is_answered_with_the_nearest_one_beside_it():
    found = errors_in(titel="a", items=[{"AltText": "a"}], zzzzz=1)
    assert found == {
        ("titel",): "is not known; did you mean title?",
        ("items", 0, "AltText"): "is not known; did you mean alt_text?",
        ("zzzzz",): "is not known; known names are title, count, wait, loud, colour, name, items, required",
    }


def test_a_known_name_in_the_wrong_place_gets_its_right_place():
    found = errors_in(alt_text="a", required={"count": 1}, AltText="a", alt_txet="a", items=[{"title": "a"}])
    assert found == {
        ("alt_text",): "belongs in items[].alt_text or required.alt_text",
        ("required", "count"): "belongs in count",
        ("AltText",): "is not known; did you mean items[].alt_text or required.alt_text?",
        ("alt_txet",): "is not known; did you mean items[].alt_text?",
        ("items", 0, "title"): "belongs in title",
    }


def test_a_name_that_people_try_and_the_keys_of_a_free_form_object_lead_to_their_place():
    class Text(Strict):
        words: Annotated[str, AlsoCalled(("body", "caption"))] = ""

    class Letter(Strict):
        text: Text = Text()
        extras: Annotated[dict[str, Any], Keys(("stamp",))] = {}  # pydantic copies it

    _, mistakes = validation.parse(Letter, {"caption": "Hi", "Body": "Hi", "stamp": "red", "extras": {"any": 1}})
    assert {one.path[0]: one.message for one in mistakes.errors} == {
        "caption": "is not known; did you mean text.words?",
        "Body": "is not known; did you mean text.words?",
        "stamp": "belongs in extras.stamp",
    }


def test_an_error_is_one_sentence_with_the_field():
    def message(**given: Any) -> str:
        return validation.parse(Order, {"required": {}, **given})[1].refusal().detail

    assert message(count=0) == "count must be at least 1."
    assert message(items=[{}, {"alt_text": 1}]) == "items[1].alt_text must be a string, not a number."
    assert message(count=0, loud=1) == "count must be at least 1. There is 1 more error."
    assert validation.parse(Order, [])[1].refusal("The order").detail == "The order must be an object, not an array."


def test_no_message_contains_the_given_value():
    found = errors_in(title="hush-hush", count="hush", loud="hush", colour="hush", items="hush", required="hush")
    assert len(found) == 6
    assert "hush" not in "".join(found.values())


def test_without_a_near_name_the_known_ones_can_be_listed():
    assert did_you_mean(None, ["a", "b"]) == "is not known; known names are a, b"


# --- the nearest name ------------------------------------------------------------------------------------------------


KEYS = ("accessToken", "refreshToken", "expiresAt")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("acessToken", "accessToken"),
        ("access_token", "accessToken"),
        ("REFRESHTOKEN", "refreshToken"),
        ("expires_in", "expiresAt"),
        ("zzzz", None),
        ("", None),
    ],
)
def test_the_nearest_name_ignores_case_and_underscores(given, meant):
    assert nearest(given, KEYS) == meant
