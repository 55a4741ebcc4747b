"""JSON, strict shapes and queries of requests. The OpenAPI document is built from the same shapes."""

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast
from unicodedata import category
from urllib.parse import parse_qsl

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.alias_generators import to_camel

from socialpub.core import validation
from socialpub.core.clock import parse_id
from socialpub.core.errors import MAX_ERRORS, FieldError, InvalidRequest
from socialpub.core.units import listed
from socialpub.core.validation import Mistakes, Path, field_error, inner_errors, known_fields
from socialpub.providers import options

# --- JSON ------------------------------------------------------------------------------------------------------------

_GZIP = b"\x1f\x8b"
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_END_OF_NAME = re.compile(r'"[ \t\r\n]*:')
MAX_LEVELS = 20
"""The maximum depth of free-form values, far below the recursion limits of the code that stores and renders them.

Also the maximum depth of the path of an error in the JSON. A deeper error has the path of its ancestor."""
MAX_PATH_TEXT = 300
"""The maximum number of characters of all names in such a path."""
MAX_CONTAINERS = 100_000
"""The maximum number of arrays and objects of one body. An empty array needs 2 bytes in JSON and 60 in memory."""


def parse_json(body: bytes, field: str | None = None) -> tuple[Any, Mistakes]:
    """Return the parsed value, and the errors of the JSON itself: repeated names, and texts that are not Unicode.

    `field` is the form field that contains the JSON. Raises InvalidRequest.
    """
    whole = f"The field {field}" if field else "The body"
    body = body.removeprefix(codecs.BOM_UTF8)
    if body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        raise InvalidRequest.at(message=f"{whole} contains more than {MAX_CONTAINERS} arrays and objects.")
    try:
        text = body.decode()
        value = orjson.loads(text)
        return value, Mistakes(FieldError(path, "is given twice") for path in _find_repeated_names(text, value))
    except UnicodeDecodeError as error:
        message = f"{whole} is not UTF-8: byte {error.start + 1} is wrong. Encode the JSON as UTF-8."
        if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            message = f"{whole} is UTF-16. Encode the JSON as UTF-8."
        elif body.startswith(_GZIP):
            message = f"{whole} is compressed with gzip. Send the JSON without compression."
        raise InvalidRequest.at(message=message) from None
    except RecursionError:
        raise InvalidRequest.at(message=f"{whole} is nested too deeply.") from None
    except orjson.JSONDecodeError as error:
        if not body.strip():
            raise InvalidRequest.at(message=f"{whole} is empty. Send a JSON object.") from None
        if (repaired := _read_surrogates(text)) is not None:
            return repaired
        raise InvalidRequest.at(message=f"{whole} is not valid JSON: {error}.") from None


class _RepeatingObject(dict[str, Any]):
    """An object with repeated names."""

    def __init__(self, members: list[tuple[str, Any]]) -> None:
        super().__init__(members)
        self.repeated = [name for name, times in Counter(name for name, _ in members).items() if times > 1]


def _find_repeated_names(text: str, value: Any) -> Iterator[Path]:
    """Yield the path of each repeated name. `value` is the parsed text. Raises RecursionError for a deep value."""
    # A second parser is slow, so the names are counted first. A text in the JSON may look like another name.
    count, waiting = 0, [value]
    while waiting:
        container = waiting.pop()
        if type(container) is dict:
            count += len(container)
            waiting.extend(container.values())
        elif type(container) is list:
            waiting.extend(container)
    if len(_END_OF_NAME.findall(text)) != count:
        # Numbers remain texts, because a long number is slow to read.
        yield from _walk(json.loads(text, object_pairs_hook=_build, parse_int=str, parse_float=str), ())


def _build(members: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(members)
    return plain if len(plain) == len(members) else _RepeatingObject(members)


def _walk(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, _RepeatingObject):
        yield from ((*path, name)[:MAX_LEVELS] for name in value.repeated)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from _walk(item, (*path, key)[:MAX_LEVELS])


def _read_surrogates(text: str) -> tuple[Any, Mistakes] | None:
    r"""Parse JSON with halves of surrogate pairs ("\ud800"), which become U+FFFD. None for another error."""
    paths: dict[Path, None] = {}
    try:
        value = json.loads(text)
        _find_lone_surrogates(value, (), paths)
        clean = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        value = orjson.loads(clean)
    except (ValueError, RecursionError):
        return None
    message = "is not valid Unicode: it contains half of a surrogate pair"
    return (value, Mistakes(FieldError(path, message) for path in paths)) if paths else None


def _find_lone_surrogates(value: Any, path: Path, paths: dict[Path, None], room: int = MAX_PATH_TEXT) -> None:
    """Add the path of each such text, up to the number that a response lists.

    `room` is the number of characters that may follow in the path. Below long names, the path is that of an ancestor.
    """
    if len(paths) >= MAX_ERRORS:
        return
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value):
            paths[path] = None
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str) and _LONE_SURROGATE.search(key):
            paths[path] = None  # a path cannot contain an invalid name
        elif isinstance(item, str | list | dict):
            left = room - (len(key) if isinstance(key, str) else 1)
            if left < 0 or len(path) == MAX_LEVELS:
                _find_lone_surrogates(item, path, paths, 0)
            else:
                _find_lone_surrogates(item, (*path, key), paths, left)


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
    parsed_id = parse_id(value) if isinstance(value, str) else None
    if parsed_id is None:
        raise field_error("must be a UUID")
    return parsed_id


MAX_IDS = 100
"""The maximum number of profiles per post."""
IDS_HINT = "take ids from GET /api/v1/profiles"


def read_ids(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise field_error(f"must be an array of UUIDs; {IDS_HINT}")
    if len(value) > MAX_IDS:
        raise field_error(f"may have at most {MAX_IDS} items and has {len(value)}")
    ids: dict[str, int] = {}
    errors: list[tuple[Path, str]] = []
    for index, item in enumerate(value):
        parsed_id = parse_id(item) if isinstance(item, str) else None
        if parsed_id is None:
            errors.append(((index,), f"must be a UUID; {IDS_HINT}"))
        elif ids.setdefault(parsed_id, index) != index:
            errors.append(((index,), "is listed twice"))
    if errors:
        raise inner_errors(errors, len(errors))
    return list(ids)


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
    if not any(category(char) != "Cf" and not _BLANK.match(char) for char in text):
        raise field_error("must contain a visible character")
    return text


def _read_body(value: str) -> str:
    # `strip` without an argument also removes control characters.
    return read_text(value.strip(_SPACES) or value[:1], MAX_BODY)


_SPACES = "".join(char for char in map(chr, range(0x3001)) if char.isspace() and not _CONTROL.match(char)) + "\r"
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
    parameters: dict[str, str] = {}
    repeated = list[FieldError]()
    for name, value in parse_qsl(query_string.decode("latin-1"), keep_blank_values=True):
        if name in parameters and name not in shape.LISTS:
            repeated.append(FieldError((name,), "is given twice"))
        parameters[name] = ",".join(filter(None, (parameters.get(name), value)))
    for name in parameters.keys() & known_fields(shape).keys() - shape.NEVER_EMPTY:
        if parameters[name] == "" or (parameters[name] == "null" and name in shape.NULLABLE):
            del parameters[name]
    query, mistakes = validation.parse(shape, parameters)
    mistakes = Mistakes([*repeated, *mistakes.errors], mistakes.total)
    if query is None or mistakes:
        # A list is one parameter, so the path does not contain the index of the item.
        errors = {error.path[:1]: FieldError(error.path[:1], error.message) for error in reversed(mistakes.errors)}
        raise InvalidRequest.from_errors(list(reversed(errors.values())), mistakes.total if mistakes.full else 0)
    return query
