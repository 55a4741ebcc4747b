"""X's length and links of a text: the weighted length and the URLs of twitter-text 3.

The length decides whether a post is refused before it is sent, so tests compare it with the official conformance cases.
The time is proportional to the length of the text, because a caller chooses the text. The reference tries its pattern
for links at every character. This module examines every run of labels once, from its end.

Two differences are intended. Emoji younger than the reference's tables count 2 like all others. Letter case is ASCII,
and the length of a domain is that of DNS, without most of IDNA's prohibitions.
"""

import bisect
import functools
import itertools
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from socialpub.providers.comparison import normalize_nfc
from socialpub.providers.domains import TLDS
from socialpub.providers.preview import utf16_units

SPACES = r"\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
DIRECTIONAL = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
INVALID = r"\ufffe\ufeff\uffff"
PUNCTUATION = r"!'#%&()*+,\\\-./:;<=>?@\[\]^_{|}~$"
ACCENTED = (
    r"\xc0-\xd6\xd8-\xf6\xf8-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f\u0272\u0289\u028b\u02bb"
    r"\u0300-\u036f\u1e00-\u1eff"
)
_CYRILLIC = r"\u0400-\u04ff"

_NOT_IN_LABELS = f"{SPACES}{DIRECTIONAL}{INVALID}"
_LABEL = f"[^{PUNCTUATION}{_NOT_IN_LABELS}]"
_NO_NEIGHBOR = f"A-Za-z0-9@＠$#＃{INVALID}"
"""A link does not begin after one of these."""

_CHAIN = re.compile(f"(?:{_LABEL}|[-_.])+")
_BEGINNING = re.compile(f"(?<![{_NO_NEIGHBOR}]){_LABEL}")
_NEIGHBOR = re.compile(f"[^{_NO_NEIGHBOR}]")
_SCHEMES = ("https://", "http://")
_PORT = re.compile(r":[0-9]++")
_PUNYCODE = re.compile(r"[Xx][Nn]--[-0-9A-Za-z]++")
_LATIN = re.compile(f"[-a-zA-Z0-9{ACCENTED}]")

_IN_PATH = rf"[a-zA-Z0-9!*';:=+,.$/%#\[\]\-\u2013_~@|&{_CYRILLIC}{ACCENTED}]"
_ENDS_PATH = rf"[a-zA-Z0-9=_#/+\-{_CYRILLIC}{ACCENTED}]"
_PATH_RUN = re.compile(f"{_IN_PATH}*+")
_PATH_PART = re.compile(f"{_IN_PATH}*{_ENDS_PATH}")
_PARENTHESES = re.compile(rf"\((?:{_IN_PATH}++\)|{_IN_PATH}*+\({_IN_PATH}++\){_IN_PATH}*+\))")

_IN_QUERY = r"[a-zA-Z0-9!?*'@();:&=+$/%#\[\]\-_.,~|]"
_QUERY_TEXT = rf"\?{_IN_QUERY}*[a-zA-Z0-9\-_&=#/]"
_QUERY = re.compile(_QUERY_TEXT)
_SHORTENED = re.compile(rf"https?://t\.co/([a-z0-9]++)(?:{_QUERY_TEXT})?", re.IGNORECASE | re.ASCII)

_MAX_URL = 4096
_MAX_LABEL = 63
_MAX_SHORTENED = 40
_UNSEEN = re.compile("[\u00ad\u034f\u1806\u180b-\u180d\u200b-\u200d\u2060\ufe00-\ufe0f]")
"""Characters that IDNA removes from a label (RFC 3454, B.1)."""
_TAG = re.compile("[\U000e0001\U000e0020-\U000e007f]")
"""Characters of flags, forbidden in a label (RFC 3454, C.9)."""
_LABEL_DOTS = re.compile("[.\u3002\uff0e\uff61]")

_TLD_LENGTHS: dict[str, tuple[int, ...]] = {
    first: tuple(sorted(set(map(len, group)), reverse=True))
    for first, group in itertools.groupby(sorted(TLDS), key=lambda tld: tld[0])
}
_AFTER_TLD = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@+-")


@dataclass(frozen=True, slots=True)
class Link:
    """A link. `start` and `len(text)` are in code points of the searched text."""

    start: int
    text: str


def find_links(text: str) -> Iterator[Link]:
    """Yield every link from left to right, without overlaps."""
    taken = -1  # A link begins after this position, because its neighbor must not belong to a link.
    for chain in _CHAIN.finditer(text):
        if chain.end() > taken and "." in chain[0]:
            labels = _Labels(text, chain.start(), chain.end())
            while (match := labels.next_match(taken)) is not None:
                scheme_at, start, stop = match
                taken, end_of_path = _tail(text, stop)
                if scheme_at is None:
                    yield from _bare(text, start, stop, taken, end_of_path)
                else:
                    yield from _with_scheme(text, scheme_at, start, stop, taken)


class _Labels:
    """One run of labels, dots, hyphens and underscores, split at its dots.

    `tld_ends[i]`: the end of a top-level domain that begins with label i, or 0.
    `reaches[i]`: the end of the longest domain that begins with the whole label i, or 0.
    """

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        dots = [at for at in range(start, end) if text[at] == "."]
        self.starts = [start, *(dot + 1 for dot in dots)]
        self.ends = [*dots, end]
        self.tld_ends = [0, *(_tld_end(text, dot + 1, len(text)) for dot in dots)]
        self.reaches = [0] * len(self.starts)
        for i in range(len(dots) - 1, -1, -1):
            label = text[self.starts[i] : self.ends[i]]
            if label and label[0] not in "-_" and label[-1] not in "-_":
                self.reaches[i] = self.reaches[i + 1] or ("_" not in label and self.tld_ends[i + 1]) or 0

    def next_match(self, taken: int) -> tuple[int | None, int, int] | None:
        """Return the start of the scheme (None without), the start and the end of the next domain after `taken`."""
        scheme_at = self._scheme_at(taken)
        if scheme_at is not None:
            first = self._domain_in(0, self.start, whole=True)
            if first is not None:
                return scheme_at, *first
        last = len(self.starts) - 1
        for i in range(bisect.bisect_right(self.starts, max(taken + 1, self.start)) - 1, last):
            found = self._domain_in(i, max(taken + 1, self.starts[i]), whole=False)
            if found is not None:
                return None, *found
        return None

    def _scheme_at(self, taken: int) -> int | None:
        for scheme in _SCHEMES:
            at = self.start - len(scheme)
            if at > taken and self.text[at : self.start].lower() == scheme:
                return at if at == 0 or _may_precede(self.text[at - 1]) else None
        return None

    def _domain_in(self, i: int, at: int, *, whole: bool) -> tuple[int, int] | None:
        """Return the first domain that begins inside label i, not before `at`, or with `whole` exactly at `at`."""
        end = self.ends[i]
        if i == len(self.starts) - 1 or at >= end or self.text[end - 1] in "-_":
            return None
        stop = self.reaches[i + 1]
        if not stop:
            # The last label before the top-level domain may not have underscores.
            stop = self.tld_ends[i + 1]
            after_underscore = self.text.rfind("_", at, end) + 1
            if not stop or (whole and after_underscore):
                return None
            at = max(at, after_underscore)
        if whole:
            return (at, stop) if self.text[at] not in "-_" else None
        begins = _BEGINNING.search(self.text, at, end)
        if begins is not None and begins.start() == 0 and _may_precede(self.text[0]):
            # The reference searches for a neighbor first, even at the beginning of the text.
            begins = _BEGINNING.match(self.text, 1, end) or begins
        return (begins.start(), stop) if begins else None


def _may_precede(character: str) -> bool:
    return _NEIGHBOR.match(character) is not None


def _tld_end(text: str, at: int, limit: int) -> int:
    for length in _TLD_LENGTHS.get(text[at : at + 1].lower(), ()):
        end = at + length
        if end <= limit and text[at:end].lower() in TLDS and (end == limit or text[end] not in _AFTER_TLD):
            return end
    match = _PUNYCODE.match(text, at, limit)
    return match.end() if match else 0


def _tail(text: str, stop: int) -> tuple[int, bool]:
    """Return the end of port, path and query after a domain, and whether there is a path."""
    if port := _PORT.match(text, stop):
        stop = port.end()
    has_path = text.startswith("/", stop)
    if has_path:
        stop = _path_end(text, stop + 1)
    query = _QUERY.match(text, stop)
    return (query.end() if query else stop), has_path


def _path_end(text: str, at: int) -> int:
    """Return the end of a path: after a character that may end a path, or after parentheses that follow directly."""
    end = at
    while True:
        if part := _PATH_PART.match(text, at):
            end = part.end()
        run = _PATH_RUN.match(text, at)
        group = _PARENTHESES.match(text, run.end() if run else at)
        if group is None:
            return end
        at = group.end()
        if group.start() == end:
            end = at


def _with_scheme(text: str, scheme_at: int, start: int, stop: int, end: int) -> Iterator[Link]:
    if not _fits(end - scheme_at + start - scheme_at, text[start:stop]):
        return
    shortened = _SHORTENED.match(text, scheme_at, end)
    if shortened is None:
        yield Link(scheme_at, text[scheme_at:end])
    elif len(shortened[1]) <= _MAX_SHORTENED:
        yield Link(scheme_at, shortened[0])


def _bare(text: str, start: int, stop: int, end: int, has_path: bool) -> Iterator[Link]:
    """Yield the links without a scheme: only Latin parts of a domain count, and the last part has the path."""
    if start and text[start - 1] in "-_./":
        return
    domains = list(_latin_domains(text, start, stop))
    if not domains or not _fits(end - start + len("https://"), text[start:stop]):
        return
    for number, (first, last) in enumerate(domains, 1):
        carries_path = has_path and number == len(domains)
        yield Link(first, text[first:last] + (text[stop:end] if carries_path else ""))


def _latin_domains(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    begin, reached, left = -1, 0, start
    for dot in (at for at in range(start, stop) if text[at] == "."):
        tail = dot
        while tail > left and _LATIN.match(text, tail - 1):
            tail -= 1
        if tail > left or begin < 0:
            if reached:
                yield begin, reached
            begin, reached = (tail if tail < dot else -1), 0
        if begin >= 0:
            reached = _tld_end(text, dot + 1, stop) or reached
        left = dot + 1
    if reached:
        yield begin, reached


def _fits(length: int, domain: str) -> bool:
    """Return whether labels and URL are within the limits. `length` counts the scheme twice, like the reference."""
    labels = _LABEL_DOTS.split(domain)
    sizes = [len(label) if label.isascii() else _encoded_length(_UNSEEN.sub("", label)) for label in labels]
    if not all(0 < size <= _MAX_LABEL for size in sizes):
        return False
    return length + sum(sizes) + len(sizes) - 1 - len(domain) <= _MAX_URL


def _encoded_length(label: str) -> int:
    """Return the length of a label in DNS (`xn--…`, RFC 3492), or one above the limit when it is longer."""
    if len(label) > 4 * _MAX_LABEL or _TAG.search(label):
        # Folding joins at most three characters, and long rows of combining marks would take too long.
        return _MAX_LABEL + 1
    folded = unicodedata.normalize("NFKC", label.casefold())
    if folded.isascii():
        return len(folded)
    # Every character needs at least one digit, so a longer label is not encoded.
    if len(folded) > _MAX_LABEL or folded[:4].lower() == "xn--":
        return _MAX_LABEL + 1
    return len("xn--") + len(folded.encode("punycode"))


# --- the weighted length ----------------------------------------------------------------------------------------------

MAX_LENGTH = 280
SCALE = 100
DEFAULT_WEIGHT = 200
URL_WEIGHT = 23 * SCALE
LIGHT = ((0x0000, 0x10FF), (0x2000, 0x200D), (0x2010, 0x201F), (0x2032, 0x2037))
LIGHT_WEIGHT = 100

_HEAVY = re.compile("[^" + "".join(f"{chr(first)}-{chr(last)}" for first, last in LIGHT) + "]")
_INVALID = frozenset("\ufffe\ufeff\uffff")
_CASHTAG = re.compile(
    rf"(?:^|[{SPACES}{DIRECTIONAL}])\$([a-zA-Z]{{1,6}}(?:[._][a-zA-Z]{{1,2}})?)"
    rf"(?=$|\s|[{PUNCTUATION}])"
)
_MENTION = re.compile(
    r"(?:(?<![A-Za-z0-9_!#$%&*@＠])|(?<![A-Za-z0-9_+~.\-])[Rr][Tt])[@＠]([A-Za-z0-9_]{1,20})"
    rf"(?![A-Za-z0-9_@＠{ACCENTED}]|://)"
)


@dataclass(frozen=True, slots=True)
class Weighed:
    length: int
    """X's units: a Latin letter 1, a link 23, an emoji or a CJK character 2."""
    valid: bool
    """Not empty, length at most 280, no invalid character."""
    invalid_characters: bool
    urls: tuple[str, ...]
    cashtags: tuple[str, ...]
    """Without their `$`."""
    mentions: tuple[str, ...]
    """Without their `@`."""
    valid_range_end: int
    """The index of the last UTF-16 unit of the text that fits; 0 for an empty text."""


@functools.lru_cache(maxsize=16)
def weigh(text: str) -> Weighed:
    """Return X's weight of a text.

    The last results are cached: a post for a hundred accounts has one text, and links take up to 20 ms.
    """
    normal = normalize_nfc(text)
    found = list(find_links(normal))
    widths = {link.start: len(link.text) for link in found}
    emojis = find_emoji(normal)

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
    # The reference adds the whole change of length by normalization to the end of the range.
    fitting_units = utf16_units(normal[: max(fitting_end, 1)]) + utf16_units(text) - utf16_units(normal)
    return Weighed(
        length=length,
        valid=sound and 0 < length <= MAX_LENGTH,
        invalid_characters=not sound,
        urls=tuple(link.text for link in found),
        cashtags=tuple(match[1] for match in _CASHTAG.finditer(normal)),
        mentions=tuple(match[1] for match in _MENTION.finditer(normal) if not _is_within(match.start(1), found)),
        valid_range_end=max(fitting_units - 1, 0),
    )


def _is_within(at: int, found: Sequence[Link]) -> bool:
    before = bisect.bisect(found, at, key=lambda link: link.start) - 1
    return before >= 0 and at < found[before].start + len(found[before].text)


# --- emoji -----------------------------------------------------------------------------------------------------------
#
# The reference lists the sequences of 2018. This module matches their form (UTS #51: keycaps, flags, tags, skin tones,
# presentation selectors, joined figures), so that future emoji count 2. A sequence without the form of an emoji (a flag
# of no country, a tone on a car, five joined figures) counts by its parts, like in the reference.

_POINTS: dict[str, str] = tomllib.loads((Path(__file__).parent / "emoji.toml").read_text("utf-8"))
_ONLY_WITH_SELECTOR = "\u00a9\u00ae\u2122\u265f"
"""Plain text unless U+FE0F follows."""

MAX_JOINED = 4
"""The number of figures in the longest joined sequence (a family, a kiss)."""


def _characters(name: str) -> str:
    """Return ranges such as `261D 26F7-26F9` as the content of a character class."""
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
    f"|[{_characters('text_by_default')}{_characters('colorful')}])"
)
_TAGGED = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"

SEQUENCE = re.compile(f"[0-9#*]\ufe0f?\u20e3|{_flags()}|{_TAGGED}|{_FIGURE}(?:\u200d{_FIGURE}){{0,{MAX_JOINED - 1}}}")
"""One emoji of any number of code points."""


def find_emoji(text: str) -> dict[int, int]:
    return {match.start(): len(match[0]) for match in SEQUENCE.finditer(text)}
