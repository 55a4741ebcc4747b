"""The graphemes of a text.

They follow UAX 29 by general categories and ranges, without the tables of Unicode. That is exact for all common
texts. Rare signs of some Indic scripts differ.
"""

import unicodedata
from collections.abc import Iterator

ZERO_WIDTH_JOINER = "\u200d"
FLAGS = ("\U0001f1e6", "\U0001f1ff")
SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
TAGS = ("\U000e0020", "\U000e007f")
PICTOGRAPHS = (
    ("\u00a9", "\u00a9"), ("\u00ae", "\u00ae"), ("\u203c", "\u203c"), ("\u2049", "\u2049"), ("\u2122", "\u2122"),
    ("\u2139", "\u2139"), ("\u2190", "\u21ff"), ("\u2300", "\u23ff"), ("\u2460", "\u24ff"), ("\u25a0", "\u27bf"),
    ("\u2900", "\u297f"), ("\u2b00", "\u2bff"), ("\u3030", "\u3030"), ("\u303d", "\u303d"), ("\u3297", "\u3299"),
    ("\U0001f000", "\U0001f1e5"), ("\U0001f200", "\U0001f3fa"), ("\U0001f400", "\U0001faff"),
)  # fmt: skip
HANGUL_L, HANGUL_V, HANGUL_T = ("\u1100", "\u115f"), ("\u1160", "\u11a7"), ("\u11a8", "\u11ff")
HANGUL_SYLLABLES = ("\uac00", "\ud7a3")
PREPENDED = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
CONJUNCT_LINKERS = frozenset("\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d\u1039\u17d2")
"""The signs between two consonants that form one grapheme."""
CONSONANTS = (
    ("\u0915", "\u0939"), ("\u0958", "\u095f"), ("\u0978", "\u097f"), ("\u0995", "\u09b9"), ("\u09dc", "\u09df"),
    ("\u09f0", "\u09f1"), ("\u0a95", "\u0ab9"), ("\u0b15", "\u0b39"), ("\u0b5c", "\u0b5f"), ("\u0c15", "\u0c39"),
    ("\u0d15", "\u0d3a"), ("\u1000", "\u102a"), ("\u1780", "\u17b3"),
)  # fmt: skip
SPACING_LETTERS = frozenset("\u0e33\u0eb3")
"""Vowels that belong to the letter before them although they are letters."""
NOT_SPACING = frozenset("\u102b\u102c\u1038\u1062\u1063\u1064\u1067\u1068\u1069\u106a\u106b\u106c\u106d\u1083")
"""The spacing marks that begin a grapheme."""


def _is_in(char: str, *ranges: tuple[str, str]) -> bool:
    return any(first <= char <= last for first, last in ranges)


def _extends(char: str) -> bool:
    """Return whether a character belongs to the one before it."""
    if char == ZERO_WIDTH_JOINER or char == "\u200c" or _is_in(char, SKIN_TONES, TAGS):
        return True
    kind = unicodedata.category(char)
    return char in SPACING_LETTERS or kind in ("Mn", "Me") or (kind == "Mc" and char not in NOT_SPACING)


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp", "Cs") or (
        unicodedata.category(char) == "Cf"
        and char not in PREPENDED
        and char not in "\u200c\u200d"
        and not _is_in(char, TAGS)
    )


def _hangul(char: str) -> str:
    if _is_in(char, HANGUL_SYLLABLES):
        return "LV" if (ord(char) - 0xAC00) % 28 == 0 else "LVT"
    for name, span in (("L", HANGUL_L), ("V", HANGUL_V), ("T", HANGUL_T)):
        if _is_in(char, span):
            return name
    return ""


HANGUL_PAIRS = {"L": ("L", "V", "LV", "LVT"), "LV": ("V", "T"), "V": ("V", "T"), "LVT": ("T",), "T": ("T",)}


def count_graphemes(text: str) -> int:
    return sum(1 for _ in _grapheme_starts(text))


def _grapheme_starts(text: str) -> Iterator[int]:
    flags = 0
    """The flag letters just before this character."""
    base = ""
    """The last character that extends nothing."""
    linked = False
    """Whether a virama came after the base."""
    for index, char in enumerate(text):
        before = text[index - 1] if index else ""
        if not before or not _continues(char, before, base, flags, linked):
            yield index
        flags = flags + 1 if _is_in(char, FLAGS) else 0
        if char in CONJUNCT_LINKERS:
            linked = True
        elif char == "\u200c" or unicodedata.category(char) in ("Mc", "Lo") or not _extends(char):
            base, linked = char, False


def _continues(char: str, before: str, base: str, flags: int, linked: bool) -> bool:
    if before == "\r" and char == "\n":
        return True
    if _is_control(before) or _is_control(char):
        return False
    if _extends(char) or before in PREPENDED:
        return True
    if _hangul(char) in HANGUL_PAIRS.get(_hangul(before), ()):
        return True
    if _is_in(char, FLAGS) and flags % 2:
        return True
    if before == ZERO_WIDTH_JOINER and _is_in(char, *PICTOGRAPHS) and _is_in(base, *PICTOGRAPHS):
        return True
    return linked and _is_in(char, *CONSONANTS) and _is_in(base, *CONSONANTS)
