"""Files that are two things at once: where an image or video ends, and what else hides before or behind that.

The rule: bytes behind the end are tolerated, as phones put a lot there (a second picture, a short video, a trailer
of their maker), unless another format that something would open or run can be read out of them: an archive, a
document, a page, a script, a program. Before the end, in comments and metadata, only pages, scripts and a PDF header
are looked for; compressed pixels do not spell those out by chance.
"""

import io
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

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

MOST_SCANS = 100
"""Each scan of a JPEG has the decoder go over the whole picture, however little it adds: a small file could take hours.
Programs write about ten."""

_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


class Broken(Exception):
    """The file ends too early, or its parts do not add up or are far too many; the message is half a sentence."""


def hidden_in_image(data: bytes, mime_type: str) -> str | None:
    """What else the picture is ("a ZIP archive"), or None. Raises `Broken` for a picture that was cut off."""
    end = _END[mime_type](data)
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


# --- where it ends ---------------------------------------------------------------------------------------------------


def _end_of_jpeg(data: bytes) -> int:
    """Behind the first picture's end marker: thumbnails lie in segments, later pictures (MPF) behind it."""
    at, scans = 2, 0
    while True:
        match = _JPEG_MARKER.search(data, at)
        if match is None:
            raise Broken("has no end marker: it was cut off")
        marker, at = data[match.end() - 1], match.end()
        if marker == 0xD9:
            return at
        scans += marker == 0xDA
        if scans > MOST_SCANS:
            raise Broken(f"has more than {MOST_SCANS} scans, far more than any camera or program writes; save it anew")
        if marker not in (0x01, 0xD8):
            # Entropy-coded data follow a scan's header without a length; the search above runs over them.
            at += int.from_bytes(data[at : at + 2])


def _end_of_png(data: bytes) -> int:
    at = 8
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        stop = at + 12 + length
        if stop > len(data):
            break
        if zlib.crc32(data[at + 4 : stop - 4]) != int.from_bytes(data[stop - 4 : stop]):
            raise Broken("has a damaged chunk: its checksum is wrong")
        if data[at + 4 : at + 8] == b"IEND":
            return stop
        at = stop
    raise Broken("has no end chunk: it was cut off")


def _end_of_gif(data: bytes) -> int:
    def table(flags: int) -> int:
        return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

    try:
        at = 13 + table(data[10])
        while data[at] != 0x3B:
            if data[at] == 0x21:
                at += 2
            elif data[at] == 0x2C:
                at += 11 + table(data[at + 9])
            else:
                raise Broken("has bytes between its blocks that belong to none")
            while length := data[at]:
                at += length + 1
            at += 1
    except IndexError:
        raise Broken("has no end: it was cut off") from None
    return at + 1


def _end_of_webp(data: bytes) -> int:
    end = 8 + int.from_bytes(data[4:8], "little")
    if end > len(data):
        raise Broken("is shorter than its header says: it was cut off")
    return end + (end & 1 if end < len(data) else 0)


_END = {
    "image/jpeg": _end_of_jpeg,
    "image/png": _end_of_png,
    "image/gif": _end_of_gif,
    "image/webp": _end_of_webp,
}
