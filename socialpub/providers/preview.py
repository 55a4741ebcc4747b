"""A post as its readers would see it, and the length of its texts. Pure.

The dashboard shows previews before and after posting. Nothing that is sent depends on them.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from socialpub.providers.links import find_links

PartKind = Literal["text", "link", "tag"]


@dataclass(frozen=True, slots=True)
class TextMeasure:
    label: str
    used: int
    allowed: int
    unit: str = "characters"
    """May include details: `characters (a link counts 23)`."""

    @property
    def left(self) -> int:
        return self.allowed - self.used


@dataclass(frozen=True, slots=True)
class TextPart:
    """A part of the text as it is shown. A `tag` is a linked name or topic."""

    text: str
    kind: PartKind = "text"


@dataclass(frozen=True, slots=True)
class TextMark:
    """A link or tag in a text: `text[start:end]` is shown as `shown`."""

    start: int
    end: int
    shown: str
    kind: PartKind


@dataclass(frozen=True, slots=True)
class Preview:
    """The visible parts of a post. `media` are positions in the post's media, in the order that readers see."""

    text: tuple[TextPart, ...] = ()
    more: tuple[TextPart, ...] = ()
    """The part of the text that readers see on demand."""
    title: str = ""
    link: str = ""
    """The host of the post's link."""
    media: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    """The network's own labels on the post: `Paid partnership`."""
    remarks: tuple[str, ...] = ()
    """Sentences about facts that the preview cannot show."""
    measures: tuple[TextMeasure, ...] = ()


def split_by_marks(text: str, marks: Iterable[TextMark]) -> tuple[TextPart, ...]:
    """Return the parts of a text with marks. Of two overlapping marks, the first counts."""
    parts, at = [], 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start < at:
            continue
        if mark.start > at:
            parts.append(TextPart(text[at : mark.start]))
        parts.append(TextPart(mark.shown, mark.kind))
        at = mark.end
    if at < len(text):
        parts.append(TextPart(text[at:]))
    return tuple(parts)


def mark_tags(found: Iterable[re.Match[str]]) -> list[TextMark]:
    return [TextMark(match.start(), match.end(), match[0], "tag") for match in found]


def mark_links(text: str) -> list[TextMark]:
    return [TextMark(link.start, link.end, text[link.start : link.end], "link") for link in find_links(text)]


def split_text(text: str, limit: int) -> tuple[str, str]:
    """Return the first `limit` characters or less, and the rest, cut between words if possible."""
    if len(text) <= limit:
        return text, ""
    at = max(text.rfind(" ", limit // 2, limit + 1), text.rfind("\n", limit // 2, limit + 1))
    at = at if at > 0 else limit
    return text[:at], text[at:]


def truncate(text: str, max_units: int) -> str:
    """Return the first `max_units` UTF-16 code units or less."""
    if utf16_units(text) <= max_units:
        return text
    beginning = text[:max_units]
    while utf16_units(beginning) > max_units:
        beginning = beginning[: len(beginning) - max(1, (utf16_units(beginning) - max_units) // 2)]
    return beginning


def read_host(link: str) -> str:
    """Return the host of a URL without `www.`, or an empty text for a URL without a host."""
    try:
        return (urlsplit(link).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 code units: characters outside the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)
