"""Secrets in logs, messages and stored details are replaced by `****`.

In doubt a word is hidden: one too many behind `token:` costs a reader a second, one too few costs an account. The time
it takes grows linearly with the length of the text, whatever the text is.
"""

import functools
import re

MASK = "****"

_WORDS = (
    r"(?:access|refresh|id|upload|oauth|bearer)[_-]?token|token_secret|(?:client|app|consumer)[_-]?secret"
    r"|code[_-]?verifier|signature|password|passwd|authorization|api[_-]?key"
)
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|token|secret|cookie|set-cookie)", re.IGNORECASE)

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


def redact(text: str) -> str:
    """`text` without bearer tokens, API keys, query strings, user names in URLs, and values named like secrets."""
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
    if " " in text or not text.isprintable():
        text = _BEARER.sub(rf"\1 {MASK}", text)
    return text


@functools.lru_cache(maxsize=512)
def is_secret_name(name: str) -> bool:
    """Whether a field of this name (`access_token`, `clientSecret`, `authorization`) may not be shown at all."""
    return _SECRET_NAME.fullmatch(name) is not None
