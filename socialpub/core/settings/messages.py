"""Messages about a wrong configuration: the key, the value, the accepted values, and the nearest known name.

A message never contains the value of a secret or of an unknown key, which may be a misspelled secret.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from socialpub.core import units, validation
from socialpub.core.errors import FieldError
from socialpub.core.secrets.redaction import MASK, redact
from socialpub.core.settings.values import is_secret
from socialpub.core.validation import did_you_mean, nearest

_AT = re.compile(r" ?\(at (?:line (\d+), column \d+|end of document)\)$")
_TWICE = re.compile(r"Cannot (?:declare|mutate immutable namespace) (\(.*\))(?: twice)?")


def explain_toml(text: str, error: tomllib.TOMLDecodeError) -> tuple[str, str]:
    """Return the end of a sentence about the file, and the hint, without values."""
    what = str(error)
    match = _AT.search(what)
    what = what[: match.start()] if match else what
    line = int(match[1]) if match and match[1] else len(text.splitlines())
    if twice := _TWICE.fullmatch(what):
        head = ".".join(re.findall(r"'([^']*)'", twice[1])).join("[]")
        heads = (re.sub(r"\s+", "", line_text.partition("#")[0]) for line_text in text.splitlines())
        first = next((number for number, line_text in enumerate(heads, 1) if line_text == head), None)
        also = "the second time in" if first in (None, line) else f"in line {first} and"
        return (
            f"has the section {head} twice, {also} line {line}",
            f"Move all keys of {head} into one section, and remove the other section.",
        )
    if what == "Cannot overwrite a value":
        key = text.splitlines()[line - 1].partition("=")[0].strip()
        return f"sets {key} twice, the second time in line {line}", "Remove one of the two lines."
    return f"is not valid TOML in line {line}: {what}", 'Write text values in quotes: key = "value".'


Key = tuple[str, ...]

MAX_SHOWN = 80
"""Characters of a wrong value."""


def list_keys(section: type[BaseModel], above: Key = ()) -> dict[Key, FieldInfo]:
    """Return every key of a section and its inner sections, with the field."""
    keys: dict[Key, FieldInfo] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys |= list_keys(field.annotation, (*above, name))
        else:
            keys[(*above, name)] = field
    return keys


def explain(detail: ErrorDetails, keys: Mapping[Key, FieldInfo], variables: Mapping[Key, str]) -> str:
    """Return one mistake as a sentence. `variables` contains the environment variables that set a key."""
    place = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return FieldError(place, did_you_mean(_nearest(place, keys))).sentence
    key = next((place[:length] for length in range(len(place), 0, -1) if place[:length] in keys), None)
    if key is None:
        return f"{'.'.join(place)} must be a section: write [{'.'.join(place)}], and its keys on the lines below"
    field = keys[key]
    origin = f" (from {variables[key]})" if key in variables else ""
    value = MASK if is_secret(field.annotation) else _show(detail["input"])
    # A message may quote the value, such as a URL with a password.
    reason = redact(validation.describe(detail))
    return f"{'.'.join(key)}{origin} = {value}: {reason}. Accepted: {field.description}{_default(field)}."


def _nearest(place: Key, keys: Mapping[Key, FieldInfo]) -> str | None:
    names = list(dict.fromkeys(_with_sections(keys)))
    # A key of the same section is more likely than the same key of another section.
    near = nearest(place[-1], [name[-1] for name in names if name[:-1] == place[:-1]])
    if near is not None:
        return ".".join((*place[:-1], near))
    elsewhere = sorted(".".join(name) for name in names if name[-1] == place[-1])
    return " or ".join(elsewhere) or None


def _with_sections(keys: Mapping[Key, FieldInfo]) -> Iterator[Key]:
    for key in keys:
        for length in range(1, len(key) + 1):
            yield key[:length]


def _show(value: object) -> str:
    if isinstance(value, timedelta):
        return f'"{units.duration(value)}"'
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    text = redact(text)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr) or value == "":
        return ""
    if value is None:
        # The description begins with the word for None.
        return ' (default "{}")'.format(str(field.description).split('"')[1])
    if isinstance(value, timedelta):
        return f" (default {_show(value)})"
    if isinstance(value, Path):
        value = str(value)
    return f" (default {json.dumps(value)})"
