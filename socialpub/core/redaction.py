"""Secrets in logs, messages and stored details are replaced by `****`.

In doubt a word is hidden: one too many behind `token:` costs a reader a second, one too few costs an account. The time
it takes grows linearly with the length of the text, whatever the text is. Behind `code` and `state`, which are words of
every network's messages too, only what looks like drawn at random is hidden: a number or a word stays readable.
"""

import functools
import re
from typing import Any

from socialpub.core.held_secrets import MASK, mask

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
_SHORTEST_DRAWN = 16
_PERHAPS = re.compile(
    r"((?<![\w-])(?:code|state)\\{0,3}[\"']?\s{0,8}[:=]\s{0,8}\\{0,3}[\"']?)"
    rf"([\w.~%+/!*=:-]{{{_SHORTEST_DRAWN},}})",
    re.IGNORECASE,
)
_WORD = "(?:[A-Z]?[a-z]+(?:[A-Z][a-z]+)*|[A-Z]+|[0-9]{1,6})"
_WORDY = re.compile(rf"{_WORD}(?:[_.:-]{_WORD})*")


def redact(text: str) -> str:
    """`text` without the secrets in hand, bearer tokens, API keys, query strings, user names in URLs, cookies, and
    values named like secrets."""
    text = mask(text)
    # Looking for single characters is much cheaper than a search; most lines hold none of these.
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
        text = _PERHAPS.sub(lambda found: f"{found[1]}{MASK}" if _is_drawn(found[2]) else found[0], text)
    if " " in text or not text.isprintable():
        text = _BEARER.sub(rf"\1 {MASK}", text)
    return text


def is_secret(name: str, value: Any) -> bool:
    """Whether a field may not be shown: its name says so (`access_token`, `clientSecret`), or name and value."""
    if is_secret_name(name):
        return True
    return (
        isinstance(value, str)
        and len(value) >= _SHORTEST_DRAWN
        and _PERHAPS_SECRET_NAME.fullmatch(name) is not None
        and _is_drawn(value)
    )


def _is_drawn(value: str) -> bool:
    """Whether a long value looks drawn at random: it is not made of words and short numbers."""
    return _WORDY.fullmatch(value) is None


@functools.lru_cache(maxsize=512)
def is_secret_name(name: str) -> bool:
    """Whether a field of this name (`access_token`, `clientSecret`, `authorization`) may not be shown at all."""
    return _SECRET_NAME.fullmatch(name) is not None
