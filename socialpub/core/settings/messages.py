"""What a wrong configuration is answered with: the key, the value, what is accepted, and the nearest known name.

The value of a secret is never part of it, nor that of an unknown key, which may be a misspelt secret.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from socialpub.core import durations, validation
from socialpub.core.errors import FieldError
from socialpub.core.held_secrets import MASK
from socialpub.core.redaction import redact
from socialpub.core.settings.values import is_secret
from socialpub.core.spelling import nearest, unknown

Key = tuple[str, ...]

MAX_SHOWN = 80
"""Characters of a wrong value."""


def keys_of(section: type[BaseModel], above: Key = ()) -> dict[Key, FieldInfo]:
    """Every key of a section and the sections in it, with its field."""
    keys: dict[Key, FieldInfo] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys |= keys_of(field.annotation, (*above, name))
        else:
            keys[(*above, name)] = field
    return keys


def explain(detail: ErrorDetails, keys: Mapping[Key, FieldInfo], variables: Mapping[Key, str]) -> str:
    """One mistake as a sentence. `variables` names the environment variables that gave a key."""
    place = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return FieldError(place, unknown(_nearest(place, keys))).sentence
    key = next((place[:length] for length in range(len(place), 0, -1) if place[:length] in keys), None)
    if key is None:
        return f"{'.'.join(place)} must be a section: write [{'.'.join(place)}] and its keys on the lines below"
    field = keys[key]
    origin = f" (from {variables[key]})" if key in variables else ""
    shown = MASK if is_secret(field.annotation) else _show(detail["input"])
    # Our own messages may quote what they were given, such as an address with a password in it.
    reason = redact(validation.message(detail))
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
        return f'"{durations.write(value)}"'
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
