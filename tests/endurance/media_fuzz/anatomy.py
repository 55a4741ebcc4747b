"""Where the numbers and the parts of a media file lie: what a parser believes, and therefore what is worth changing."""

import contextlib
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

NESTED = {b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"mvex", b"edts", b"udta", b"dinf"}
MASTERS = {0x18538067, 0x1654AE6B, 0xAE, 0xE0, 0xE1, 0x1F43B675, 0x1549A966, 0xA0, 0x1C53BB6B}
"""Matroska's elements that hold others: Segment, Tracks, TrackEntry, Video, Audio, Cluster, Info, BlockGroup, Cues."""


@dataclass(frozen=True, slots=True)
class Number:
    """A length, a size in pixels, a count: `width` bytes at `offset`."""

    offset: int
    width: int
    little: bool = False


@dataclass(slots=True)
class Anatomy:
    numbers: list[Number] = field(default_factory=list)
    parts: list[tuple[int, int]] = field(default_factory=list)
    """Chunks, boxes, segments: from where to where, head included."""


def of(name: str, data: bytes) -> Anatomy:
    """The facts of a file; `name` ends as files of its format do."""
    found = Anatomy()
    walk = _WALKS.get(PurePath(name).suffix)
    if walk is not None:
        with contextlib.suppress(IndexError, struct.error):  # where a damaged file ends, what was found before stands
            walk(data, found)
    return found


def _png(data: bytes, found: Anatomy) -> None:
    at = 8
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        found.numbers.append(Number(at, 4))
        if kind in (b"IHDR", b"fcTL", b"acTL"):
            found.numbers += [Number(at + 8 + step, 4) for step in range(0, min(length, 24) - 3, 4)]
            found.numbers += [Number(at + 8 + step, 1) for step in range(8, min(length, 13))]
        end = min(at + 12 + length, len(data))
        found.parts.append((at, end))
        at = end


def _jpeg(data: bytes, found: Anatomy) -> None:
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker, length = struct.unpack_from(">BH", data, at + 1)
        found.numbers.append(Number(at + 2, 2))
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            found.numbers += [Number(at + 4, 1), Number(at + 5, 2), Number(at + 7, 2), Number(at + 9, 1)]
        elif marker == 0xE1:
            found.numbers += [Number(offset, 4) for offset in range(at + 10, min(at + 10 + 120, len(data) - 4), 4)]
        end = at + 2 + length
        if marker == 0xDA:
            following = data.find(b"\xff\xd9", end)
            end = len(data) if following < 0 else following
        found.parts.append((at, min(end, len(data))))
        at = max(end, at + 2)


def _gif(data: bytes, found: Anatomy) -> None:
    found.numbers += [Number(6, 2, True), Number(8, 2, True), Number(10, 1)]
    at = 13 + (3 * 2 ** ((data[10] & 7) + 1) if data[10] & 0x80 else 0)
    while at < len(data) and data[at] in (0x21, 0x2C):
        start = at
        if data[at] == 0x2C and at + 10 < len(data):
            found.numbers += [Number(at + step, 2, True) for step in (1, 3, 5, 7)] + [Number(at + 9, 1)]
            local = data[at + 9]
            at += 11 + (3 * 2 ** ((local & 7) + 1) if local & 0x80 else 0)
        else:
            at += 2
        while at < len(data) and data[at]:
            found.numbers.append(Number(at, 1))
            at += 1 + data[at]
        at += 1
        found.parts.append((start, min(at, len(data))))


def _webp(data: bytes, found: Anatomy) -> None:
    found.numbers.append(Number(4, 4, True))
    _riff(data, 12, len(data), found)


def _riff(data: bytes, at: int, end: int, found: Anatomy) -> None:
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, at)
        found.numbers.append(Number(at + 4, 4, True))
        after = min(at + 8 + length + length % 2, end)
        found.parts.append((at, after))
        if kind in (b"VP8X", b"ANMF"):
            found.numbers += [Number(at + 8 + step, 3, True) for step in range(0, min(length, 16) - 2, 3)]
        elif kind == b"VP8 ":
            found.numbers += [Number(at + 14, 2, True), Number(at + 16, 2, True)]
        if kind == b"ANMF":
            _riff(data, at + 24, after, found)
        at = after


def _boxes(data: bytes, found: Anatomy) -> None:
    _box_list(data, 0, len(data), found)


def _box_list(data: bytes, at: int, end: int, found: Anatomy) -> None:
    while at + 8 <= end:
        length, kind = struct.unpack_from(">I4s", data, at)
        found.numbers.append(Number(at, 4))
        after = min(at + length, end) if length >= 8 else end
        found.parts.append((at, after))
        if kind in NESTED:
            _box_list(data, at + 8, after, found)
        elif kind not in (b"mdat", b"free"):
            found.numbers += [Number(offset, 4) for offset in range(at + 8, min(after, at + 100) - 3, 4)]
        at = after


def _elements(data: bytes, found: Anatomy) -> None:
    _element_list(data, 0, len(data), found)


def _element_list(data: bytes, at: int, end: int, found: Anatomy) -> None:
    while at < end:
        name, name_width = _vint(data, at, keep_marker=True)
        length, length_width = _vint(data, at + name_width)
        if not name_width or not length_width:
            return
        found.numbers.append(Number(at + name_width, length_width))
        begins = at + name_width + length_width
        unknown = length == (1 << (7 * length_width)) - 1
        after = end if unknown else min(begins + length, end)
        found.parts.append((at, after))
        if name in MASTERS:
            _element_list(data, begins, after, found)
        elif 0 < length <= 8:
            found.numbers.append(Number(begins, length))
        at = after


def _vint(data: bytes, at: int, *, keep_marker: bool = False) -> tuple[int, int]:
    """A number of EBML's own kind and its width; a width of 0: there is none."""
    if at >= len(data) or not data[at]:
        return 0, 0
    width = 9 - data[at].bit_length()
    value = int.from_bytes(data[at : at + width])
    return value if keep_marker else value & ((1 << (7 * width)) - 1), width if at + width <= len(data) else 0


_WALKS: Mapping[str, Callable[[bytes, Anatomy], None]] = {
    ".png": _png,
    ".jpg": _jpeg,
    ".gif": _gif,
    ".webp": _webp,
    ".mp4": _boxes,
    ".mov": _boxes,
    ".webm": _elements,
}
