"""How long X finds a text: the weighted length of twitter-text 3, in one pass.

The figure decides whether a post is refused before it is sent, so it must be X's own: it is held against the official
conformance cases. It must also be quick for every text, because a caller chooses the text.

On purpose different from the reference: emoji younger than its tables count 2 like all others.
"""

import bisect
import functools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from socialpub.providers.comparison import nfc
from socialpub.providers.preview import utf16_units
from socialpub.providers.x import links

MAX_LENGTH = 280
SCALE = 100
DEFAULT_WEIGHT = 200
URL_WEIGHT = 23 * SCALE
LIGHT = ((0x0000, 0x10FF), (0x2000, 0x200D), (0x2010, 0x201F), (0x2032, 0x2037))
LIGHT_WEIGHT = 100

_HEAVY = re.compile("[^" + "".join(f"{chr(first)}-{chr(last)}" for first, last in LIGHT) + "]")
_INVALID = frozenset("\ufffe\ufeff\uffff")
_CASHTAG = re.compile(
    rf"(?:^|[{links.SPACES}{links.DIRECTIONAL}])\$([a-zA-Z]{{1,6}}(?:[._][a-zA-Z]{{1,2}})?)"
    rf"(?=$|\s|[{links.PUNCTUATION}])"
)
_MENTION = re.compile(
    r"(?:(?<![A-Za-z0-9_!#$%&*@＠])|(?<![A-Za-z0-9_+~.\-])[Rr][Tt])[@＠]([A-Za-z0-9_]{1,20})"
    rf"(?![A-Za-z0-9_@＠{links.ACCENTED}]|://)"
)


@dataclass(frozen=True, slots=True)
class Config:
    """The figures of twitter-text's `config/v2.json` and `v3.json`, as far as they differ."""

    emoji_as_one: bool


V2 = Config(emoji_as_one=False)
V3 = Config(emoji_as_one=True)
"""In force since 2018; 2 for every emoji."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a text amounts to. `length` is in X's units (a Latin letter 1, a link 23, an emoji or a CJK character 2).

    The range ends are inclusive indices in UTF-16 units of the text as given: the last unit that still fits, and the
    last of all; 0 for an empty text.
    """

    length: int
    valid: bool
    """Not empty, at most 280, no invalid character."""
    invalid_characters: bool
    permillage: int
    urls: tuple[str, ...]
    cashtags: tuple[str, ...]
    """Without their `$`."""
    mentions: tuple[str, ...]
    """Without their `@`."""
    valid_range_end: int
    display_range_end: int


@functools.lru_cache(maxsize=16)
def weigh(text: str, config: Config = V3) -> Weighed:
    """Weigh a text as X does; any text, in time proportional to its length.

    The last ones are remembered: a post for a hundred accounts has one text, and links cost up to 20 ms.
    """
    normal = nfc(text)
    found = list(links.find(normal))
    widths = {link.start: len(link.text) for link in found}
    emojis = find_emoji(normal) if config.emoji_as_one else {}

    weight, at, fitting_end, sound = 0, 0, 0, True
    while at < len(normal):
        if at in widths:
            weight += URL_WEIGHT
            at += widths[at]
        elif at in emojis:
            weight += DEFAULT_WEIGHT
            at += emojis[at]
        else:
            weight += DEFAULT_WEIGHT if _HEAVY.match(normal, at) else LIGHT_WEIGHT
            sound = sound and normal[at] not in _INVALID
            at += 1
        if sound and weight <= MAX_LENGTH * SCALE:
            fitting_end = at

    length = weight // SCALE
    units = utf16_units(text)
    # The reference carries the whole change of length by normalization over to the end of the range.
    fitting_units = utf16_units(normal[: max(fitting_end, 1)]) + units - utf16_units(normal)
    return Weighed(
        length=length,
        valid=sound and 0 < length <= MAX_LENGTH,
        invalid_characters=not sound,
        permillage=length * 1000 // MAX_LENGTH,
        urls=tuple(link.text for link in found),
        cashtags=tuple(match[1] for match in _CASHTAG.finditer(normal)),
        mentions=tuple(match[1] for match in _MENTION.finditer(normal) if not _is_within(match.start(1), found)),
        valid_range_end=max(fitting_units - 1, 0),
        display_range_end=max(units - 1, 0),
    )


def _is_within(at: int, found: Sequence[links.Link]) -> bool:
    """Whether this place is inside of one of the links, which are in the order of the text."""
    before = bisect.bisect(found, at, key=lambda link: link.start) - 1
    return before >= 0 and at < found[before].start + len(found[before].text)


# --- emoji -----------------------------------------------------------------------------------------------------------
#
# The reference lists the sequences of 2018. Here their form is known (UTS #51: keycaps, flags, tags, skin tones,
# presentation selectors, joined figures), so that an emoji of next year counts 2 like every other. What has the form of
# no emoji (a flag of no country, a tone on a car, five joined figures) is taken apart, as in the reference.

_POINTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "emoji.toml").read_text("utf-8"))
_ONLY_WITH_SELECTOR = "\u00a9\u00ae\u2122\u265f"
"""Signs that are plain text unless U+FE0F follows."""

MAX_JOINED = 4
"""Figures in the longest joined sequence there is (a family, a kiss)."""


def _characters(name: str) -> str:
    """Return ranges such as `261D 26F7-26F9` as the inside of a character class."""
    parts = _POINTS[name].split()
    return "".join("-".join(re.escape(chr(int(point, 16))) for point in part.split("-")) for part in parts)


def _flags() -> str:
    regions = _POINTS["regions"].split()
    letters = dict.fromkeys(sorted({region[0] for region in regions}), "")
    for region in regions:
        letters[region[0]] += _regional(region[1])
    return "|".join(f"{_regional(first)}[{seconds}]" for first, seconds in letters.items())


def _regional(letter: str) -> str:
    return chr(0x1F1E6 + ord(letter) - ord("A"))


_TONE = "[\U0001f3fb-\U0001f3ff]"
_FIGURE = (
    f"(?:[{_characters('toned')}]{_TONE}"
    f"|[{_characters('text_by_default')}{_ONLY_WITH_SELECTOR}]\ufe0f"
    f"|[{_characters('text_by_default')}{_characters('colourful')}])"
)
_TAGGED = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"

SEQUENCE = re.compile(f"[0-9#*]\ufe0f?\u20e3|{_flags()}|{_TAGGED}|{_FIGURE}(?:\u200d{_FIGURE}){{0,{MAX_JOINED - 1}}}")
"""One emoji, however many code points it is made of."""


def find_emoji(text: str) -> dict[int, int]:
    """Return where each emoji begins, and its length in code points."""
    return {match.start(): len(match[0]) for match in SEQUENCE.finditer(text)}
