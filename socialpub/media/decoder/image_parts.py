"""The parts of an image file, found without decoding a pixel, and the file without its metadata.

Runs in a child process. Only what a decoder needs to show the image stays: pixels, color profile, animation. A list of
what stays also removes kinds of metadata that are not known yet.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

MAX_SCANS = 100
"""Each scan of a JPEG makes the decoder go over the whole image, however little it adds: a small file could take hours.
Programs write about ten."""

JPEG_SCAN, JPEG_END = 0xDA, 0xD9
_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_WITHOUT_LENGTH = (0x01, 0xD8)

GIF_EXTENSION, GIF_IMAGE, GIF_END = 0x21, 0x2C, 0x3B


class Broken(Exception):
    """The file ends too early, or its parts do not add up or are far too many; the message is half a sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    """`name`: a JPEG's marker, a PNG's or a WebP's chunk type, the first bytes of a GIF's block; empty for what comes
    before the first. `start` and `stop`: where it is in the file."""

    name: bytes
    start: int
    stop: int


def parts(data: bytes, mime_type: str) -> Iterator[Part]:
    """Yield the parts in the order of the file. Raises `Broken`."""
    return _PARTS[mime_type](data)


def end(data: bytes, mime_type: str) -> int:
    """Return where the image ends. Raises `Broken`."""
    if mime_type == "image/webp":
        return _end_of_webp(data)
    last = 0
    for part in parts(data, mime_type):
        last = part.stop
    return last


def _of_jpeg(data: bytes) -> Iterator[Part]:
    """Thumbnails are inside of segments, later images (MPF) are behind the first end marker. The compressed pixels
    belong to the header of their scan."""
    yield Part(b"", 0, 2)
    at, scans = 2, 0
    while True:
        start, marker = _jpeg_marker(data, at)
        at = start + 2
        if marker == JPEG_END:
            yield Part(bytes((marker,)), start, at)
            return
        if marker not in _WITHOUT_LENGTH:
            at += int.from_bytes(data[at : at + 2])
        if marker == JPEG_SCAN:
            scans += 1
            if scans > MAX_SCANS:
                raise Broken(
                    f"has more than {MAX_SCANS} scans, far more than any camera or program writes; save it again"
                )
            at, _ = _jpeg_marker(data, at)
        yield Part(bytes((marker,)), start, at)


def _jpeg_marker(data: bytes, at: int) -> tuple[int, int]:
    match = _JPEG_MARKER.search(data, at)
    if match is None:
        raise Broken("has no end marker: it was cut off")
    return match.start(), data[match.end() - 1]


def _of_png(data: bytes) -> Iterator[Part]:
    yield Part(b"", 0, 8)
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        name, stop = data[at + 4 : at + 8], at + 12 + length
        if stop > len(data):
            break
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop]):
            raise Broken("has a damaged chunk: its checksum is wrong")
        yield Part(name, at, stop)
        if name == b"IEND":
            return
        at = stop
    raise Broken("has no end chunk: it was cut off")


def _of_gif(data: bytes) -> Iterator[Part]:
    """An extension is named by its introducer, its label and, of an application, its name."""

    def table(flags: int) -> int:
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    try:
        at = 13 + table(data[10])
        yield Part(b"", 0, at)
        while data[at] != GIF_END:
            start = at
            if data[at] == GIF_EXTENSION:
                at += 2
            elif data[at] == GIF_IMAGE:
                at += 11 + table(data[at + 9])
            else:
                raise Broken("has bytes between its blocks that belong to none")
            while length := data[at]:
                at += length + 1
            at += 1
            yield Part(data[start : min(start + 14, at)], start, at)
    except IndexError:
        raise Broken("has no end: it was cut off") from None
    yield Part(data[at : at + 1], at, at + 1)


def _of_webp(data: bytes) -> Iterator[Part]:
    """A chunk of an odd length is followed by a byte that is not counted."""
    stop = _end_of_webp(data)
    yield Part(b"", 0, 12)
    at = 12
    while at + 8 <= stop:
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        following = at + 8 + length + (length & 1)
        if at + 8 + length > stop:
            raise Broken("has a chunk that reaches beyond its end")
        yield Part(data[at : at + 4], at, min(following, stop))
        at = following


def _end_of_webp(data: bytes) -> int:
    stop = 8 + int.from_bytes(data[4:8], "little")
    if stop > len(data):
        raise Broken("is shorter than its header says: it was cut off")
    return stop + (stop & 1 if stop < len(data) else 0)


_PARTS: Mapping[str, Callable[[bytes], Iterator[Part]]] = {
    "image/jpeg": _of_jpeg,
    "image/png": _of_png,
    "image/gif": _of_gif,
    "image/webp": _of_webp,
}


# --- metadata --------------------------------------------------------------------------------------------------------

_JPEG_HEADERS = frozenset((*range(0xC0, 0xD0), *range(0xDA, 0xE0), JPEG_END))
"""Frames, tables, scans, restart intervals."""
_JPEG_SEGMENTS = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
"""How the application segments begin without which colours would change."""

_PNG_ANCILLARY = frozenset(
    b"tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV cLLI acTL fcTL fdAT".split()
)  # fmt: skip
"""Transparency, colours, size and animation (PNG 3, 2025). Chunks that every decoder needs begin with a capital."""

_GIF_APPLICATIONS = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")
"""Repetition and colour profile."""
_GIF_COMMENT, _GIF_APPLICATION = 0xFE, 0xFF

_WEBP_CHUNKS = frozenset((b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"))
_WEBP_HAS_EXIF, _WEBP_HAS_XMP = 0x08, 0x04
"""Flags of the chunk VP8X."""


def strip_metadata(data: bytes, mime_type: str) -> bytes | None:
    """Return the image file without metadata: the same bytes when it has none, None when its parts do not add up."""
    try:
        kept = [
            data[part.start : part.stop]
            for part in parts(data, mime_type)
            if not part.name or _IS_NEEDED[mime_type](data, part)
        ]
        return _join_webp(kept) if mime_type == "image/webp" else b"".join(kept)
    except (Broken, IndexError):
        return None


def _is_needed_in_jpeg(data: bytes, part: Part) -> bool:
    marker = part.name[0]
    begins = _JPEG_SEGMENTS.get(marker)
    return marker in _JPEG_HEADERS or (begins is not None and data.startswith(begins, part.start + 4))


def _is_needed_in_png(_: bytes, part: Part) -> bool:
    return part.name[:1].isupper() or part.name in _PNG_ANCILLARY


def _is_needed_in_gif(_: bytes, part: Part) -> bool:
    if part.name[0] != GIF_EXTENSION or part.name[1] not in (_GIF_COMMENT, _GIF_APPLICATION):
        return True
    return part.name[1] == _GIF_APPLICATION and part.name[3:] in _GIF_APPLICATIONS


def _is_needed_in_webp(_: bytes, part: Part) -> bool:
    return part.name in _WEBP_CHUNKS


def _join_webp(kept: list[bytes]) -> bytes:
    """Join the chunks under a header that says what is there."""
    chunks = [_without_flags(chunk) if chunk.startswith(b"VP8X") else chunk for chunk in kept[1:]]
    whole = b"".join(chunks)
    return b"RIFF" + (len(whole) + 4).to_bytes(4, "little") + b"WEBP" + whole


def _without_flags(chunk: bytes) -> bytes:
    flags = chunk[8] & ~(_WEBP_HAS_EXIF | _WEBP_HAS_XMP)
    return chunk[:8] + bytes((flags,)) + chunk[9:]


_IS_NEEDED: Mapping[str, Callable[[bytes, Part], bool]] = {
    "image/jpeg": _is_needed_in_jpeg,
    "image/png": _is_needed_in_png,
    "image/gif": _is_needed_in_gif,
    "image/webp": _is_needed_in_webp,
}
