"""The very secrets in hand: tokens that were sealed, opened or sent a moment ago, taken out of every text by `redact`.

A network may quote a request in whatever words it likes, so no pattern finds each token. These are known exactly. They
are remembered without anybody's doing: by whoever seals or opens them (`crypto.py`), and by every call to a network.
"""

import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import quote, quote_plus

T = TypeVar("T")

MASK = "****"
SHORTEST = 8
"""Characters of a secret. Shorter ones are made up for a trial, and may be a part of any word."""
_MOST = 16

_Forms = tuple[str, ...]

_held: ContextVar[tuple[tuple[str, _Forms], ...]] = ContextVar("socialpub_held_secrets", default=())
"""The last ones of this thread or task, the newest last: more than one conversation needs."""
_configured: dict[str, _Forms] = {}
"""The app's own, in hand of the whole process."""


def hold(*secrets: str | None) -> None:
    """Have these taken out of what this thread or task shows from now on, until enough others have come after them."""
    for secret in secrets:
        if secret is not None and len(secret) >= SHORTEST:
            others = tuple(one for one in _held.get() if one[0] != secret)
            _held.set((*others[1 - _MOST :], (secret, _forms(secret))))


def hold_configured(*secrets: str) -> None:
    """The same for the whole process, and as long as it lives."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            _configured[secret] = _forms(secret)


def mask(text: str) -> str:
    """`text` without the secrets in hand, in whatever usual form they are quoted there."""
    for form in _all_forms():
        if form in text:
            text = text.replace(form, MASK)
    return text


def masked(value: T) -> T:
    """The same for a value of any kind: the texts in mappings, lists and fields of data classes."""
    return cast(T, _masked(value)) if _held.get() or _configured else value


def _masked(value: Any) -> Any:
    match value:
        case str():
            return mask(value)
        case dict():
            return {name: _masked(inner) for name, inner in value.items()}
        case list():
            return [_masked(inner) for inner in value]
        case tuple():
            return tuple(_masked(inner) for inner in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{one.name: _masked(getattr(value, one.name)) for one in fields(value) if one.init})
        case _:
            return value


def _all_forms() -> Iterator[str]:
    for forms in _configured.values():
        yield from forms
    for _, forms in _held.get():
        yield from forms


def _forms(secret: str) -> _Forms:
    """As it is, in a URL (of either spelling), in JSON, and in JSON that is quoted in JSON."""
    in_json = json.dumps(secret)[1:-1]
    slashed = in_json.replace("/", "\\/")
    written = [quote(secret, safe=""), quote_plus(secret), quote(secret, safe="/:=+~!*'(),;@&$")]
    lower = [_lower_escapes(one) for one in written]
    every = [secret, in_json, slashed, json.dumps(in_json)[1:-1], json.dumps(slashed)[1:-1], *written, *lower]
    # The longest first: what is left of a form would show the rest of it.
    return tuple(sorted(dict.fromkeys(every), key=len, reverse=True))


def _lower_escapes(text: str) -> str:
    head, *rest = text.split("%")
    return "%".join([head, *(one[:2].lower() + one[2:] for one in rest)])
