"""JSON bodies: bytes in, plain values out, and an error that names the field whenever there is one to name."""

import json
import re
from typing import Any, NoReturn

import orjson

from socialpub.core.errors import FieldError, InvalidRequest
from socialpub.core.validation import Mistakes, Path

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
MOST_LEVELS = 20
"""How deep a field may stand to be named by itself."""
MAX_PATH_TEXT = 300
"""Characters of all names above such a field."""

MAX_CONTAINERS = 100_000
"""Arrays and objects of one body, with the brackets in its strings. All that a valid request may hold are fewer; an
empty array takes two bytes here and sixty in memory."""


def parse(body: bytes, field: str | None = None) -> tuple[Any, Mistakes]:
    """The value of a JSON text, and the fields whose text is half of a surrogate pair: they have U+FFFD in its place,
    so that whatever else is wrong can be found as well. `field` is the one of a form that holds the text.

    Raises InvalidRequest for what is no JSON at all, or holds more arrays and objects than any request may.
    """
    if body.count(b"[") + body.count(b"{") > MAX_CONTAINERS:
        message = f"{_whole(field)} holds more than {MAX_CONTAINERS} arrays and objects."
        raise InvalidRequest.at(message=message)
    try:
        return orjson.loads(body), Mistakes()
    except orjson.JSONDecodeError as error:
        found = _read_surrogates(body)
        if found is None:
            if not body.strip():
                raise InvalidRequest.at(message=f"{_whole(field)} is empty; a JSON object is needed.") from None
            raise InvalidRequest.at(message=f"{_whole(field)} is not valid JSON: {error}.") from None
        return found


def _whole(field: str | None) -> str:
    return f"The field {field}" if field else "The body"


def _read_surrogates(body: bytes) -> tuple[Any, Mistakes] | None:
    """Lone surrogates ("\ud800") are the one fault that belongs to a single field: the standard library reads them.
    None when that is not what is wrong."""
    mistakes = Mistakes()
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
        _find_lone_surrogates(value, (), mistakes)
        if not mistakes:
            return None
        # The whole text at once: one call for each of a hundred thousand strings would take far longer.
        text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return orjson.loads(text), mistakes
    except (ValueError, RecursionError):
        return None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _find_lone_surrogates(value: Any, path: Path, mistakes: Mistakes, *, named: bool = True) -> None:
    """`named`: what is inside of the value gets paths of its own. Beyond some levels, and below long names, a hundred
    paths would hold far more than the body did."""
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value):
            mistakes.add(FieldError(path, "is not valid Unicode: it holds half of a surrogate pair"))
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
            # A name that cannot be written down cannot be in a path either: its parent is named.
            if _LONE_SURROGATE.search(key):
                _find_lone_surrogates(key, path, mistakes)
            elif isinstance(item, str | list | dict):
                below = (*path, key) if named else path
                _find_lone_surrogates(item, below, mistakes, named=named)


def _is_short(path: Path) -> bool:
    return len(path) < MOST_LEVELS and sum(len(name) for name in path if isinstance(name, str)) <= MAX_PATH_TEXT
