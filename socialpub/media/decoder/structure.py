"""The structure of image and video files, read without a decoder: their end, hidden content and metadata.

`jpeg.py` reads the structure of a JPEG. Only a decoder decides whether an image is complete.
"""

import contextlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from socialpub.media import types
from socialpub.media.decoder import jpeg
from socialpub.media.types import MediaRejected

# --- parts of an image ------------------------------------------------------------------------------------------------

GIF_EXTENSION, GIF_IMAGE, GIF_END = 0x21, 0x2C, 0x3B


class Broken(Exception):
    """The file has invalid parts. The message ends a sentence about the file."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file between `start` and `stop`.

    `name` is a PNG's or WebP's chunk type, or the first bytes of a GIF's block. It is empty for the bytes before the
    first part.
    """

    name: bytes
    start: int
    stop: int


def image_end(data: bytes, mime_type: str) -> int:
    """Return the end of the image. Raise `Broken`, or `MediaRejected` for a JPEG with too many scans."""
    if mime_type == "image/webp":
        return _end_of_webp(data)
    if mime_type == "image/jpeg":
        return jpeg.read_segments(data).end
    if mime_type in types.BOXED_IMAGES:
        return _end_of_boxes(io.BytesIO(data), len(data), "image")
    last = 0
    for part in _PARTS[mime_type](data):
        last = part.stop
    return min(last, len(data))


def _of_png(data: bytes) -> Iterator[Part]:
    """Yield the complete chunks."""
    yield Part(b"", 0, 8)
    at, name = 8, b""
    while at + 12 <= len(data) and name != b"IEND":
        stop = at + 12 + int.from_bytes(data[at : at + 4])
        name = data[at + 4 : at + 8]
        if stop > len(data):
            return
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop]):
            raise Broken("has a damaged chunk: its checksum is wrong")
        yield Part(name, at, stop)
        at = stop


def _of_gif(data: bytes) -> Iterator[Part]:
    """Yield the parts. The name of an extension is its introducer, its label and, for an application, its name.

    Viewers skip other bytes between blocks, and show a GIF without an end.
    """

    def table(flags: int) -> int:
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    data += _GIF_MISSING_END
    with contextlib.suppress(IndexError):
        at = 13 + table(data[10])
        yield Part(b"", 0, at)
        while data[at] != GIF_END:
            start = at
            if data[at] == GIF_EXTENSION:
                at += 2
            elif data[at] == GIF_IMAGE:
                at += 11 + table(data[at + 9])
            else:
                at += 1
                continue
            while length := data[at]:
                at += length + 1
            at += 1
            yield Part(data[start : min(start + 14, at)], start, at)
        yield Part(data[at : at + 1], at, at + 1)


def _of_webp(data: bytes) -> Iterator[Part]:
    """Yield the parts. An extra byte follows a chunk of odd length."""
    stop = _end_of_webp(data)
    yield Part(b"", 0, 12)
    at = 12
    while at + 8 <= stop:
        length = int.from_bytes(data[at + 4 : at + 8], "little")
        following = at + 8 + length + (length & 1)
        if at + 8 + length > stop:
            raise Broken("has a chunk that continues after its end")
        yield Part(data[at : at + 4], at, min(following, stop))
        at = following


def _end_of_webp(data: bytes) -> int:
    stop = 8 + int.from_bytes(data[4:8], "little")
    if stop > len(data):
        raise Broken("is shorter than its header says and is incomplete")
    return stop + (stop & 1 if stop < len(data) else 0)


_GIF_MISSING_END = bytes((0, GIF_END))
_LAST = {"image/png": b"IEND", "image/gif": bytes((GIF_END,))}

_PARTS: Mapping[str, Callable[[bytes], Iterator[Part]]] = {
    "image/png": _of_png,
    "image/gif": _of_gif,
    "image/webp": _of_webp,
}


# --- metadata --------------------------------------------------------------------------------------------------------

_PNG_ANCILLARY = frozenset(
    b"tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV cLLI".split()
)  # fmt: skip
"""Transparency, colors and size (PNG 3, 2025). Critical chunks begin with a capital letter."""

_GIF_APPLICATIONS = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")
"""Repetition and color profile."""
_GIF_COMMENT, _GIF_APPLICATION = 0xFE, 0xFF

_WEBP_CHUNKS = frozenset((b"VP8X", b"ICCP", b"ALPH", b"VP8 ", b"VP8L"))
_WEBP_HAS_EXIF, _WEBP_HAS_XMP = 0x08, 0x04
"""Flags of the chunk VP8X."""


def strip_metadata(data: bytes, mime_type: str) -> bytes | None:
    """Return the image file without metadata, or None if its parts are damaged.

    The result counts only after `images.shows_the_same`.
    """
    if mime_type == "image/jpeg":
        return jpeg.strip_metadata(data)
    try:
        parts = list(_PARTS[mime_type](data))
    except Broken:
        return None
    if parts[-1].name != _LAST.get(mime_type, parts[-1].name):
        return None
    if mime_type == "image/gif":
        data += _GIF_MISSING_END
    needed = [data[part.start : part.stop] for part in parts if not part.name or _IS_NEEDED[mime_type](part)]
    return _join_webp(needed) if mime_type == "image/webp" else b"".join(needed)


def _is_needed_in_png(part: Part) -> bool:
    return part.name[:1].isupper() or part.name in _PNG_ANCILLARY


def _is_needed_in_gif(part: Part) -> bool:
    if part.name[0] != GIF_EXTENSION or part.name[1] not in (_GIF_COMMENT, _GIF_APPLICATION):
        return True
    return part.name[1] == _GIF_APPLICATION and part.name[3:] in _GIF_APPLICATIONS


def _is_needed_in_webp(part: Part) -> bool:
    return part.name in _WEBP_CHUNKS


def _join_webp(chunks: list[bytes]) -> bytes:
    """Join the chunks below a new header, without the flags of metadata."""
    whole = bytearray()
    for chunk in chunks[1:]:
        if chunk.startswith(b"VP8X"):
            chunk = chunk[:8] + bytes((chunk[8] & ~(_WEBP_HAS_EXIF | _WEBP_HAS_XMP),)) + chunk[9:]
        whole += chunk
    return b"RIFF" + (len(whole) + 4).to_bytes(4, "little") + b"WEBP" + whole


_IS_NEEDED: Mapping[str, Callable[[Part], bool]] = {
    "image/png": _is_needed_in_png,
    "image/gif": _is_needed_in_gif,
    "image/webp": _is_needed_in_webp,
}


# --- containers of videos --------------------------------------------------------------------------------------------

_BRANDS_OF_OTHERS: Mapping[bytes, str] = {b"crx ": "image/x-canon-cr3", b"jp2 ": "image/jp2"}
_SEGMENT_BOXES = (b"styp", b"sidx", b"moof")
"""The first boxes of a part of a stream (DASH, HLS), which has no header."""
_SEGMENT = b"\x18\x53\x80\x67"


@dataclass(frozen=True, slots=True)
class Container:
    mime_type: str
    """The type of the container, perhaps not accepted, such as `video/x-matroska` or an image of boxes."""
    matroska: bool
    end: int
    """The position of the end in the file."""


def read_container(path: Path, detected: str) -> Container:
    """Return the file's container. `detected` is libmagic's type. Raise `MediaRejected` for an incomplete file."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
        if head.startswith(types.EBML):
            return Container(_type_by_doctype(head), True, _end_of_matroska(head, size))
        if head[4:8] in _SEGMENT_BOXES and b"moov" not in head:
            raise MediaRejected(
                "The file is one segment of a stream (DASH or HLS) and has no header. Join all segments of the stream "
                "into one MP4 file."
            )
        return Container(_type_by_brand(head, detected), False, _end_of_boxes(file, size))


def _type_by_brand(head: bytes, detected: str) -> str:
    """Return the type by the major brand. QuickTime files may have no brand."""
    if not types.is_boxes(head):
        return detected
    first, brand = head[4:8], head[8:12]
    if first != b"ftyp":
        return "video/quicktime"
    other = _BRANDS_OF_OTHERS.get(brand) or types.image_type(head)
    if other is not None:
        return other
    return "video/quicktime" if brand in (b"qt  ", b"mqt ") else "video/mp4"


def _end_of_boxes(file: BinaryIO, size: int, kind: str = "video") -> int:
    """Return the end of the last complete box. Raise `MediaRejected` if a box with pixels is incomplete."""
    at = 0
    while at + 8 <= size:
        file.seek(at)
        header = file.read(16)
        length, name, least = int.from_bytes(header[:4]), header[4:8], 8
        if length == 1 and len(header) == 16:
            length, least = int.from_bytes(header[8:16]), 16
        elif length == 0 and name in (b"mdat", b"free", b"skip"):
            return size
        if length < least or not all(32 <= byte < 127 or byte == 0xA9 for byte in name):
            break
        if at + length > size:
            if name in (b"mdat", b"moov", b"moof"):
                raise MediaRejected(
                    f"The {kind} is incomplete: it has {size} bytes, but its {name.decode()} box ends at {at + length}."
                )
            break
        at += length
    return at


def _type_by_doctype(head: bytes) -> str:
    # Element, length (one to eight bytes), text: https://www.rfc-editor.org/rfc/rfc8794
    at = head.find(b"\x42\x82", 4)
    length = 0
    if 0 < at < 1024 and head[at + 2]:
        width = 9 - head[at + 2].bit_length()
        length = int.from_bytes(head[at + 2 : at + 2 + width]) & ((1 << 7 * width) - 1)
        at += 2 + width
    name = head[at : at + min(length, 32)].rstrip(b"\0")
    return {b"webm": "video/webm", b"matroska": "video/x-matroska"}.get(name, types.UNDECLARED)


def _end_of_matroska(head: bytes, size: int) -> int:
    at = head.find(_SEGMENT)
    if at < 0 or not head[at + 4 : at + 5] or not head[at + 4]:
        return size
    width = 9 - head[at + 4].bit_length()
    unknown = (1 << 7 * width) - 1
    length = int.from_bytes(head[at + 4 : at + 4 + width]) & unknown
    if length == unknown:
        return size  # a live recording has no length
    end = at + 4 + width + length
    if end > size:
        raise MediaRejected(f"The video is incomplete: it has {size} bytes, but its segment ends at {end}.")
    return end


# --- hidden content --------------------------------------------------------------------------------------------------

_PAGE_OR_SCRIPT = re.compile(rb"<(?i:\?php|script[\s>/]|html[\s>]|!doctype\s+html)")
# The patterns are long, so megabytes of compressed video after an image do not contain them by chance. Each begins with
# a fixed text: one pattern for all of them would be ten times slower.
_BEHIND_THE_END = tuple(
    (re.compile(pattern), label)
    for pattern, label in (
        (rb"PK\x03\x04[\x0a-\x3f]\x00", "a ZIP archive"),
        (rb"PK\x05\x06\x00\x00", "a ZIP archive"),
        (rb"Rar!\x1a\x07", "a RAR archive"),
        (rb"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (rb"\xfd7zXZ\x00", "an xz archive"),
        (rb"BZh[1-9]1AY&SY", "a bzip2 archive"),
        (rb"MSCF\x00\x00\x00\x00", "a CAB archive"),
        (rb"ustar(?:\x0000|  \x00)", "a tar archive"),
        (rb"%PDF-\d", "a PDF document"),
        (rb"\x7fELF[\x01\x02][\x01\x02]\x01", "a program"),
        (rb"program cannot be run in DOS mode", "a program"),
        (rb"\x00asm\x01\x00\x00\x00", "a program"),
        (rb"<\?(?:[pP][hH][pP]\s|=[ -~]{8})", "HTML or a script"),
        (rb"<!(?i:doctype)\s", "HTML or a script"),
        (rb"<(?i:script|html|body|iframe)[\s>/]", "HTML or a script"),
        (rb"<(?i:svg|img|object|embed)\s[ -~]{4}", "HTML or a script"),
    )
)
_AT_THE_START_BEHIND_THE_END = (
    (re.compile(rb"\x1f\x8b\x08"), "a gzip archive"),
    (re.compile(rb"#!\s*/"), "a script"),
    (re.compile(rb"MZ|\xca\xfe\xba\xbe|[\xce\xcf]\xfa\xed\xfe"), "a program"),
)

# A browser that reads a file as a script reads the length fields "/*" or "=" of a GIF or JPEG as JavaScript:
# https://portswigger.net/research/bypassing-csp-using-polyglot-jpegs
_GIF_AS_SCRIPT = re.compile(rb"GIF8[79]a(?:/\*|=[ -~])")
_AFTER_A_COMMENT = re.compile(rb"\*/[\t\n\r -~]{6}")

_HEAD_BYTES = 1024
"""PDF readers search for their header in this part of a file (PDF 1.7, appendix H)."""


def hidden_in_image(data: bytes, mime_type: str) -> str | None:
    """Return the image's hidden content ("a ZIP archive"), or None. Raise `Broken` for an incomplete image."""
    end = image_end(data, mime_type)
    if _GIF_AS_SCRIPT.match(data) or (data[4:6] == b"/*" and _AFTER_A_COMMENT.search(data)):
        return "a script"
    return _behind(data[end:]) or _archive(io.BytesIO(data)) or _within(data)


def hidden_in_video(path: Path, end: int) -> str | None:
    """Return the video's hidden content, or None. `end` is the end of its container."""
    with path.open("rb") as file:
        head = file.read(4096)
        file.seek(end)
        behind = file.read(1024 * 1024)
        return _behind(behind) or _archive(file) or _within(head)


def _within(data: bytes) -> str | None:
    if b"%PDF-" in data[:_HEAD_BYTES]:
        return "a PDF document"
    return "HTML or a script" if _PAGE_OR_SCRIPT.search(data) else None


def _behind(tail: bytes) -> str | None:
    start = tail.lstrip(b"\0\t\n\r ")[:16]
    for pattern, label in _AT_THE_START_BEHIND_THE_END:
        if pattern.match(start):
            return label
    return next((label for pattern, label in _BEHIND_THE_END if pattern.search(tail)), None)


def _archive(file: BinaryIO) -> str | None:
    # An archive is read from its end, so it may begin anywhere, even inside a comment of the image.
    try:
        with zipfile.ZipFile(file) as archive:
            return "a ZIP archive" if archive.namelist() else None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        return None
