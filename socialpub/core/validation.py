"""What is wrong with data that somebody gave: one wording for requests, the configuration and credentials.

A message is the end of a sentence that begins with the name of the field: "must be a string, not a number". It never
holds a value that was given, which may be a secret.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from socialpub.core import known_names
from socialpub.core.errors import MOST_ERRORS, FieldError, InvalidRequest
from socialpub.core.spelling import unknown

M = TypeVar("M", bound=BaseModel)
Path = tuple[str | int, ...]

MAX_SUGGESTIONS = 20
"""Looking for the nearest name costs time, and a request may hold a hundred thousand unknown ones."""

_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
}
_MESSAGES = {
    "missing": "is required",
    "string_too_short": "must not be empty",
    "string_too_long": "may have at most {max_length} characters",
    "too_short": "must not be empty",
    "too_long": "may have at most {max_length} items",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "byte_size": "must be a number of bytes or a size such as 100MB",
    "literal_error": "must be one of {expected}",
}
_WRONG_INSIDE = "wrong_inside"


def wrong(message: str) -> PydanticCustomError:
    """For a validator to raise: this field is wrong, and this is what to change."""
    return PydanticCustomError("wrong", "{message}", {"message": message})


def wrong_inside(errors: Sequence[tuple[Path, str]], total: int) -> PydanticCustomError:
    """For a validator to raise: something inside of this field is wrong, at each of these paths below it, and `total`
    things in all."""
    return PydanticCustomError(_WRONG_INSIDE, "wrong inside", {"errors": list(errors), "total": total})


class Mistakes:
    """What is wrong with data: the first hundred failing fields, each once, and how many there are in all.

    Whatever is looked at may hold a hundred thousand of them, so what is beyond is only counted.
    """

    __slots__ = ("_found", "total")

    def __init__(self, errors: Iterable[FieldError] = (), total: int = 0) -> None:
        self._found: dict[Path, FieldError] = {}
        self.total = 0
        for error in errors:
            self.add(error)
        self.total = max(self.total, total)

    def __bool__(self) -> bool:
        return self.total > 0

    @property
    def errors(self) -> list[FieldError]:
        return list(self._found.values())

    @property
    def room(self) -> int:
        """How many more errors are named; the others are only counted."""
        return MOST_ERRORS - len(self._found)

    @property
    def full(self) -> bool:
        """Whether more is only counted."""
        return self.room <= 0

    def add(self, error: FieldError) -> None:
        """One more failing field; of one that is known already the first error counts."""
        if error.path in self._found:
            return
        self.total += 1
        if not self.full:
            self._found[error.path] = error

    def merge(self, errors: Sequence[FieldError], total: int) -> None:
        """These as well, out of `total`."""
        for error in errors:
            self.add(error)
        self.total += total - len(errors)

    def refusal(self, whole: str = "The body") -> InvalidRequest:
        """All of it as one failure. `whole` is what an error without a path is about."""
        return InvalidRequest.of(self.errors, self.total, whole=whole)


def read(model: type[M], value: Any) -> tuple[M | None, Mistakes]:
    """The data as this model, or None; and everything that is wrong with it, unknown names first.

    It takes no longer than reading the data does, however much is wrong.
    """
    mistakes = Mistakes()
    try:
        return model.model_validate(value), mistakes
    except ValidationError:
        pass  # which it only knows by the names of the fields: all of it is told anew
    known = _known_part(model, model, value, (), "", mistakes)
    try:
        return model.model_validate(known), mistakes
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = detail["loc"]
            if detail["type"] == _WRONG_INSIDE:
                inside = detail["ctx"]["errors"]
                mistakes.merge([FieldError((*path, *below), text) for below, text in inside], detail["ctx"]["total"])
            else:
                mistakes.add(FieldError(path, message(detail)))
    return None, mistakes


def _known_part(
    root: type[BaseModel], model: type[BaseModel], value: Any, path: Path, place: str, mistakes: Mistakes
) -> Any:
    """The value without the names that its model does not know; each of them is a mistake."""
    if not isinstance(value, dict):
        return value
    fields = known_names.fields_of(model)
    found: dict[str, Any] = {}
    for name, inner in fields.items():
        if name not in value:
            continue
        item = value[name]
        if inner is not None:
            below = f"{place}.{name}".lstrip(".")
            if not inner.listed:
                item = _known_part(root, inner.model, item, (*path, name), below, mistakes)
            elif isinstance(item, list):
                # No list of objects may be longer than that: what follows is not looked at.
                some = [
                    _known_part(root, inner.model, one, (*path, name, at), f"{below}[]", mistakes)
                    for at, one in enumerate(item[:MOST_ERRORS])
                ]
                item = [*some, *item[MOST_ERRORS:]]
        found[name] = item
    if len(found) < len(value):
        _add_unknown(root, value, fields, path, place, mistakes, len(value) - len(found))
    return found


def _add_unknown(
    root: type[BaseModel],
    value: Mapping[str, Any],
    fields: Mapping[str, Any],
    path: Path,
    place: str,
    mistakes: Mistakes,
    total: int,
) -> None:
    """Name the unknown names while there is room for them, and count all `total` of them."""
    named = list(islice((name for name in value if name not in fields), mistakes.room))
    for name in named:
        text = known_names.advice(root, place, name) if mistakes.total < MAX_SUGGESTIONS else unknown(None, fields)
        mistakes.add(FieldError((*path, name), text))
    mistakes.total += total - len(named)


def message(detail: ErrorDetails) -> str:
    """What one of pydantic's errors says about a known field."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _TYPES:
        return must_be(_TYPES[kind], detail["input"])
    if kind in _MESSAGES:
        return _MESSAGES[kind].format_map(context)
    if kind == "value_error":
        return str(context["error"])
    return detail["msg"].replace("Input should be", "must be")


def list_mistakes(start: str, sentences: Iterable[str]) -> str:
    """All of them below one line: `start` ("The credentials have") and how many they are."""
    lines = list(dict.fromkeys(sentences))
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    return f"{start} {count}:\n" + "\n".join(f"- {line}" for line in lines)


def must_be(expected: str, value: object) -> str:
    """The message for a value of another type than the expected one."""
    return f"must be {expected}, not {type_name(value)}"


def type_name(value: object) -> str:
    """The type of a value, in JSON's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number" if isinstance(value, int) else "a decimal number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list | tuple):
        return "an array"
    return "an object" if isinstance(value, Mapping) else "a date or time"  # TOML knows those as well
