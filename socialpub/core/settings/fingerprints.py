"""Fingerprints of the configuration's values, which show whether two processes have the same values.

A process stores the fingerprints that it started with. Compared with those of the file, they name the keys that have
changed since. They reveal no value: each is keyed with `secret.key`.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from socialpub.core.settings.loader import KEYS, Settings
from socialpub.core.settings.values import plain

_LENGTH = 16
"""Characters of a fingerprint: enough to notice a change."""

_SAME_FOR_ALL = {("data_dir",)}
"""Two processes with another one do not know of each other."""


def compute(settings: Settings, sign: Callable[..., str]) -> dict[str, str]:
    """A fingerprint for each key that has a value of its own (`providers.x.client_id`). `sign` is `Secrets.sign`."""
    return {
        ".".join(key): sign("configuration", ".".join(key), _text(settings, key))[:_LENGTH]
        for key in KEYS
        if key not in _SAME_FOR_ALL and not _names_a_file(key)
    }


def _names_a_file(key: tuple[str, ...]) -> bool:
    """Return whether the key names the file of another key's value. Only that value counts."""
    target = (*key[:-1], key[-1].removesuffix("_file"))
    return target != key and target in KEYS


def changed_keys(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The keys whose values differ; what only another version of socialpub knows is left out."""
    return [key for key, fingerprint in now.items() if before.get(key, fingerprint) != fingerprint]


def _text(settings: Settings, key: tuple[str, ...]) -> str:
    value: Any = settings
    for part in key:
        value = getattr(value, part)
    return json.dumps(plain(value), default=str)
