"""JSON bodies: bytes in, plain values out, and an error that names the field whenever there is one to name."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import orjson

from socialpub.core.errors import FieldError, InvalidRequest


class NotUnicode(InvalidRequest):
    """Some of the text is half of a surrogate pair; `errors` names the fields. `value` is the body with U+FFFD in their
    place, so that whatever else is wrong with it can be found as well."""

    def __init__(self, errors: Sequence[FieldError], value: Any) -> None:
        super().__init__("The body holds text that is not valid Unicode.", errors)
        self.value = value


def parse(body: bytes) -> Any:
    """The value of a JSON text. Raises InvalidRequest, NotUnicode."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        _raise_reason(body, error)


def _raise_reason(body: bytes, error: orjson.JSONDecodeError) -> NoReturn:
    if not body.strip():
        raise InvalidRequest.at(message="The body is empty; a JSON object is needed.")
    # The standard library reads lone surrogates ("\ud800"): they are the one fault that belongs to a single field.
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
        errors = [
            FieldError(path, "is not valid Unicode: it holds half of a surrogate pair")
            for path in _lone_surrogates(value, ())
        ]
        replaced = _with_surrogates_replaced(value)
    except (ValueError, RecursionError):
        errors = []
    if errors:
        raise NotUnicode(errors, replaced) from None
    raise InvalidRequest.at(message=f"The body is not valid JSON: {error}.") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _lone_surrogates(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, str):
        if not _is_unicode(value):
            yield path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _lone_surrogates(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            # A name that cannot be written down cannot be in a path either: its parent is named.
            if _is_unicode(key):
                yield from _lone_surrogates(item, (*path, key))
            else:
                yield path


def _with_surrogates_replaced(value: Any) -> Any:
    """The same with U+FFFD for every half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_with_surrogates_replaced(item) for item in value]
    if isinstance(value, dict):
        return {_with_surrogates_replaced(key): _with_surrogates_replaced(item) for key, item in value.items()}
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
