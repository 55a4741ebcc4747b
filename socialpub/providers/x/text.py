"""X's length and links of a text: the weighted length and the URLs of twitter-text 3.

The length decides whether a post is refused before it is sent, so tests compare it with the official library. The time
is proportional to the length of the text, because a caller chooses the text. The reference tries its pattern for links
at every character. This module examines every run of labels once, from its end.

The reference is JavaScript, whose patterns see UTF-16 code units. So this module searches a text in which every
character beyond U+FFFF is its two surrogates (`_to_units`).
"""

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from socialpub.providers.comparison import normalize_nfc
from socialpub.providers.domains import TLDS

SPACES = r"\t-\r \x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
DIRECTIONAL = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
INVALID = r"\ufffe\ufeff\uffff"
PUNCTUATION = r"!'#%&()*+,\\\-./:;<=>?@\[\]^_{|}~$"
ACCENTED = (
    r"\xc0-\xd6\xd8-\xf6\xf8-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f\u0272\u0289\u028b\u02bb"
    r"\u0300-\u036f\u1e00-\u1eff"
)
_ANY_CASE = r"\u0260\u0269\u0275\u0280\u0283\u0288\u028a\u028c\u0292\u0399\u03b9\u1fbe\u2c65\u2c66\u2c7e\u2c7f"
"""The other case of characters of `ACCENTED`."""
_CYRILLIC = r"\u0400-\u04ff\u1c80-\u1c87"

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
_LATIN = re.compile(f"[-a-zA-Z0-9{ACCENTED}{_ANY_CASE}]")

_IN_PATH = rf"[a-zA-Z0-9!*';:=+,.$/%#\[\]\-\u2013_~@|&{_CYRILLIC}{ACCENTED}{_ANY_CASE}]"
_ENDS_PATH = rf"[a-zA-Z0-9=_#/+\-{_CYRILLIC}{ACCENTED}{_ANY_CASE}]"
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
_LABEL_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_BEYOND_ASCII = re.compile("[^ -~]")
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


def _upper(text: str) -> str:
    """Return the text as JavaScript compares it without letter case."""
    if text.isascii():
        return text.upper()
    return "".join(
        upper if len(upper := letter.upper()) == 1 and (upper > "\x7f" or letter <= "\x7f") else letter
        for letter in text
    )


_TLDS = frozenset(map(_upper, TLDS))
_TLD_LENGTHS: dict[str, tuple[int, ...]] = {
    first: tuple(sorted(set(map(len, group)), reverse=True))
    for first, group in itertools.groupby(sorted(_TLDS), key=lambda tld: tld[0])
}
_AFTER_TLD = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@+-")


@dataclass(frozen=True, slots=True)
class Link:
    """A link. `start` and `len(text)` are in code points of the searched text."""

    start: int
    text: str


def find_links(text: str) -> Iterator[Link]:
    """Yield every link from left to right, without overlaps."""
    units = _to_units(text)
    at = reached = 0
    for link in _find_links(units):
        reached += len(_to_text(units[at : link.start]))
        at = link.start
        yield Link(reached, _to_text(link.text))


def _to_units(text: str) -> str:
    """Return the text with two surrogates for each character beyond U+FFFF."""
    return _TWO_UNITS.sub(
        lambda found: chr(0xD7C0 + (ord(found[0]) >> 10)) + chr(0xDC00 + (ord(found[0]) & 0x3FF)), text
    )


def _to_text(units: str) -> str:
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _find_links(text: str) -> Iterator[Link]:
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
            match = self._domain_in(i, max(taken + 1, self.starts[i]), whole=False)
            if match is not None:
                return None, *match
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
    for length in _TLD_LENGTHS.get(_upper(text[at : at + 1]), ()):
        end = at + length
        if end <= limit and _upper(text[at:end]) in _TLDS and (end == limit or text[end] not in _AFTER_TLD):
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
    reached = start
    for number, (first, last) in enumerate(domains, 1):
        # The reference searches for the name again, so it may find the name inside a longer word before.
        begin = text.find(text[first:last], reached)
        reached = begin + last - first
        carries_path = has_path and number == len(domains)
        yield Link(begin, text[first:last] + (text[stop:end] if carries_path else ""))


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
    if domain.startswith("xn--") and not any(_latin_domains(domain, 0, len(domain))):
        return False
    return length <= _MAX_URL and all(_is_short(label) for label in domain.split("."))


def _is_short(label: str) -> bool:
    """Return whether a label, with each of its parts encoded as in DNS (`xn--…`, RFC 3492), is within the limit."""
    length = -1
    for part in _LABEL_DOTS.split(label):
        # Every character needs at least one digit, so a longer part is not encoded.
        if len(points := _to_text(part)) > _MAX_LABEL:
            return False
        encoded = f"xn--{points.encode('punycode').decode()}" if _BEYOND_ASCII.search(part) else part
        length += 1 + len(encoded)
    return length <= _MAX_LABEL


# --- the weighted length ----------------------------------------------------------------------------------------------

MAX_LENGTH = 280
SCALE = 100
DEFAULT_WEIGHT = 200
URL_WEIGHT = 23 * SCALE
LIGHT = ((0x0000, 0x10FF), (0x2000, 0x200D), (0x2010, 0x201F), (0x2032, 0x2037))
LIGHT_WEIGHT = 100

_HEAVY = re.compile("[^" + "".join(f"{chr(first)}-{chr(last)}" for first, last in LIGHT) + "]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
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
    written = _to_units(text)
    normal = written if text.isascii() else _to_units(normalize_nfc(text))
    links = list(_find_links(normal))
    widths = {link.start: len(link.text) for link in links}
    emojis = {match.start(): len(match[0]) for match in EMOJI.finditer(normal)}

    weight, at, fitting_end, sound = 0, 0, 0, True
    while at < len(normal):
        if at in widths:
            weight += URL_WEIGHT
            at += widths[at]
        elif at in emojis:
            weight += DEFAULT_WEIGHT
            at += emojis[at]
        elif _PAIR.match(normal, at):
            weight += DEFAULT_WEIGHT
            at += 2
        else:
            weight += DEFAULT_WEIGHT if _HEAVY.match(normal, at) else LIGHT_WEIGHT
            sound = sound and normal[at] not in _INVALID
            at += 1
        if sound and weight <= MAX_LENGTH * SCALE:
            fitting_end = at

    length = weight // SCALE
    # The reference adds the whole change of length by normalization to the end of the range.
    fitting_units = max(fitting_end, 1) + len(written) - len(normal)
    return Weighed(
        length=length,
        valid=sound and 0 < length <= MAX_LENGTH,
        invalid_characters=not sound,
        urls=tuple(_to_text(link.text) for link in links),
        cashtags=tuple(match[1] for match in _CASHTAG.finditer(normal)),
        mentions=tuple(match[1] for match in _MENTION.finditer(normal) if not _is_within(match.start(1), links)),
        valid_range_end=max(fitting_units - 1, 0),
    )


def _is_within(at: int, found: Sequence[Link]) -> bool:
    before = bisect.bisect(found, at, key=lambda link: link.start) - 1
    return before >= 0 and at < found[before].start + len(found[before].text)


# --- emoji -----------------------------------------------------------------------------------------------------------

_PATTERN = (Path(__file__).parent / "emoji.txt").read_text("utf-8").partition("\n\n")[2]
EMOJI = re.compile(_PATTERN.replace("\n", ""))
"""An emoji of any number of UTF-16 units. A sequence younger than the reference counts by its parts."""
