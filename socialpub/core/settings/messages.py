"""Explains a wrong configuration: the key, the value, what is accepted, and the nearest known name.

It never contains the value of a secret, nor that of an unknown key, which may be a misspelt secret.
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
    """Return the mistake as the rest of a sentence about the file, and the remedy, without values."""
    what = str(error)
    found = _AT.search(what)
    what = what[: found.start()] if found else what
    line = int(found[1]) if found and found[1] else len(text.splitlines())
    if section := _section_twice(what):
        head = f"[{section}]"
        first = next((number for number, one in enumerate(text.splitlines(), 1) if _head(one) == head), None)
        before = f", first in line {first}" if first is not None and first != line else ""
        return (
            f"has the section {head} twice: in line {line}{before}",
            f"Put all keys of {head} below one of them, and remove the other.",
        )
    if what == "Cannot overwrite a value":
        key = text.splitlines()[line - 1].partition("=")[0].strip()
        return f"sets {key} twice: again in line {line}", "Keep one of the two lines, and remove the other."
    return f"is not valid TOML in line {line}: {what}", 'Text values stand in quotes: key = "value".'


def _section_twice(what: str) -> str | None:
    match = _TWICE.fullmatch(what)
    return ".".join(re.findall(r"'([^']*)'", match[1])) if match else None


def _head(line: str) -> str:
    """Return a section's line without spaces and comment."""
    return re.sub(r"\s+", "", line.partition("#")[0])


Key = tuple[str, ...]

MAX_SHOWN = 80
"""Characters of a wrong value."""


def list_keys(section: type[BaseModel], above: Key = ()) -> dict[Key, FieldInfo]:
    """Every key of a section and the sections in it, with its field."""
    keys: dict[Key, FieldInfo] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys |= list_keys(field.annotation, (*above, name))
        else:
            keys[(*above, name)] = field
    return keys


def explain(detail: ErrorDetails, keys: Mapping[Key, FieldInfo], variables: Mapping[Key, str]) -> str:
    """Return one mistake as a sentence. `variables` names the environment variables that gave a key."""
    place = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return FieldError(place, did_you_mean(_nearest(place, keys))).sentence
    key = next((place[:length] for length in range(len(place), 0, -1) if place[:length] in keys), None)
    if key is None:
        return f"{'.'.join(place)} must be a section: write [{'.'.join(place)}] and its keys on the lines below"
    field = keys[key]
    origin = f" (from {variables[key]})" if key in variables else ""
    shown = MASK if is_secret(field.annotation) else _show(detail["input"])
    # Our own messages may quote what they were given, such as an address with a password in it.
    reason = redact(validation.describe(detail))
    return f"{'.'.join(key)}{origin} = {shown}: {reason}. Accepted: {field.description}{_default(field)}."


def _nearest(place: Key, keys: Mapping[Key, FieldInfo]) -> str | None:
    known = list(dict.fromkeys(_with_sections(keys)))
    # Somebody who is in the right section more likely misspelt one of its keys; else the name may be right and the
    # section wrong or forgotten.
    near = nearest(place[-1], [one[-1] for one in known if one[:-1] == place[:-1]])
    if near is not None:
        return ".".join((*place[:-1], near))
    elsewhere = sorted(".".join(one) for one in known if one[-1] == place[-1])
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
        # What stands for it is what its description names first.
        return ' (default "{}")'.format(str(field.description).split('"')[1])
    if isinstance(value, timedelta):
        return f" (default {_show(value)})"
    if isinstance(value, Path):
        value = str(value)
    return f" (default {json.dumps(value)})"
