"""Where a video or an image ends, and what else a file contains before or after that.

Containers are read without a decoder: MP4 and QuickTime are made of boxes, Matroska and WebM of EBML elements.
"""

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from socialpub.media import types
from socialpub.media.decoder import image_parts
from socialpub.media.types import MediaRejected

# --- containers of videos --------------------------------------------------------------------------------------------

_BRANDS_OF_OTHERS: Mapping[bytes, str] = {
    b"crx ": "image/x-canon-cr3",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"jp2 ": "image/jp2",
}
_SEGMENT = b"\x18\x53\x80\x67"


@dataclass(frozen=True, slots=True)
class Container:
    mime_type: str
    """Not necessarily an accepted one: it may be `video/x-matroska`, or the type of an image that is made of boxes."""

    matroska: bool

    end: int
    """How many bytes from the beginning of the file it ends."""


def read_container(path: Path, found: str) -> Container:
    """The file's container; `found` is libmagic's name for it. Raises `MediaRejected` when the file was cut off."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(4096)
        if head.startswith(types.EBML):
            return Container(_type_by_doctype(head), True, _end_of_matroska(head, size))
        return Container(_type_by_brand(head, found), False, _end_of_boxes(file, size))


def _type_by_brand(head: bytes, found: str) -> str:
    """Which of the family the file is, by the major brand; QuickTime is older than brands."""
    if not types.is_boxes(head):
        return found
    first, brand = head[4:8], head[8:12]
    if first != b"ftyp":
        return "video/quicktime"
    if brand in _BRANDS_OF_OTHERS:
        return _BRANDS_OF_OTHERS[brand]
    return "video/quicktime" if brand in (b"qt  ", b"mqt ") else "video/mp4"


def _end_of_boxes(file: BinaryIO, size: int) -> int:
    """Behind the last whole box. Raises `MediaRejected` when the pictures' own box reaches beyond the file."""
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
                    f"The video was cut off: it has {size} bytes, but its {name.decode()} box ends at {at + length}."
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
    return {b"webm": "video/webm", b"matroska": "video/x-matroska"}.get(name, "application/octet-stream")


def _end_of_matroska(head: bytes, size: int) -> int:
    at = head.find(_SEGMENT)
    if at < 0 or not head[at + 4 : at + 5] or not head[at + 4]:
        return size
    width = 9 - head[at + 4].bit_length()
    unknown = (1 << 7 * width) - 1
    length = int.from_bytes(head[at + 4 : at + 4 + width]) & unknown
    if length == unknown:
        return size  # A live recording: its length was never filled in.
    end = at + 4 + width + length
    if end > size:
        raise MediaRejected(f"The video was cut off: it has {size} bytes, but its segment ends at {end}.")
    return end


# --- what is hidden --------------------------------------------------------------------------------------------------

_PAGE_OR_SCRIPT = re.compile(rb"<(?i:\?php|script[\s>/]|html[\s>]|!doctype\s+html)")
# Long enough that megabytes of compressed video behind a picture do not hold them by chance. Each begins with a fixed
# text of its own: one expression for all of them would be ten times slower.
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

# A GIF or JPEG whose length fields spell "/*" or "=" is a JavaScript comment or assignment to a browser that reads it
# as a script: https://portswigger.net/research/bypassing-csp-using-polyglot-jpegs
_GIF_AS_SCRIPT = re.compile(rb"GIF8[79]a(?:/\*|=[ -~])")
_AFTER_A_COMMENT = re.compile(rb"\*/[\t\n\r -~]{6}")

_HEAD_BYTES = 1024
"""PDF readers look for their header this far into a file (PDF 1.7, appendix H)."""


def hidden_in_image(data: bytes, mime_type: str) -> str | None:
    """What else the picture is ("a ZIP archive"), or None. Raises `Broken` for a picture that was cut off."""
    end = image_parts.end(data, mime_type)
    if _GIF_AS_SCRIPT.match(data) or (data[4:6] == b"/*" and _AFTER_A_COMMENT.search(data)):
        return "a script"
    return _behind(data[end:]) or _archive(io.BytesIO(data)) or _within(data)


def hidden_in_video(path: Path, end: int) -> str | None:
    """What else the video is; `end` is where its container ends (bytes)."""
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
    # An archive is read from its end, so that it may begin anywhere, inside a comment of the picture as well.
    try:
        with zipfile.ZipFile(file) as archive:
            return "a ZIP archive" if archive.namelist() else None
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error):
        return None
