"""Compares a text that X shows with the text that it was given.

X changes a text: links become t.co, media and quoted posts add one at the end, `&` is written as in HTML, a long text
is cut, and a reply begins with the names of the people it answers. The comparison goes word by word, in linear time: a
caller chooses the text.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from socialpub.providers.comparison import readings, same_link
from socialpub.providers.x import limits
from socialpub.providers.x.text import weigh

SHORT_LINK = re.compile(r"https?://t\.co/[A-Za-z0-9]++")
PARTS = re.compile(f"({SHORT_LINK.pattern})")
CUT_SHORT = re.compile(rf"…\s*+(?:{SHORT_LINK.pattern}\s*+)?$")
NAME = re.compile(r"@[A-Za-z0-9_]{1,15}")


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text as a list of X has it."""

    text: str
    targets: Mapping[str, str] = field(default_factory=dict)
    """Where its short links lead, as far as X says so."""
    appended: frozenset[str] = frozenset()
    """The short links that X may have added at the end."""
    may_append: bool = False
    """Whether a short link without a known target may be such a link."""
    cut: bool = False
    """Whether the text may be only the beginning."""

    def is_appended(self, word: str) -> bool:
        unknown = self.may_append and word not in self.targets
        return SHORT_LINK.fullmatch(word) is not None and (unknown or word in self.appended)


@dataclass(frozen=True, slots=True)
class SentText:
    """A text as it was sent."""

    words: tuple[Sequence[str], ...]
    """Of each of its readings."""
    is_long: bool

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(_words(text), weigh(text).length > limits.TEXT_LENGTH)

    def is_shown_by(self, shown: ShownText, *, names_in_front: bool = False) -> bool:
        """Compare. `names_in_front`: X may have added the names of the people who are answered."""
        beginning = self._beginning_in(shown)
        if beginning is not None:
            theirs = _words(beginning)
            return any(_begins(ours, words, shown) for ours, words in self._pairs(theirs, names_in_front))
        return any(
            _alike(ours, words, shown) or (words and shown.is_appended(words[-1]) and _alike(ours, words[:-1], shown))
            for ours, words in self._pairs(_words(shown.text), names_in_front)
        )

    def _pairs(
        self, shown: tuple[Sequence[str], ...], names_in_front: bool
    ) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
        for ours in self.words:
            for theirs in shown:
                yield ours, theirs
                rest = _without_names(ours)
                # A text of names alone would equal any other names.
                if names_in_front and (rest or not ours):
                    yield rest, _without_names(theirs)

    def _beginning_in(self, shown: ShownText) -> str | None:
        """Return the beginning of a long text that X cut; None when the text is whole."""
        cut = CUT_SHORT.search(shown.text) if self.is_long and shown.cut else None
        if cut is None:
            return None
        beginning = shown.text[: cut.start()]
        # X shows about as much as fits into an ordinary post. A short "Read… https://…" is no cut text.
        return beginning if weigh(beginning).length >= limits.TEXT_LENGTH // 2 else None


def _words(text: str) -> tuple[Sequence[str], ...]:
    return tuple(reading.split() for reading in readings(text))


def _without_names(words: Sequence[str]) -> Sequence[str]:
    count = next((at for at, word in enumerate(words) if not NAME.fullmatch(word)), len(words))
    return words[count:]


def _begins(ours: Sequence[str], theirs: Sequence[str], shown: ShownText) -> bool:
    """Return whether theirs are the first words of ours; the last word may be cut."""
    *whole, last = theirs or [""]
    rest = ours[len(whole) :]
    return bool(rest) and _alike(ours[: len(whole)], whole, shown) and rest[0].startswith(PARTS.split(last, 1)[0])


def _alike(ours: Sequence[str], theirs: Sequence[str], shown: ShownText) -> bool:
    return len(ours) == len(theirs) and all(_same_word(*pair, shown) for pair in zip(ours, theirs, strict=True))


def _same_word(ours: str, theirs: str, shown: ShownText) -> bool:
    if ours == theirs:
        return True
    parts = PARTS.split(theirs)
    if len(parts) == 1:
        return "://" in ours and "://" in theirs and same_link(ours, theirs)
    short_links, written = parts[1::2], _written_between(parts[::2], ours)
    return len(written) == len(short_links) and all(
        _leads_to(text, short_link, shown.targets) for text, short_link in zip(written, short_links, strict=True)
    )


def _written_between(pieces: list[str], word: str) -> list[str]:
    """Return what the word has between these pieces; fewer texts when a piece is missing. The first place that fits is
    correct: X ends a link at what follows it."""
    first, *middle, last = pieces
    if not word.startswith(first) or not word.endswith(last):
        return []
    found, at, end = [], len(first), len(word) - len(last)
    for piece in middle:
        following = word.find(piece, at + 1, end)
        if following < 0:
            return []
        found.append(word[at:following])
        at = following + len(piece)
    return [*found, word[at:end]] if at < end else []


def _leads_to(written: str, short_link: str, targets: Mapping[str, str]) -> bool:
    """Return whether the short link may replace what was written. A link without a known target replaces any link."""
    target = targets.get(short_link)
    return written == short_link or ("." in written if target is None else same_link(written, target))
