"""Texts of posts: their weighted length, what X links in them, and how it returns them.

Everything here takes time in proportion to the text's length.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

LINK_WEIGHT = 23
EMOJI_WEIGHT = 2
FORBIDDEN = frozenset("\ufffe\ufeff\uffff")
LIGHT = ((0x0000, 0x10FF), (0x2000, 0x200D), (0x2010, 0x201F), (0x2032, 0x2037))
"""Code points of weight 1; all others weigh 2."""

# Possessive quantifiers throughout: a run is taken whole or not at all.
_HOST = re.compile(
    r"(?P<scheme>(?i:https?)://)(?P<host>[^\W_][\w-]*+(?:\.[^\W_][\w-]*+)*+)"
    r"|(?P<bare>[A-Za-z0-9\u00c0-\u024f][A-Za-z0-9\u00c0-\u024f_-]*+"
    r"(?:\.[A-Za-z0-9\u00c0-\u024f][A-Za-z0-9\u00c0-\u024f_-]*+)*+)"
)
_REST = re.compile(
    r"(?::[0-9]{1,5}+)?+(?P<path>/[A-Za-z0-9\u00a1-\u052f!*';:=+,.$/%#\[\]_~@|&()?-]*+)?+"
    r"(?P<query>\?[A-Za-z0-9!?*'@();:&=+,.$/%#\[\]_~|-]*+)?+"
)
_TRAILING = "!*';:,.?([@|$%"
_EMOJI = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"
    "|[0-9#*]\ufe0f?\u20e3"
    "|\U0001f3f4[\U000e0020-\U000e007f]++"
    "|[\u00a9\u00ae]\ufe0f"
    "|(?:[\u203c-\u3299\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]?+)"
    "(?:\u200d[\u2190-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff][\ufe0f\U0001f3fb-\U0001f3ff]?+)*+"
)
_CASHTAG = re.compile(r"(?<![^\s(\"'.,!?])\$(?P<tag>[A-Za-z]{1,6}(?:[._][A-Za-z]{1,2})?)(?![\w])")
_MENTION = re.compile(r"(?<![\w@/.])@(?P<tag>[A-Za-z0-9_]{1,15})(?![\w@])")


@cache
def top_level_domains() -> frozenset[str]:
    lines = (files("tests.stand_ins") / "tlds.txt").read_text("utf-8").splitlines()
    return frozenset(name for line in lines if not line.startswith("#") for name in line.split())


@dataclass(frozen=True, slots=True)
class TextLink:
    start: int
    end: int
    url: str
    """As in the text."""

    @property
    def expanded(self) -> str:
        return self.url if "://" in self.url else f"http://{self.url}"

    @property
    def display(self) -> str:
        shown = self.url.split("://", 1)[-1].removeprefix("www.")
        return shown if len(shown) <= 26 else shown[:26] + "…"


def links(text: str) -> Iterator[TextLink]:
    """Return what X links, in order: addresses with a scheme, and bare domains that end in a top-level domain."""
    position = 0
    while found := _HOST.search(text, position):
        start, position = found.start(), found.end()
        bare = found["bare"] is not None
        host = found["bare"] if bare else found["host"]
        before = text[start - 1] if start else ""
        after = text[position] if position < len(text) else ""
        if after in ("@", "+") or (before and before in ("@#$＠＃-_./" if bare else "@#$＠＃")):
            continue
        size = _domain_length(host)
        if not size:
            continue
        end = found.start("bare" if bare else "host") + size
        if size == len(host) and (rest := _REST.match(text, end)):
            end = _without_trailing(text, end, rest)
        yield TextLink(start, end, text[start:end])
        position = max(position, end)


def _domain_length(host: str) -> int:
    """Return how much of a run of labels is a domain, or 0. Of `example.com.then` it is the beginning."""
    labels = host.split(".")
    end = len(host)
    for count in range(len(labels), 1, -1):
        name = labels[count - 1].lower()
        if name in top_level_domains() or name.startswith("xn--"):
            domain = labels[:count]
            if "_" in domain[-2] or not all(map(_is_label, domain)):
                return 0
            return end
        end -= len(labels[count - 1]) + 1
    return 0


def _is_label(label: str) -> bool:
    if len(label) > 63 or label.endswith(("-", "_")):
        return False
    return label.isascii() or len(label.encode("punycode")) + len("xn--") <= 63


def _without_trailing(text: str, begin: int, rest: "re.Match[str]") -> int:
    end = rest.end()
    opened = text.count("(", begin, end) - text.count(")", begin, end)
    while end > begin + 1:
        last = text[end - 1]
        if last == ")" and opened < 0:
            opened += 1
        elif last not in _TRAILING:
            break
        elif last == "(":
            opened -= 1
        end -= 1
    return end


def weighted_length(text: str) -> int:
    """Return the weighted length, of which 280 fit."""
    text = unicodedata.normalize("NFC", text)
    total, position = 0, 0
    for link in links(text):
        total += _plain_length(text[position : link.start]) + LINK_WEIGHT
        position = link.end
    return total + _plain_length(text[position:])


def _plain_length(text: str) -> int:
    if text.isascii():
        # A keycap needs a character beyond ASCII.
        return len(text)
    total, position = 0, 0
    for emoji in _EMOJI.finditer(text):
        total += sum(map(_weight, text[position : emoji.start()])) + EMOJI_WEIGHT
        position = emoji.end()
    return total + sum(map(_weight, text[position:]))


def _weight(character: str) -> int:
    point = ord(character)
    return 1 if any(low <= point <= high for low, high in LIGHT) else 2


def cashtags(text: str) -> list[str]:
    return [found["tag"] for found in _CASHTAG.finditer(text)] if "$" in text else []


def wrap(text: str, media_page: str = "", media_keys: tuple[str, ...] = ()) -> tuple[str, dict[str, list[Any]]]:
    """Return the text with t.co links instead of its links, and one for media, and its entities: only links, counted
    in code points of the new text."""
    pieces: list[str] = []
    urls: list[dict[str, Any]] = []
    position = length = 0
    for link in links(text):
        plain = text[position : link.start]
        short = _short(link.url)
        start = length + len(plain)
        length = start + len(short)
        pieces += (plain, short)
        urls.append(
            {"start": start, "end": length, "url": short, "expanded_url": link.expanded, "display_url": link.display}
        )
        position = link.end
    pieces.append(text[position:])
    new = "".join(pieces)
    if media_page:
        short = _short(media_page)
        new = f"{new} {short}" if new else short
        shown = f"pic.x.com/{short.rsplit('/', 1)[1]}"
        urls.extend(
            {
                "start": len(new) - len(short),
                "end": len(new),
                "url": short,
                "expanded_url": media_page,
                "display_url": shown,
                "media_key": key,
            }
            for key in media_keys
        )
    return new, {"urls": urls} if urls else {}


def _short(url: str) -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    digest = hashlib.sha256(url.encode("utf-8", "surrogatepass")).digest()
    return "https://t.co/" + "".join(alphabet[byte % len(alphabet)] for byte in digest[:10])


def mentions(text: str) -> set[str]:
    """Return the usernames in lower case."""
    return {found["tag"].lower() for found in _MENTION.finditer(text)} if "@" in text else set()
