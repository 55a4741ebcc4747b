"""How a wrong configuration is told: the key, the value, what is accepted, and the nearest known name.

The value of a secret is never part of it, nor that of an unknown key, which may be a misspelt secret.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from socialpub.core import durations
from socialpub.core.redaction import MASK, redact
from socialpub.core.spelling import nearest

Key = tuple[str, ...]

LONGEST_SHOWN = 80


def keys_of(section: type[BaseModel], above: Key = ()) -> dict[Key, FieldInfo]:
    """Every key of a section and the sections in it, with its field."""
    keys: dict[Key, FieldInfo] = {}
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys |= keys_of(field.annotation, (*above, name))
        else:
            keys[(*above, name)] = field
    return keys


def explain(detail: Mapping[str, Any], keys: Mapping[Key, FieldInfo], variables: Mapping[Key, str]) -> str:
    """One mistake as a sentence. `detail` is one of pydantic's errors; `variables` names those that gave a key."""
    place = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"unknown key {'.'.join(place)}{_meant_key(place, keys)}"
    key = next((place[:length] for length in range(len(place), 0, -1) if place[:length] in keys), None)
    if key is None:
        return f"{'.'.join(place)} must be a section: write [{'.'.join(place)}] and its keys on the lines below"
    field = keys[key]
    origin = f" (from {variables[key]})" if key in variables else ""
    secret = field.annotation is SecretStr
    cause = detail.get("ctx", {}).get("error")
    # pydantic's own sentences show no value, but ours may quote what they were given.
    reason = redact(str(cause) if cause else str(detail["msg"]).replace("Input should be", "must be"))
    shown = MASK if secret else _show(detail["input"])
    return f"{'.'.join(key)}{origin} = {shown}: {reason}. Accepted: {field.description}{_default(field)}."


def meant(name: str, known: Iterable[str]) -> str:
    """`: did you mean …?` with the nearest known name; where none is near, where to look."""
    near = nearest(name, known, cutoff=0.6)
    return f": did you mean {near}?" if near else ": remove it; config.example.toml shows every key"


def _meant_key(place: Key, keys: Mapping[Key, FieldInfo]) -> str:
    # Somebody who is in the right section more likely misspelt one of its keys; else the last word may be right and
    # the section wrong or forgotten.
    beside = {".".join(key) for key in keys if key[:-1] == place[:-1]}
    sections = {".".join(key[:length]) for key in keys for length in range(1, len(key))}
    beside |= {name for name in sections if name.split(".")[:-1] == list(place[:-1])}
    near = nearest(place[-1], (name.rpartition(".")[2] for name in sorted(beside)), cutoff=0.6)
    if near:
        return f": did you mean {'.'.join((*place[:-1], near))}?"
    elsewhere = sorted(".".join(key) for key in keys if key[-1] == place[-1])
    if elsewhere:
        return f": did you mean {' or '.join(elsewhere)}?"
    return meant(".".join(place), [".".join(key) for key in keys])


def _show(value: object) -> str:
    if isinstance(value, timedelta):
        return f'"{durations.write(value)}"'
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    text = redact(text)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _default(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, SecretStr) or value == "":
        return ""
    if value is None:
        return ' (default "forever")'
    if isinstance(value, timedelta):
        return f" (default {_show(value)})"
    if isinstance(value, Path):
        value = str(value)
    return f" (default {json.dumps(value)})"
