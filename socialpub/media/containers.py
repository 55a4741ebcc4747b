"""The containers of videos, read without a decoder: which type a file is, and where its container ends.

Two families: MP4 and QuickTime are made of boxes, Matroska and WebM of EBML elements. What lies behind the end belongs
to somebody else (`polyglots.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from socialpub.media import signatures
from socialpub.media.types import MediaRejected

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
        if head.startswith(signatures.EBML):
            return Container(_type_by_doctype(head), True, _end_of_matroska(head, size))
        return Container(_type_by_brand(head, found), False, _end_of_boxes(file, size))


def _type_by_brand(head: bytes, found: str) -> str:
    """Which of the family the file is, by the major brand; QuickTime is older than brands."""
    if not signatures.is_boxes(head):
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
