"""JSON, strict shapes and queries of requests. The OpenAPI document is built from the same shapes."""

import codecs
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any, ClassVar, NoReturn, Self, TypeVar, cast
from unicodedata import category
from urllib.parse import parse_qsl

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel

from socialpub.core import repeated_names, validation
from socialpub.core.clock import parse_id
from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.units import listed
from socialpub.core.validation import Mistakes, Path, field_error, inner_errors, known_fields
from socialpub.providers import options

# --- JSON ------------------------------------------------------------------------------------------------------------

_GZIP = b"\x1f\x8b"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_PATH_LEVELS = repeated_names.MAX_LEVELS
"""The maximum depth of a path in an error. A deeper error contains the parent's path."""
MAX_PATH_TEXT = 300
"""The maximum number of characters of all parent names in a path."""

MAX_CONTAINERS = 100_000
"""The maximum number of arrays and objects of one body. An empty array needs 2 bytes in JSON and 60 in memory."""


def parse_json(body: bytes, field: str | None = None) -> tuple[Any, Mistakes]:
    """Return the parsed value, and the errors of the JSON itself: repeated names, and lone surrogates in texts.

    A lone surrogate becomes U+FFFD in the value.

    `field` is the form field that contains the JSON. Raises InvalidRequest.
    """
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        message = f"{_whole(field)} contains more than {MAX_CONTAINERS} arrays and objects."
        raise InvalidRequest.at(message=message)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        message = f"{_whole(field)} is not UTF-8: byte {error.start + 1} is wrong. Encode the JSON as UTF-8."
        if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message = f"{_whole(field)} is UTF-16. Encode the JSON as UTF-8."
        elif body.startswith(_GZIP):
            message = f"{_whole(field)} is compressed with gzip. Send the JSON without compression."
        raise InvalidRequest.at(message=message) from None
    try:
        value = orjson.loads(text)
        return value, Mistakes(FieldError(path, "is given twice") for path in repeated_names.find(text, value))
    except RecursionError:
        raise InvalidRequest.at(message=f"{_whole(field)} is nested too deeply.") from None
    except orjson.JSONDecodeError as error:
        found = _read_surrogates(text)
        if found is None:
            if not body.strip():
                raise InvalidRequest.at(message=f"{_whole(field)} is empty. Send a JSON object.") from None
            raise InvalidRequest.at(message=f"{_whole(field)} is not valid JSON: {error}.") from None
        return found


def _whole(field: str | None) -> str:
    return f"The field {field}" if field else "The body"


def _read_surrogates(body: str) -> tuple[Any, Mistakes] | None:
    r"""Parse JSON with lone surrogates ("\ud800"), which only the standard library reads. None for another error."""
    mistakes = Mistakes()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
        _find_lone_surrogates(value, (), mistakes)
        if not mistakes:
            return None
        # One call for the whole text is much faster than one call for each of 100,000 strings.
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return orjson.loads(text), mistakes
    except (ValueError, RecursionError):
        return None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _find_lone_surrogates(value: Any, path: Path, mistakes: Mistakes, *, named: bool = True) -> None:
    """`named`: inner values have their own paths. At some depth and below long names, paths would exceed the body."""
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value):
            mistakes.add(FieldError(path, "is not valid Unicode: it contains half of a surrogate pair"))
    elif isinstance(value, list):
        if not {str, list, dict} & set(map(type, value)):
            return
        named = named and _is_short(path)
        for index, item in enumerate(value):
            if isinstance(item, str):
                if item.isascii():
                    continue
                if mistakes.full and _LONE_SURROGATE.search(item):
                    mistakes.total += named
                    continue
            if isinstance(item, str | list | dict):
                _find_lone_surrogates(item, (*path, index) if named else path, mistakes, named=named)
    elif isinstance(value, dict):
        named = named and _is_short(path)
        for key, item in value.items():
            # A path cannot contain an invalid name, so the error contains the parent's path.
            if _LONE_SURROGATE.search(key):
                _find_lone_surrogates(key, path, mistakes)
            elif isinstance(item, str | list | dict):
                below = (*path, key) if named else path
                _find_lone_surrogates(item, below, mistakes, named=named)


def _is_short(path: Path) -> bool:
    return len(path) < MAX_PATH_LEVELS and sum(len(name) for name in path if isinstance(name, str)) <= MAX_PATH_TEXT


# --- shapes ----------------------------------------------------------------------------------------------------------

OMITTED: Any = None
"""The default of a field that may be omitted but not be `null`."""


def required(description: str) -> Any:
    return Field(description=description)


def optional(description: str) -> Any:
    return Field(OMITTED, description=description)


class Shape(BaseModel):
    """A JSON object without unknown fields. `model_fields_set` does not contain omitted fields."""

    model_config = ConfigDict(
        strict=True, extra="forbid", alias_generator=to_camel, hide_input_in_errors=True, frozen=True
    )

    @classmethod
    def read(cls, value: Any) -> tuple[Self | None, validation.Mistakes]:
        """Return the shape of a parsed body, or None, and all errors."""
        shape, mistakes = validation.parse(cls, value)
        for error in cls.check_object(value):
            mistakes.add(error)
        return shape, mistakes

    @classmethod
    def check_object(cls, _value: Any) -> Sequence[FieldError]:
        """Return the errors of rules that involve several fields. The fields may be invalid."""
        return ()

    @classmethod
    def for_networks(cls, extensions: tuple[str, ...]) -> type[Self]:
        """Return the shape for a caller who also sees these networks beyond the specification."""
        return cast(type[Self], _extended(cls, extensions)) if extensions else cls

    @classmethod
    def extended_fields(cls, extensions: tuple[str, ...]) -> dict[str, Any]:
        """Return the fields that differ for such a caller: by name, the type and the field."""
        inner = {name: field.annotation for name, field in cls.model_fields.items()}
        wider = {
            name: model.for_networks(extensions)
            for name, model in inner.items()
            if isinstance(model, type) and issubclass(model, Shape)
        }
        return {name: (model, cls.model_fields[name]) for name, model in wider.items() if model is not inner[name]}


@cache
def _extended(shape: type[Shape], extensions: tuple[str, ...]) -> type[Shape]:
    fields = shape.extended_fields(extensions)
    return create_model(shape.__name__, __base__=shape, __doc__=shape.__doc__, **fields) if fields else shape


# --- values ----------------------------------------------------------------------------------------------------------

# RFC 3339 with a required offset and required seconds. pydantic would accept a string of digits as a Unix time.
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,12})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_PARTS = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d)?(:\d\d(?:\.\d+)?)?([Zz]|[+-][\d:]+)?", re.ASCII)


def read_instant(value: Any) -> datetime:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        message = "must be a date-time with seconds and an offset, such as 2026-11-21T11:30:00Z"
        faults = _find_faults(value) if isinstance(value, str) else []
        raise field_error(f"{message}; this value has {listed(faults)}" if faults else message)
    try:
        instant = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except OverflowError:
        raise field_error("must be within the years 1 to 9999 in UTC") from None
    except ValueError:  # the day or hour does not exist
        raise field_error("is not a valid date and time") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def _find_faults(value: str) -> list[str]:
    parts = _PARTS.fullmatch(value)
    if parts is None:
        return []
    time, seconds, offset = parts.groups()
    faults = [] if time else ["no time of day"]
    faults += [] if seconds or not time else ["no seconds"]
    faults += ["more than 12 digits after the point"] if len(seconds or "") > len(":00.") + 12 else []
    if not offset:
        faults.append("no offset")
    elif offset.upper() != "Z" and not re.fullmatch(r"[+-]\d\d:\d\d", offset):
        faults.append("an offset that is not in the form +01:00")
    return faults


def read_instant_or_null(value: Any) -> datetime | None:
    return None if value is None else read_instant(value)


def read_id(value: Any) -> str:
    """Return the id in lower case."""
    known = parse_id(value) if isinstance(value, str) else None
    if known is None:
        raise field_error("must be a UUID")
    return known


MAX_IDS = 100
"""The maximum number of profiles per post."""
IDS_HINT = "take ids from GET /api/v1/profiles"


def read_ids(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise field_error(f"must be an array of UUIDs; {IDS_HINT}")
    if len(value) > MAX_IDS:
        raise field_error(f"may have at most {MAX_IDS} items and has {len(value)}")
    known: dict[str, int] = {}
    errors: list[tuple[Path, str]] = []
    for index, item in enumerate(value):
        one = parse_id(item) if isinstance(item, str) else None
        if one is None:
            errors.append(((index,), f"must be a UUID; {IDS_HINT}"))
        elif known.setdefault(one, index) != index:
            errors.append(((index,), "is listed twice"))
    if errors:
        raise inner_errors(errors, len(errors))
    return list(known)


MAX_LEVELS = 20
"""The maximum depth of free-form values, far below the recursion limits of the code that stores and renders them."""


def read_free_form(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise field_error("must be an object")
    if options.is_surely_too_large(value):
        raise field_error(options.TOO_LARGE)
    level: list[Any] = [value]
    for _ in range(MAX_LEVELS):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            if options.is_too_large(value):
                raise field_error(options.TOO_LARGE)
            return value
    raise field_error(f"is nested more than {MAX_LEVELS} levels deep")


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
            "maxItems": MAX_IDS,
            "uniqueItems": True,
        }
    ),
]
FreeForm = Annotated[
    dict[str, Any], BeforeValidator(read_free_form), WithJsonSchema({"type": "object", "additionalProperties": True})
]
MAX_BODY, MAX_ALT = 5000, 1000
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANK = re.compile(
    r"[\s\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""White space, fillers and variation marks, which are invisible like Unicode's format characters."""


def read_text(value: str, longest: int) -> str:
    """Return a text with LF as its only line end. It has a visible character and no control characters."""
    text = value.replace("\r\n", "\n").replace("\r", "\n")
    if not text:
        raise field_error("must not be empty")
    if len(text) > longest:
        raise field_error(f"may have at most {longest} characters")
    if control := _CONTROL.search(text):
        raise field_error(f"contains the control character U+{ord(control[0]):04X}; remove it")
    if not any(category(one) != "Cf" and not _BLANK.match(one) for one in text):
        raise field_error("must contain a visible character")
    return text


def _read_body(value: str) -> str:
    # `strip` without an argument also removes control characters.
    return read_text(value.strip(_SPACES) or value[:1], MAX_BODY)


_SPACES = "".join(one for one in map(chr, range(0x3001)) if one.isspace() and not _CONTROL.match(one)) + "\r"
_SCHEMA = {"type": "string", "minLength": 1, "pattern": r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"}

Trimmed = Annotated[str, AfterValidator(_read_body), WithJsonSchema({**_SCHEMA, "maxLength": MAX_BODY})]
Alt = Annotated[
    str,
    AfterValidator(partial(read_text, longest=MAX_ALT)),
    WithJsonSchema({**_SCHEMA, "maxLength": MAX_ALT}),
]


# --- queries ---------------------------------------------------------------------------------------------------------


class Query(Shape):
    """The parameters of a query. An empty value means "not given", except for a parameter in `NEVER_EMPTY`."""

    NEVER_EMPTY: ClassVar[frozenset[str]] = frozenset()
    NULLABLE: ClassVar[frozenset[str]] = frozenset()
    """Parameters whose value `null` means "not given" as well."""
    LISTS: ClassVar[frozenset[str]] = frozenset()
    """Parameters with commas between their items. All others can be given once."""


Q = TypeVar("Q", bound=Query)

_NUMBER = re.compile(r"(-?)([0-9]+)", re.ASCII)
MAX_NUMBER = 2**53 - 1


def read_number(value: Any) -> int:
    number = _NUMBER.fullmatch(value)
    if number is None:
        raise field_error("must be a whole number")
    # A long number is above every limit, and slow to read.
    return int(number[1] + number[2][:18])


def read_flag(value: Any) -> bool:
    if value not in ("true", "false"):
        raise field_error("must be true or false")
    return bool(value == "true")


@cache
def _defaults(shape: type[Query]) -> Query:
    return shape.model_validate({})


def read_query(shape: type[Q], query_string: bytes) -> Q:
    """Parse a query. Raises InvalidRequest, also for unknown and repeated parameters."""
    if not query_string:
        return cast(Q, _defaults(shape))
    pairs = parse_qsl(query_string.decode("latin-1"), keep_blank_values=True)
    optional = known_fields(shape).keys() - shape.NEVER_EMPTY
    given: dict[str, str] = {}
    repeated = list[FieldError]()
    for name, value in pairs:
        if name in given and name not in shape.LISTS:
            repeated.append(FieldError((name,), "is given twice"))
        given[name] = ",".join(filter(None, (given.get(name), value)))
    for name in optional & given.keys():
        if given[name] == "" or (given[name] == "null" and name in shape.NULLABLE):
            del given[name]
    query, mistakes = validation.parse(shape, given)
    mistakes = Mistakes([*repeated, *mistakes.errors], mistakes.total)
    if query is None or mistakes:
        # A list is one parameter, so the path does not contain the index of the item.
        errors = {error.path[:1]: FieldError(error.path[:1], error.message) for error in reversed(mistakes.errors)}
        raise InvalidRequest.from_errors(list(reversed(errors.values())), mistakes.total if mistakes.full else 0)
    return query
