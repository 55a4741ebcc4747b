"""What is wrong with data that somebody gave: one wording for requests, the configuration and credentials.

A message is the end of a sentence that begins with the name of the field: "must be a string, not a number". It never
holds a value that was given, which may be a secret.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from socialpub.core.errors import FieldError
from socialpub.core.spelling import nearest

Path = tuple[str | int, ...]
NearestName = Callable[[Path], str | None]
"""The known name that the unknown one at this path was probably meant to be."""

MAX_SUGGESTIONS = 20
"""Looking for the nearest name costs time, and a request may hold a hundred thousand unknown ones."""

MAX_NAME = 80

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


def wrong_inside(errors: Iterable[tuple[Path, str]]) -> PydanticCustomError:
    """For a validator to raise: something inside of this field is wrong, at each of these paths below it."""
    return PydanticCustomError(_WRONG_INSIDE, "wrong inside", {"errors": list(errors)})


def field_errors(error: ValidationError, nearest_name: NearestName) -> list[FieldError]:
    """Every failing field once, in the order of the fields, with what to change."""
    found: dict[Path, str] = {}
    suggestions = 0
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        if detail["type"] == _WRONG_INSIDE:
            for below, inner in detail["ctx"]["errors"]:
                found.setdefault((*path, *below), inner)
        elif detail["type"] == "extra_forbidden":
            suggestions += 1
            found.setdefault(path, unknown(nearest_name(path) if suggestions <= MAX_SUGGESTIONS else None))
        else:
            found.setdefault(path, message(detail))
    return [FieldError(path, text) for path, text in found.items()]


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


def sentence(path: Path, text: str) -> str:
    """The whole sentence, with the path in dots; of a long name only the beginning, as it may be something pasted."""
    name = ".".join(str(part) for part in path)
    return f"{name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + '…'} {text}"


def list_mistakes(start: str, sentences: Iterable[str]) -> str:
    """All of them below one line: `start` ("The credentials have") and how many they are."""
    lines = list(dict.fromkeys(sentences))
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    return f"{start} {count}:\n" + "\n".join(f"- {line}" for line in lines)


def must_be(expected: str, value: object) -> str:
    """The message for a value of another type than the expected one."""
    return f"must be {expected}, not {type_name(value)}"


def unknown(suggestion: str | None, known: Iterable[str] = ()) -> str:
    """The message for a name that is not known; without a near one it lists those that are."""
    if suggestion is not None:
        return f"is not known; did you mean {suggestion}?"
    names = ", ".join(known)
    return f"is not known; known are {names}" if names else "is not known; leave it out"


def nearest_field(model: type[BaseModel]) -> NearestName:
    """Suggests a field of the model, or of the model inside of it, in which the unknown name stands."""

    def suggest(path: Path) -> str | None:
        return nearest(str(path[-1]), _fields_at(model, path[:-1]))

    return suggest


def type_name(value: object) -> str:
    """The type of a value, in JSON's words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list | tuple):
        return "an array"
    return "an object" if isinstance(value, Mapping) else "a date or time"  # TOML knows those as well


def _fields_at(model: type[BaseModel], path: Path) -> dict[str, FieldInfo]:
    fields = _fields(model)
    for part in path:
        if isinstance(part, int):
            continue  # an item of the list that the field before holds
        inner = _model_in(fields[part].annotation) if part in fields else None
        if inner is None:
            return {}
        fields = _fields(inner)
    return fields


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that is the annotation or stands inside of it, such as that of a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
