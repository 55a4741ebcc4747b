"""What a request may look like: strict shapes, from which the OpenAPI document is made as well.

Nothing is coerced: "5" is not 5, and a time without an offset is no instant. Everything that is wrong is told at once,
each with the path of its field.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, WithJsonSchema
from pydantic.alias_generators import to_camel

from socialpub.core import ids
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.validation import Path, field_errors, nearest_field, wrong, wrong_inside

LEFT_OUT: Any = None
"""The default of a field that may be left out but not be `null`."""

REFUSED = "The request has fields that cannot be accepted; errors names each of them."


def required(description: str) -> Any:
    """A field that is always there."""
    return Field(description=description)


def optional(description: str) -> Any:
    """A field that is left out when there is no value."""
    return Field(LEFT_OUT, description=description)


class Shape(BaseModel):
    """A JSON object of which every field is known. A field that was left out is not in `model_fields_set`."""

    model_config = ConfigDict(
        strict=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True, frozen=True
    )

    @classmethod
    def read(cls, value: Any) -> Self:
        """The shape of a parsed body. Raises InvalidRequest with every failing field."""
        more = cls.across(value)
        try:
            shape = cls.model_validate(value)
        except ValidationError as error:
            found = field_errors(error, nearest_field(cls))
            known = {one.path for one in found}
            raise InvalidRequest(REFUSED, [*found, *(one for one in more if one.path not in known)]) from None
        if more:
            raise InvalidRequest(REFUSED, more)
        return shape

    @classmethod
    def across(cls, _value: Any) -> Sequence[FieldError]:
        """Rules that several fields make together, asked of the parsed body whether or not its fields pass."""
        return ()


# --- values ----------------------------------------------------------------------------------------------------------

# RFC 3339: the offset is required, and so are the seconds. A string of digits is a Unix time to the library, not to us.
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,12})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def read_instant(value: Any) -> datetime:
    """The instant, in UTC, with milliseconds."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        raise wrong("must be a date-time with seconds and an offset, such as 2026-11-21T11:30:00Z")
    try:
        instant = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        # There is no such day or hour, or the offset carries it out of the calendar.
        raise wrong("is not a valid date and time") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def read_instant_or_null(value: Any) -> datetime | None:
    return None if value is None else read_instant(value)


def read_id(value: Any) -> str:
    """The id in its one spelling."""
    known = ids.parse(value) if isinstance(value, str) else None
    if known is None:
        raise wrong("must be a UUID")
    return known


def read_ids(value: Any) -> list[str]:
    """An array of ids, each listed once."""
    if not isinstance(value, list):
        raise wrong("must be an array of UUIDs")
    known: list[str] = []
    errors: list[tuple[Path, str]] = []
    for index, item in enumerate(value):
        one = ids.parse(item) if isinstance(item, str) else None
        if one is None:
            errors.append(((index,), "must be a UUID"))
        elif one in known:
            errors.append(((index,), "is listed twice"))
        else:
            known.append(one)
    if errors:
        raise wrong_inside(errors)
    return known


MOST_LEVELS = 20
"""How deep free-form values may be nested; what stores and renders them ends at some hundreds."""


def read_free_form(value: Any) -> dict[str, Any]:
    """An object whose values are the network's business."""
    if not isinstance(value, dict):
        raise wrong("must be an object")
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return value
    raise wrong(f"is nested more than {MOST_LEVELS} levels deep")


Instant = Annotated[datetime, BeforeValidator(read_instant), WithJsonSchema({"type": "string", "format": "date-time"})]
InstantOrNull = Annotated[
    datetime | None,
    BeforeValidator(read_instant_or_null),
    WithJsonSchema({"type": ["string", "null"], "format": "date-time"}),
]
Id = Annotated[str, BeforeValidator(read_id), WithJsonSchema({"type": "string", "format": "uuid"})]
Ids = Annotated[
    list[str],
    BeforeValidator(read_ids),
    Field(min_length=1),
    WithJsonSchema(
        {"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1, "uniqueItems": True}
    ),
]
FreeForm = Annotated[
    dict[str, Any], BeforeValidator(read_free_form), WithJsonSchema({"type": "object", "additionalProperties": True})
]
Trimmed = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=5000),
    WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 5000, "pattern": r"\S"}),
]
Alt = Annotated[str, Field(min_length=1, max_length=1000)]


# --- queries ---------------------------------------------------------------------------------------------------------


class Query(Shape):
    """The known parameters of a query. Those in `LENIENT` may be empty or `null`, which means their default."""

    model_config = ConfigDict(extra="ignore")
    LENIENT: ClassVar[frozenset[str]] = frozenset()


Q = TypeVar("Q", bound=Query)

_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
LARGEST = 2**53 - 1


def read_number(value: Any) -> int:
    """A whole number as a query writes it."""
    if not _NUMBER.fullmatch(value):
        raise wrong("must be a whole number")
    return int(value)


def read_query(shape: type[Q], query_string: bytes) -> Q:
    """A query's known parameters. Others are ignored; of a repeated one the last counts. Raises InvalidRequest."""
    given: dict[str, Any] = {}
    if query_string:
        given = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
        for name in shape.LENIENT & given.keys():
            if given[name] in ("", "null"):
                del given[name]
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        # A list in a query is one parameter: which of its items fails is for the message.
        first = {one.path[:1]: one for one in reversed(field_errors(error, nearest_field(shape)))}
        errors = [FieldError(path, one.message) for path, one in reversed(first.items())]
        raise InvalidRequest("The query has parameters that cannot be accepted.", errors) from None
