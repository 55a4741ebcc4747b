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
from pathlib import Path
from typing import BinaryIO

from socialpub.media import image_parts

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
