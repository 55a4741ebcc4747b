"""A post as its readers would see it, and how much of each text a network takes. Pure.

The dashboard shows it before and after posting. Nothing that is sent is made from it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

PartKind = Literal["text", "link", "tag"]

_LINK = re.compile(r"https?://[^\s<>\"]+", re.IGNORECASE)
_ENDS_SENTENCE = ".,;:!?)]}'"


@dataclass(frozen=True, slots=True)
class TextMeasure:
    """How long a network finds a text, in its own units."""

    label: str
    used: int
    allowed: int
    unit: str = "characters"
    """With what is peculiar about it: `characters (a link counts 23)`."""

    @property
    def left(self) -> int:
        """Negative when it is too long."""
        return self.allowed - self.used


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of text as it is shown. A `tag` is a name, a topic or the like that leads somewhere on the network."""

    text: str
    kind: PartKind = "text"


@dataclass(frozen=True, slots=True)
class TextMark:
    """A stretch of a text that is no plain text: `text[start:end]` is shown as `shown`."""

    start: int
    end: int
    shown: str
    kind: PartKind


@dataclass(frozen=True, slots=True)
class Preview:
    """`media` are positions in the post's media, as many as readers see, in their order."""

    text: tuple[TextPart, ...] = ()
    more: tuple[TextPart, ...] = ()
    """The part of the text that readers see on demand."""
    title: str = ""
    link: str = ""
    """The host that the post as a whole leads to."""
    media: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    """The network's own words on the post: `Paid partnership`."""
    remarks: tuple[str, ...] = ()
    """Whole sentences about what the preview cannot show."""
    measures: tuple[TextMeasure, ...] = ()


def parts(text: str, marks: Iterable[TextMark]) -> tuple[TextPart, ...]:
    """Return the text with its marks. Of two overlapping marks the first counts."""
    found, at = [], 0
    for mark in sorted(marks, key=lambda mark: (mark.start, -mark.end)):
        if mark.start < at:
            continue
        if mark.start > at:
            found.append(TextPart(text[at : mark.start]))
        found.append(TextPart(mark.shown, mark.kind))
        at = mark.end
    if at < len(text):
        found.append(TextPart(text[at:]))
    return tuple(found)


def tags(found: Iterable[re.Match[str]]) -> list[TextMark]:
    return [TextMark(one.start(), one.end(), one[0], "tag") for one in found]


def written_links(text: str) -> list[TextMark]:
    """Return addresses with their scheme, shown as they are written."""
    found = []
    for link in _LINK.finditer(text):
        shown = link[0].rstrip(_ENDS_SENTENCE)
        found.append(TextMark(link.start(), link.start() + len(shown), shown, "link"))
    return found


def cut(text: str, limit: int) -> tuple[str, str]:
    """Return a beginning of at most `limit` characters, and the rest; cut between words where possible."""
    if len(text) <= limit:
        return text, ""
    at = max(text.rfind(" ", limit // 2, limit + 1), text.rfind("\n", limit // 2, limit + 1))
    at = at if at > 0 else limit
    return text[:at], text[at:]


def within(text: str, max_units: int) -> str:
    """Return the beginning of at most `max_units` UTF-16 code units."""
    if utf16_units(text) <= max_units:
        return text
    beginning = text[:max_units]
    while utf16_units(beginning) > max_units:
        beginning = beginning[: len(beginning) - max(1, (utf16_units(beginning) - max_units) // 2)]
    return beginning


def host(link: str) -> str:
    """Return the host of an address as readers see it, without `www.`; empty when it has none."""
    try:
        return (urlsplit(link).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 code units: characters beyond the basic plane count twice."""
    return len(text) + sum(character > "\uffff" for character in text)
