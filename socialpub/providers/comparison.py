"""Whether a text or a link that a network shows is the one that it was given.

Judged kindly, since a miss costs a second post: two texts are equal when any reading makes them so. What keeps that
safe is elsewhere: ids of other deliveries are excluded, and kind, number and time must fit.
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
"""Unseen characters that Unicode does not list among the format characters: fillers and variation marks."""
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_HOST = 253
_WRITTEN_AS_IS = "!$&'()*+,;=:@/?~-._[]"


def readings(text: str) -> frozenset[str]:
    """Return the possible meanings of a text: as it is, and with its HTML entities unescaped once."""
    return frozenset({plain(text), plain(_unescaped(text))})


def same_text(ours: str, theirs: str) -> bool:
    return not readings(ours).isdisjoint(readings(theirs))


def _unescaped(text: str) -> str:
    try:
        return unescape(text)
    except ValueError:  # `&#` before more digits than Python reads as one number
        return text


def plain(text: str) -> str:
    """Return NFC with white space collapsed and without invisible characters."""
    seen = _JOINED_MARKS.sub("", nfc(text))
    return " ".join("".join(one for one in seen if one.isspace() or unicodedata.category(one) not in _UNSEEN).split())


def same_link(ours: str, theirs: str) -> bool:
    return not _link_readings(ours).isdisjoint(_link_readings(theirs))


def _link_readings(link: str) -> frozenset[str]:
    return frozenset({plain_link(link), plain_link(_unescaped(link))})


def plain_link(link: str) -> str:
    """One spelling of a link: without scheme, `www.`, default port, closing slash, empty query and fragment; the host
    in lower case and punycode, everything after it percent-encoded."""
    link = plain(link)
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
    if len(host) > _LONGEST_HOST:  # no name of DNS, and the library would take a minute for it
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return host


def nfc(text: str) -> str:
    """NFC. Long rows of combining marks are put in order first: the library sorts them in quadratic time."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", "".join(_ordered(text)))


def _ordered(text: str) -> Iterator[str]:
    for _, row in groupby(text, key=lambda character: unicodedata.combining(character) > 0):
        yield from sorted(row, key=unicodedata.combining)
