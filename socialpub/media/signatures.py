"""What the first bytes of a file say it is. They decide which decoder looks at it; the decoder has the last word."""

from pathlib import Path

_IMAGES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"moof", b"styp", b"sidx"})
"""How a file of boxes (MP4, QuickTime) begins, but for those of images."""

EBML = b"\x1a\x45\xdf\xa3"
"""How Matroska and WebM begin."""

_ENOUGH_BYTES = 12


def image_type(head: bytes) -> str | None:
    """The accepted type of image that begins like this, or None."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for start, mime_type in _IMAGES if head.startswith(start)), None)


def is_boxes(head: bytes) -> bool:
    """Whether it begins like a file of boxes: MP4, QuickTime, or an image that is made of boxes."""
    return head[4:8] in _BOXES


def is_video(head: bytes) -> bool:
    return is_boxes(head) or head.startswith(EBML)


def kind_of_file(path: Path) -> str | None:
    """`image`, `video`, or None. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_ENOUGH_BYTES)
    if image_type(head) is not None:
        return "image"
    return "video" if is_video(head) else None
