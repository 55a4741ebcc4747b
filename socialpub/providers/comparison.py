"""Compares a text or a link that a network shows with the sent text or link.

The comparison is lenient, because a miss causes a second post: two texts are equal when any of their readings are. The
callers exclude posts of other deliveries, and compare kind, number and time.
"""

import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from itertools import groupby
from urllib.parse import quote, unquote, urlsplit

_JOINED_MARKS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters outside Unicode's format characters: fillers and variation marks."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_HOST_LENGTH = 253
_WRITTEN_AS_IS = "!$&'()*+,;=:@/?~-._[]"


def readings(text: str) -> frozenset[str]:
    """Return the text normalized, as it is and with its HTML entities unescaped once."""
    return frozenset({normalize_text(text), normalize_text(_unescaped(text))})


def same_text(ours: str, theirs: str) -> bool:
    return not readings(ours).isdisjoint(readings(theirs))


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # `&#` and more digits than Python accepts in a number
        return text


def normalize_text(text: str) -> str:
    """Return the text in NFC, with white space collapsed and without invisible characters."""
    seen = _JOINED_MARKS.sub("", normalize_nfc(text))
    return " ".join(
        "".join(
            character for character in seen if character.isspace() or unicodedata.category(character) not in _UNSEEN
        ).split()
    )


def same_link(ours: str, theirs: str) -> bool:
    return not _link_readings(ours).isdisjoint(_link_readings(theirs))


def _link_readings(link: str) -> frozenset[str]:
    return frozenset({normalize_link(link), normalize_link(_unescaped(link))})


def normalize_link(link: str) -> str:
    """Return a link without scheme, `www.`, default port, closing slash, empty query and fragment.

    The host is in lower case and punycode, and everything after it is percent-encoded.
    """
    link = normalize_text(link)
    if not re.match(r"[a-z][a-z0-9+.-]*://", link, re.IGNORECASE):
        link = f"http://{link}"
    try:
        parts = urlsplit(link)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return link
    if port == _DEFAULT_PORTS.get(parts.scheme.lower()):
        port = None
    rest = quote(unquote(parts.path), safe=_WRITTEN_AS_IS).rstrip("/")
    query = quote(unquote(parts.query), safe=_WRITTEN_AS_IS)
    return _ascii_host(host).removeprefix("www.") + (f":{port}" if port else "") + rest + (f"?{query}" if query else "")


def _ascii_host(host: str) -> str:
    if len(host) > _MAX_HOST_LENGTH:  # not a DNS name, and the library would need a minute
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def normalize_nfc(text: str) -> str:
    """Return the text in NFC. Combining marks are sorted first, because the library sorts them in quadratic time."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(_ordered(text)))


def _ordered(text: str) -> Iterator[str]:
    for _, row in groupby(text, key=lambda character: unicodedata.combining(character) > 0):
        yield from sorted(row, key=unicodedata.combining)
