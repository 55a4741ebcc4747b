"""The graphemes of a text, counted as Bluesky's server counts them (extended grapheme clusters of UAX 29).

The server refuses a text that is too long, so a wrong count here refuses a good post or loses one at its hour. Tests
compare the count with that of the server's own library.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

_POINTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "graphemes.toml").read_text("utf-8"))


def _characters(*names: str) -> str:
    """Return ranges such as `0300-036F 0483` as the content of a character class."""
    parts = [part for name in names for part in _POINTS[name].split()]
    return "".join("-".join(re.escape(chr(int(point, 16))) for point in part.split("-")) for part in parts)


_ZWJ, _ZWNJ = "\u200d", "\u200c"
_CONTROL = f"{_characters('control')}\r\n\ud800-\udfff"
_EXTEND = f"[{_characters('extend', 'linker')}{_ZWNJ}]"
_AFTER = f"[{_characters('extend', 'linker', 'spacing')}{_ZWJ}{_ZWNJ}]"
_BEFORE_LINKER = f"[{_characters('extend')}{_ZWJ}]"
_AROUND_LINKER = f"[{_characters('extend', 'linker')}{_ZWJ}]"
_LINKER = f"[{_characters('linker')}]"
_CONSONANT = f"[{_characters('consonant')}]"
_EMOJI = f"[{_characters('pictographic')}]"
_FLAG = "[\U0001f1e6-\U0001f1ff]"
_LEADING, _VOWEL, _TRAILING = (f"[{_characters(name)}]" for name in ("leading", "vowel", "trailing"))
_OPEN_SYLLABLE = f"[{''.join(map(chr, range(0xAC00, 0xD7A4, 28)))}]"
_SYLLABLE = "[\uac00-\ud7a3]"

_CORE = "|".join(
    (
        f"{_FLAG}{_FLAG}",
        f"{_LEADING}*+(?:{_OPEN_SYLLABLE}{_VOWEL}*+|{_SYLLABLE}|{_VOWEL}++){_TRAILING}*+",
        f"{_LEADING}++",
        f"{_TRAILING}++",
        f"{_EMOJI}(?:{_EXTEND}*+{_ZWJ}{_EMOJI})*+",
        f"{_CONSONANT}(?:{_BEFORE_LINKER}*+{_LINKER}{_AROUND_LINKER}*+{_CONSONANT})*+",
        f"[^{_CONTROL}]",
    )
)
CLUSTER = re.compile(f"\r\n|[{_CONTROL}]|[{_characters('prepend')}]*+(?:{_CORE})?+{_AFTER}*+")
"""One grapheme. The parts are possessive, so the time is proportional to the length of the text."""


def split_graphemes(text: str) -> Iterator[str]:
    return (match[0] for match in CLUSTER.finditer(text) if match[0])


def count_graphemes(text: str) -> int:
    return sum(1 for _ in split_graphemes(text))


def cut_graphemes(text: str, most: int) -> str:
    """Return the first `most` graphemes or less. A text that is cut ends with an ellipsis."""
    ends = [match.end() for match, _ in zip(CLUSTER.finditer(text), range(most), strict=False)]
    if len(ends) < most or ends[-1] == len(text):
        return text
    return text[: ends[-2] if most > 1 else 0].rstrip() + "…"
