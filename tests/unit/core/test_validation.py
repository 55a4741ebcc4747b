"""One wording for what is wrong with data, wherever it came from, and never the data itself."""

from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from socialpub.core import validation


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Item(Strict):
    alt_text: str = ""


def check_name(value: Any) -> Any:
    if value == "taken":
        raise validation.wrong("is {taken}")
    if value == "pair":
        raise validation.wrong_inside([((1,), "is listed twice")])
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
    with pytest.raises(ValidationError) as caught:
        Order.model_validate({"required": {}, **given})
    found = validation.field_errors(caught.value, validation.nearest_field(Order))
    assert len({one.path for one in found}) == len(found)
    return {one.path: one.message for one in found}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("title", 5, "must be a string, not a number"),
        ("title", None, "must be a string, not null"),
        ("title", "", "must not be empty"),
        ("title", "abcdef", "may have at most 5 characters"),
        ("count", "5", "must be a whole number, not a string"),
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
def test_a_wrong_value_is_answered_with_what_it_must_be(field: str, value: Any, message: str) -> None:
    assert errors_in(**{field: value}) == {(field,): message}


def test_a_missing_field_is_required() -> None:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate({})
    (one,) = validation.field_errors(caught.value, validation.nearest_field(Order))
    assert (one.path, one.message) == (("required",), "is required")


def test_everything_is_told_at_once_each_with_its_path() -> None:
    assert errors_in(count=0, name="pair", items=[{}, {"alt_text": 1}]) == {
        ("count",): "must be at least 1",
        ("name", 1): "is listed twice",
        ("items", 1, "alt_text"): "must be a string, not a number",
    }


def test_an_unknown_name_is_answered_with_the_nearest_one_beside_it() -> None:
    found = errors_in(titel="a", items=[{"AltText": "a"}], zzzzz=1)
    assert found == {
        ("titel",): "is not known; did you mean title?",
        ("items", 0, "AltText"): "is not known; did you mean alt_text?",
        ("zzzzz",): "is not known; leave it out",
    }


def test_of_a_hundred_thousand_unknown_names_only_the_first_get_a_suggestion() -> None:
    found = errors_in(**{f"titl{number}": 1 for number in range(100_000)})
    assert len(found) == 100_000
    assert sum("did you mean" in message for message in found.values()) == validation.MAX_SUGGESTIONS


def test_no_message_holds_what_was_given() -> None:
    found = errors_in(title="hush-hush", count="hush", loud="hush", colour="hush", items="hush", required="hush")
    assert len(found) == 6
    assert "hush" not in "".join(found.values())


def test_without_a_near_name_the_known_ones_can_be_listed() -> None:
    assert validation.unknown(None, ["a", "b"]) == "is not known; known are a, b"
