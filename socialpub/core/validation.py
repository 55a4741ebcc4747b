"""Validation messages for requests, the configuration and credentials.

A message ends a sentence that begins with the name of the field: "must be a string, not a number". It never contains a
given value, which may be a secret. For an unknown name, it suggests the known name or the place: a post that ignores a
misplaced `scheduledAt` would be published at once.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from socialpub.core.errors import MAX_ERRORS, FieldError, InvalidRequest

MAX_NAME = 100
"""The maximum length of a name for comparison. Comparing takes time, and known names are shorter."""


MAX_LABEL_LENGTH = 200


def is_label(text: str) -> bool:
    """Return whether the text is one line of visible text. Zero-width joiners are part of an emoji."""
    visible = text.replace("\u200d", "").strip()
    return bool(visible) and visible.isprintable()


def to_label(text: str) -> str:
    """Return the text of others as a label: one line, without control and direction characters."""
    beginning = text[: 10 * MAX_LABEL_LENGTH]
    visible = "".join(
        " " if char.isspace() else char if char.isprintable() or char == "\u200d" else "" for char in beginning
    )
    label = " ".join(visible.split())[:MAX_LABEL_LENGTH].strip()
    return label if is_label(label) else ""


def nearest(key: str, candidates: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the known name nearest to `key`, or None. Ignore case, underscores and hyphens."""
    if len(key) > MAX_NAME:
        return None
    names = {fold(name): name for name in reversed(list(candidates))}  # the first of two spellings counts
    matches = difflib.get_close_matches(fold(key), names, n=1, cutoff=cutoff)
    return names[matches[0]] if matches else None


def fold(name: str) -> str:
    """Return the beginning of a name in lower case, without underscores and hyphens."""
    return name[: MAX_NAME + 1].replace("_", "").replace("-", "").casefold()


def did_you_mean(suggestion: str | None, known_names: Iterable[str] = ()) -> str:
    """Return the message for an unknown name, with a suggestion or the known names."""
    if suggestion is not None:
        return f"is not known; did you mean {suggestion}?"
    names = ", ".join(known_names)
    return f"is not known; known names are {names}" if names else "is not known; remove it"


CLOSE_MATCH = 0.75
"""The similarity above which a name at another place is suggested."""


@dataclass(frozen=True, slots=True)
class AlsoCalled:
    """Annotates a field with other names that callers try."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """Annotates a field that takes any object with its known keys."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """The model of a field's value, or of the items in its list."""

    model: type[BaseModel]
    listed: bool


@cache
def known_fields(model: type[BaseModel]) -> dict[str, Inner | None]:
    """Return the field names of a model, each with the model inside."""
    return {field.alias or name: _inner(field.annotation, listed=False) for name, field in model.model_fields.items()}


def suggest_place(root: type[BaseModel], place: str, name: str) -> str:
    """Return the message for an unknown name at a place of `root`: `""`, `post`, `media[]`."""
    places = _places(root)
    here = places.get(place, {})
    same = fold(name)
    same_here = next((known_name for known_name in here if same in map(fold, (known_name, *here[known_name]))), None)
    if same_here is not None:
        return did_you_mean(same_here)
    elsewhere = [
        (f"{other}.{known_name}".lstrip("."), known_name, more)
        for other, names in places.items()
        if other != place
        for known_name, more in names.items()
    ]
    exact = [full for full, known_name, _ in elsewhere if known_name == name]
    if exact:
        return f"belongs in {' or '.join(exact)}"
    alike = [full for full, known_name, more in elsewhere if same in map(fold, (known_name, *more))]
    if alike:
        return did_you_mean(" or ".join(alike))
    near = nearest(name, here, CLOSE_MATCH)
    if near is None:
        surely = nearest(name, (known_name for _, known_name, _ in elsewhere), CLOSE_MATCH)
        near = next((full for full, known_name, _ in elsewhere if known_name == surely), None) or nearest(name, here)
    return did_you_mean(near, here)


@cache
def _places(root: type[BaseModel]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return each place with its known names and their other names."""
    return dict(_walk(root, ""))


def _walk(model: type[BaseModel], place: str) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    names: dict[str, tuple[str, ...]] = {}
    for field, (name, inner) in zip(model.model_fields.values(), known_fields(model).items(), strict=True):
        names[name] = next((note.names for note in field.metadata if isinstance(note, AlsoCalled)), ())
        below = f"{place}.{name}".lstrip(".")
        if inner is not None:
            yield from _walk(inner.model, f"{below}[]" if inner.listed else below)
        for note in field.metadata:
            if isinstance(note, Keys):
                yield below, dict.fromkeys(note.names, ())
    yield place, names


def _inner(annotation: Any, *, listed: bool) -> Inner | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Inner(annotation, listed)
    listed = listed or getattr(annotation, "__origin__", None) in (list, tuple)
    return next((inner for part in get_args(annotation) if (inner := _inner(part, listed=listed))), None)


M = TypeVar("M", bound=BaseModel)
Path = tuple[str | int, ...]

MAX_SUGGESTIONS = 20
"""The maximum number of suggestions. Finding a name takes time, and a request may contain 100,000 unknown names."""

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


def field_error(message: str) -> PydanticCustomError:
    """Return the error that a validator raises for its field. `message` says how to fix the value."""
    return PydanticCustomError("wrong", "{message}", {"message": message})


def inner_errors(errors: Sequence[tuple[Path, str]], total: int) -> PydanticCustomError:
    """Return the error that a validator raises for paths inside its field. `total` counts all errors."""
    return PydanticCustomError(_WRONG_INSIDE, "wrong inside", {"errors": list(errors), "total": total})


class Mistakes:
    """The first `MAX_ERRORS` failing fields, each once, and the number of all failing fields."""

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
        """The number of errors that can still be added. Further errors are only counted."""
        return MAX_ERRORS - len(self._found)

    @property
    def full(self) -> bool:
        return self.room <= 0

    def add(self, error: FieldError) -> None:
        """Add an error, unless its field has an error."""
        if error.path in self._found:
            return
        self.total += 1
        if not self.full:
            self._found[error.path] = error

    def merge(self, errors: Sequence[FieldError], total: int) -> None:
        """Add these errors. `total` also counts errors that are not listed."""
        for error in errors:
            self.add(error)
        self.total += total - len(errors)

    def refusal(self, whole: str = "The body") -> InvalidRequest:
        """Return the error for the caller. An error without a path is about the `whole`."""
        return InvalidRequest.from_errors(self.errors, self.total, whole=whole)


def parse(model: type[M], value: Any) -> tuple[M | None, Mistakes]:
    """Return the data as this model or None, and all mistakes, unknown names first."""
    mistakes = Mistakes()
    try:
        return model.model_validate(value), mistakes
    except ValidationError:
        pass  # this error has Python names, so the mistakes are collected below
    without_unknown = _known_part(model, model, value, (), "", mistakes)
    try:
        return model.model_validate(without_unknown), mistakes
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            path = detail["loc"]
            if detail["type"] == _WRONG_INSIDE:
                inside = detail["ctx"]["errors"]
                mistakes.merge([FieldError((*path, *below), text) for below, text in inside], detail["ctx"]["total"])
            else:
                mistakes.add(FieldError(path, describe(detail)))
    return None, mistakes


def _known_part(
    root: type[BaseModel], model: type[BaseModel], value: Any, path: Path, place: str, mistakes: Mistakes
) -> Any:
    """Return the value without unknown names. Add each unknown name to the mistakes."""
    if not isinstance(value, dict):
        return value
    fields = known_fields(model)
    part: dict[str, Any] = {}
    for name, inner in fields.items():
        if name not in value:
            continue
        item = value[name]
        if inner is not None:
            below = f"{place}.{name}".lstrip(".")
            if not inner.listed:
                item = _known_part(root, inner.model, item, (*path, name), below, mistakes)
            elif isinstance(item, list):
                # Every list of objects has a lower limit, so the rest does not need a check.
                some = [
                    _known_part(root, inner.model, member, (*path, name, at), f"{below}[]", mistakes)
                    for at, member in enumerate(item[:MAX_ERRORS])
                ]
                item = [*some, *item[MAX_ERRORS:]]
        part[name] = item
    if len(part) < len(value):
        _add_unknown(root, value, fields, path, place, mistakes, len(value) - len(part))
    return part


def _add_unknown(
    root: type[BaseModel],
    value: Mapping[str, Any],
    fields: Mapping[str, Any],
    path: Path,
    place: str,
    mistakes: Mistakes,
    total: int,
) -> None:
    """Add the unknown names up to the limit. `total` counts all unknown names."""
    named = list(islice((name for name in value if name not in fields), mistakes.room))
    for name in named:
        text = suggest_place(root, place, name) if mistakes.total < MAX_SUGGESTIONS else did_you_mean(None, fields)
        mistakes.add(FieldError((*path, name), text))
    mistakes.total += total - len(named)


def describe(detail: ErrorDetails) -> str:
    """Return the message for one of pydantic's errors about a known field."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _TYPES:
        return must_be(_TYPES[kind], detail["input"])
    if kind in _MESSAGES:
        return _MESSAGES[kind].format_map(context)
    if kind == "value_error":
        return str(context["error"])
    return detail["msg"].replace("Input should be", "must be")


def format_mistakes(start: str, sentences: Iterable[str]) -> str:
    """Return `start` ("The credentials have"), the number of mistakes, and a list of them."""
    lines = list(dict.fromkeys(sentences))
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    return f"{start} {count}:\n" + "\n".join(f"- {line}" for line in lines)


def must_be(expected: str, value: object) -> str:
    """Return the message for a value of the wrong type."""
    return f"must be {expected}, not {type_name(value)}"


def type_name(value: object) -> str:
    """Return the type of a value in JSON's words."""
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
    return "an object" if isinstance(value, Mapping) else "a date or time"  # in TOML
