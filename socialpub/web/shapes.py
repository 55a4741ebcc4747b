"""What a request may look like: strict shapes, from which the OpenAPI document is made as well.

Nothing is coerced: "5" is not 5, and a time without an offset is no instant. Everything that is wrong is told at once,
each with the path of its field.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast
from urllib.parse import parse_qsl

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from socialpub.core import ids, validation
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.validation import Path, wrong, wrong_inside
from socialpub.providers import options

LEFT_OUT: Any = None
"""The default of a field that may be left out but not be `null`."""


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
    def read(cls, value: Any) -> tuple[Self | None, validation.Mistakes]:
        """The shape of a parsed body, or None; and everything that is wrong with it."""
        shape, mistakes = validation.read(cls, value)
        for error in cls.across(value):
            mistakes.add(error)
        return shape, mistakes

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


MOST_IDS = 100
"""So many profiles may a post go to."""
WHERE_IDS_ARE = "take ids from GET /api/v1/profiles"


def read_ids(value: Any) -> list[str]:
    """An array of profiles' ids, each listed once."""
    if not isinstance(value, list):
        raise wrong(f"must be an array of UUIDs; {WHERE_IDS_ARE}")
    if len(value) > MOST_IDS:
        raise wrong(f"may have at most {MOST_IDS} items and has {len(value)}")
    known: dict[str, int] = {}
    errors: list[tuple[Path, str]] = []
    for index, item in enumerate(value):
        one = ids.parse(item) if isinstance(item, str) else None
        if one is None:
            errors.append(((index,), f"must be a UUID; {WHERE_IDS_ARE}"))
        elif known.setdefault(one, index) != index:
            errors.append(((index,), "is listed twice"))
    if errors:
        raise wrong_inside(errors, len(errors))
    return list(known)


MOST_LEVELS = 20
"""How deep free-form values may be nested; what stores and renders them ends at some hundreds."""


def read_free_form(value: Any) -> dict[str, Any]:
    """An object whose values are the network's business, of bounded size."""
    if not isinstance(value, dict):
        raise wrong("must be an object")
    if options.is_surely_too_large(value):
        raise wrong(options.TOO_LARGE)
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            if options.is_too_large(value):
                raise wrong(options.TOO_LARGE)
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
        {
            "type": "array",
            "items": {"type": "string", "format": "uuid"},
            "minItems": 1,
            "maxItems": MOST_IDS,
            "uniqueItems": True,
        }
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
    """The parameters of a query; as it is, that of an address which takes none. Those in `LENIENT` may be empty or
    `null`, which means their default."""

    LENIENT: ClassVar[frozenset[str]] = frozenset()


Q = TypeVar("Q", bound=Query)

_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
LARGEST = 2**53 - 1


def read_number(value: Any) -> int:
    """A whole number as a query writes it."""
    if not _NUMBER.fullmatch(value):
        raise wrong("must be a whole number")
    return int(value)


def read_flag(value: Any) -> bool:
    """`true` or `false` as a query writes it."""
    if value not in ("true", "false"):
        raise wrong("must be true or false")
    return bool(value == "true")


@cache
def _defaults(shape: type[Query]) -> Query:
    return shape.model_validate({})


def read_query(shape: type[Q], query_string: bytes) -> Q:
    """The parameters of a query; of a repeated one the last counts. Raises InvalidRequest, for unknown ones too."""
    if not query_string:
        return cast(Q, _defaults(shape))
    given = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=True))
    for name in shape.LENIENT & given.keys():
        if given[name] in ("", "null"):
            del given[name]
    query, mistakes = validation.read(shape, given)
    if query is None or mistakes:
        # A list in a query is one parameter: which of its items fails is for the message.
        errors = {error.path[:1]: FieldError(error.path[:1], error.message) for error in reversed(mistakes.errors)}
        raise InvalidRequest.of(list(reversed(errors.values())), mistakes.total if mistakes.full else 0)
    return query
