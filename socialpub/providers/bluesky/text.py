"""The links, mentions and hashtags of a text, and their facets.

A facet marks bytes of the text in UTF-8. The server checks neither offsets nor overlaps, and readers see a wrong facet
as wrong text.

Mentions and hashtags are those of Bluesky's own app, except that a hashtag ends before a link. Links are those of
`providers/links.py`. Of two marks that overlap, only the first counts.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from socialpub.providers.domains import CURRENT_TLDS
from socialpub.providers.links import WebLink, find_links
from socialpub.providers.preview import utf16_units

_SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""White space in JavaScript, whose patterns the official library uses."""
_UNSEEN = "\xad\u2060\u200b-\u200d\u20e2"
_BEGINS = rf"(?<![^{_SPACES}(])"

_MENTION = re.compile(rf"{_BEGINS}@([a-zA-Z0-9.-]+)\b", re.ASCII)
_TAG = re.compile(rf"(?<![^{_SPACES}])[#＃](?!\ufe0f)([^{_SPACES}{_UNSEEN}]+)")
_CASHTAG = re.compile(rf"{_BEGINS}\$([A-Za-z][A-Za-z0-9]{{0,4}})(?![^{_SPACES}.,;:!?)\"'\u2019])")
_MAX_TAG = 64
_MAX_LINK_BYTES = 8192


class MarkKind(StrEnum):
    LINK = "link"
    MENTION = "mention"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a text: `text[start:end]`. `value` is the complete URL, the handle without @, or the tag without #."""

    kind: MarkKind
    start: int
    end: int
    value: str


def sent_text(text: str) -> str:
    """Return the text of the record. Like Bluesky's app, it has no white space at its end. Line breaks are \\n."""
    return text.replace("\r\n", "\n").rstrip()


def find_marks(text: str) -> list[Mark]:
    """Return the links, mentions and hashtags from left to right, without overlaps."""
    links = [link for link in find_links(text) if len(link.url.encode()) <= _MAX_LINK_BYTES]
    marked = (Mark(MarkKind.LINK, link.start, link.end, link.url) for link in links)
    in_order = sorted(
        (*_mentions(text), *marked, *_tags(text, links), *_cashtags(text)), key=lambda mark: (mark.start, -mark.end)
    )
    marks: list[Mark] = []
    for mark in in_order:
        if not marks or mark.start >= marks[-1].end:
            marks.append(mark)
    return marks


def list_handles(text: str) -> list[str]:
    """Return the handles that a text mentions, in lower case, each once."""
    handles = (mark.value.lower() for mark in find_marks(text) if mark.kind is MarkKind.MENTION)
    return list(dict.fromkeys(handles))


@lru_cache(maxsize=8)
def first_link(text: str) -> str | None:
    """Return the complete URL of the first link. Each account of a post asks for the same text."""
    return next((mark.value for mark in find_marks(text) if mark.kind is MarkKind.LINK), None)


def facets(text: str, dids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the facets of a text.

    `dids` has the account of each handle in lower case. A mention of another handle stays plain text.
    """
    marks = [mark for mark in find_marks(text) if mark.kind is not MarkKind.MENTION or mark.value.lower() in dids]
    facets_of_text = []
    for mark, (start, end) in zip(marks, _byte_ranges(text, marks), strict=True):
        match mark.kind:
            case MarkKind.LINK:
                feature = {"$type": "app.bsky.richtext.facet#link", "uri": mark.value}
            case MarkKind.MENTION:
                feature = {"$type": "app.bsky.richtext.facet#mention", "did": dids[mark.value.lower()]}
            case MarkKind.TAG:
                feature = {"$type": "app.bsky.richtext.facet#tag", "tag": mark.value}
        facets_of_text.append({"index": {"byteStart": start, "byteEnd": end}, "features": [feature]})
    return facets_of_text


def _byte_ranges(text: str, marks: Sequence[Mark]) -> Iterator[tuple[int, int]]:
    at, reached = 0, 0
    for mark in marks:
        start = reached + len(text[at : mark.start].encode())
        at, reached = mark.end, start + len(text[mark.start : mark.end].encode())
        yield start, reached


def _mentions(text: str) -> Iterator[Mark]:
    for match in _MENTION.finditer(text):
        if _is_domain(match[1]) or match[1].endswith(".test"):
            yield Mark(MarkKind.MENTION, match.start(), match.end(), match[1])


def _tags(text: str, links: Sequence[WebLink]) -> Iterator[Mark]:
    starts = [link.start for link in links if link.has_scheme]
    for match in _TAG.finditer(text):
        tag = match[1]
        end = min([len(tag), *(at - match.start(1) for at in starts[bisect_left(starts, match.start(1)) :][:1])])
        while end and _is_punctuation(tag[end - 1]):
            end -= 1
        tag = tag[:end]
        named = any(not _is_punctuation(character) and character not in "0123456789" for character in tag)
        if named and utf16_units(tag) <= _MAX_TAG:
            yield Mark(MarkKind.TAG, match.start(), match.start() + 1 + len(tag), tag)


def _cashtags(text: str) -> Iterator[Mark]:
    for match in _CASHTAG.finditer(text):
        yield Mark(MarkKind.TAG, match.start(), match.end(), match[0].upper())


def _is_domain(name: str) -> bool:
    return "." in name and name.rpartition(".")[2] in CURRENT_TLDS


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
