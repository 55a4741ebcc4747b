"""Makes text safe to show: secrets become `****`, and control characters become escape sequences.

Known secrets are replaced exactly: configured secrets, and tokens that were sealed, opened or sent shortly before. A
network may quote a request in any form, so patterns do not find every token. Patterns find other secrets. After `code`
and `state`, which networks also use as words, only random values are hidden. The time grows linearly with the text.
"""

import functools
import json
import re
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast
from urllib.parse import quote, quote_plus

T = TypeVar("T")

MASK = "****"
MIN_SECRET_LENGTH = 8
"""The minimum number of characters. Shorter secrets are for tests, and may be part of any word."""
_MAX_IN_USE = 16

_Forms = tuple[str, ...]

_in_use: ContextVar[tuple[tuple[str, _Forms], ...]] = ContextVar("socialpub_held_secrets", default=())
"""The last secrets of this thread or task, the newest last. One exchange with a network needs fewer."""
_configured: dict[str, _Forms] = {}
"""The secrets of the configuration, for the whole process."""


def add_secrets(*secrets: str | None) -> None:
    """Mask these secrets in all output of this thread or task, until `_MAX_IN_USE` newer secrets replace them."""
    for secret in secrets:
        if secret is not None and len(secret) >= MIN_SECRET_LENGTH:
            forms_by_secret = dict(_in_use.get())
            forms = forms_by_secret.pop(secret, None) or _forms(secret)
            _in_use.set((*tuple(forms_by_secret.items())[1 - _MAX_IN_USE :], (secret, forms)))


def add_configured_secrets(*secrets: str) -> None:
    """Mask these secrets in all output of this process."""
    for secret in secrets:
        if len(secret) >= MIN_SECRET_LENGTH:
            _configured[secret] = _forms(secret)


def mask(text: str) -> str:
    """Return the text without the known secrets in their usual encodings."""
    if len(text) < MIN_SECRET_LENGTH:
        return text
    for forms in (*_configured.values(), *(forms for _, forms in _in_use.get())):
        for form in forms:
            if form in text:
                text = text.replace(form, MASK)
    return text


def mask_value(value: T) -> T:
    """Mask the texts in dictionaries, lists and fields of data classes."""
    return cast(T, _mask_value(value)) if _in_use.get() or _configured else value


def _mask_value(value: Any) -> Any:
    match value:
        case str():
            return mask(value)
        case dict():
            return {name: _mask_value(inner) for name, inner in value.items()}
        case list():
            return [_mask_value(inner) for inner in value]
        case tuple():
            return tuple(_mask_value(inner) for inner in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value,
                **{member.name: _mask_value(getattr(value, member.name)) for member in fields(value) if member.init},
            )
        case _:
            return value


def _forms(secret: str) -> _Forms:
    """Return the secret as it is, in a URL, in JSON, and in JSON inside JSON."""
    in_json = json.dumps(secret)[1:-1]
    slashed = in_json.replace("/", "\\/")
    written = [quote(secret, safe=""), quote_plus(secret), quote(secret, safe="/:=+~!*'(),;@&$")]
    lower = [re.sub("%..", lambda match: match[0].lower(), form) for form in written]
    every = [secret, in_json, slashed, json.dumps(in_json)[1:-1], json.dumps(slashed)[1:-1], *written, *lower]
    # The longest form is first: a shorter form would leave a part of the secret.
    return tuple(sorted(dict.fromkeys(every), key=len, reverse=True))


_WORDS = (
    r"(?:access|refresh|id|upload|oauth|bearer)[_-]?token|token_secret|(?:client|app|consumer)[_-]?secret"
    r"|verifier|auth(?:orization)?[_-]?code|signature|password|passwd|authorization|api[_-]?key"
)
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|code[_-]?verifier|token|secret|cookie|set-cookie)", re.IGNORECASE)
_PERHAPS_SECRET_NAME = re.compile(r"code|state", re.IGNORECASE)

_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=%|:-]{8,}", re.IGNORECASE)
_API_KEY = re.compile(r"\bspk_[A-Za-z0-9_-]+")
_USER_INFO = re.compile(r"(?<=://)[^/\s?#@\"'<>]{1,512}@")
_QUERY = re.compile(r"(?<=[\w/.~%)\]-])\?[^\s\"'<>?=]*=[^\s\"'<>]*")
_URL_QUERY = re.compile(r"(\bhttps?://[^\s?\"'<>]{1,2048})\?[^\s\"'<>]+", re.IGNORECASE)
# A name, perhaps in quotes, then = or :, then a value: quoted, quoted inside a quoted text (\\"), or a bare word.
_NAMED = re.compile(
    rf"((?:{_WORDS})\\{{0,3}}[\"']?\s{{0,8}}[:=]\s{{0,8}})"
    r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|\\{1,3}\"[^\"]*\"?|(?:(?:bearer|basic)\s+)?[^\s&,;(){}\[\]\"']+)",
    re.IGNORECASE | re.DOTALL,
)
_COOKIE = re.compile(
    r"(\b(?:set-)?cookie\\{0,3}[\"']?\s{0,8}[:=]\s{0,8})"
    r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|\\{1,3}\"[^\"]*\"?|[^\r\n]+)",
    re.IGNORECASE | re.DOTALL,
)
_MIN_RANDOM_LENGTH = 16
_PERHAPS = re.compile(
    r"((?<![\w-])(?:code|state)\\{0,3}[\"']?\s{0,8}[:=]\s{0,8}\\{0,3}[\"']?)"
    rf"([\w.~%+/!*=:-]{{{_MIN_RANDOM_LENGTH},}})",
    re.IGNORECASE,
)
_WORD = "(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+|[0-9]{1,6})"
_WORDY = re.compile(rf"{_WORD}(?:[_.:-]{_WORD})*")


def redact(text: str) -> str:
    """Return the text without known secrets, bearer tokens, API keys, query strings, cookies and user names in URLs.

    Values with names of secrets are also hidden.
    """
    text = mask(text)
    # A test for a single character is much faster than a pattern, and most lines contain none of them.
    if "?" in text:
        text = _URL_QUERY.sub(rf"\1?{MASK}", text)
        text = _QUERY.sub(f"?{MASK}", text)
    if "@" in text:
        text = _USER_INFO.sub(f"{MASK}@", text)
    if "spk_" in text:
        text = _API_KEY.sub(f"spk_{MASK}", text)
    if ":" in text or "=" in text:
        text = _NAMED.sub(rf"\1{MASK}", text)
        text = _COOKIE.sub(rf"\1{MASK}", text)
        text = _PERHAPS.sub(lambda match: f"{match[1]}{MASK}" if _is_random(match[2]) else match[0], text)
    if " " in text or not text.isprintable():
        text = _BEARER.sub(rf"\1 {MASK}", text)
    return text


def is_secret(name: str, value: Any) -> bool:
    """Return whether a field must be hidden, because of its name (`access_token`) or its name and value."""
    if is_secret_name(name):
        return True
    return (
        isinstance(value, str)
        and len(value) >= _MIN_RANDOM_LENGTH
        and _PERHAPS_SECRET_NAME.fullmatch(name) is not None
        and _is_random(value)
    )


def _is_random(value: str) -> bool:
    """Return whether a long value is random, without words and short numbers."""
    return _WORDY.fullmatch(value) is None


@functools.lru_cache(maxsize=512)
def is_secret_name(name: str) -> bool:
    """Return whether a field of this name (`access_token`, `clientSecret`, `authorization`) must be hidden."""
    return _SECRET_NAME.fullmatch(name) is not None


# --- control characters ----------------------------------------------------------------------------------------------

# Texts come from callers, networks and files. A control character can change other text on a terminal, and a direction
# mark can reverse text. Letters of every script stay unchanged.

_CONTROLS = r"\x00-\x1f\x7f-\x9f"
_FORMATS = (
    r"\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f"
)
"""The categories Cf, Zl and Zp of Unicode 16."""
_INVISIBLE = re.compile(rf"[{_CONTROLS}{_FORMATS}\ud800-\udfff]")

_EMOJI = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_JOINED_EMOJI = re.compile(f"(?<={_EMOJI})\ufe0f?\u200d(?={_EMOJI})|(?<=\ufe0f)\u200d(?={_EMOJI})")
"""A joiner between two emoji, which makes one emoji of them, such as a family or a flag."""


def visible(text: str, keep: str = "") -> str:
    """Escape control, direction and zero-width characters (`\\x1b`, `\\u202e`), except those in `keep`.

    Joined emoji stay joined.
    """
    if text.isprintable():
        return text
    joiners = {place for match in _JOINED_EMOJI.finditer(text) for place in range(*match.span())}

    def spelled(match: re.Match[str]) -> str:
        char = match[0]
        return char if char in keep or match.start() in joiners else repr(char)[1:-1]

    return _INVISIBLE.sub(spelled, text)


def visible_json(text: str) -> str:
    """Return equal JSON with these characters escaped."""
    if text.isprintable():
        return text
    return _INVISIBLE.sub(lambda match: match[0] if match[0] == "\n" else _json_name(match[0]), text)


def _json_name(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
