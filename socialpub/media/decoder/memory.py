"""How much memory decoding a file may take, estimated from its first bytes before any decoder sees it.

An estimate decides how many children run beside each other. What a child can take at most is a limit of its own; where
a header may lie, that is what was estimated (`may_be_too_low`). So one that lies wins nothing.
"""

import struct
from pathlib import Path
from typing import IO

from socialpub.media import types

_CHILD_BYTES = 32 * 1024**2
"""The child itself, with its decoders."""

_BYTES_PER_PIXEL = {"image/jpeg": 13, "image/gif": 13, "image/png": 17, "image/webp": 22}
"""Measured with 96 megapixels and the limits of all networks, the worst of inspecting and fitting: a JPEG in CMYK, a
GIF, a PNG with transparency, a lossless WebP with transparency."""

_VIDEO_BYTES = 240 * 1024**2
"""One frame is decoded, on one thread: measured, an 8K video needs half of this."""

_MAX_SEGMENTS = 500
"""A JPEG's size stands behind its metadata, which comes in segments of at most 64 KiB."""


def estimate(path: Path, most_bytes: int) -> int:
    """Bytes of memory; `most_bytes` when the file says nothing that is understood here. Raises FileNotFoundError."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if types.is_video(head):
                return min(_VIDEO_BYTES, most_bytes)
            mime_type = types.image_type(head)
            sides = None if mime_type is None else _sides(file, head, mime_type)
    except FileNotFoundError:
        raise
    except OSError:  # the child says what is wrong with it
        return most_bytes
    if mime_type is None or sides is None:
        return most_bytes
    return min(_CHILD_BYTES + sides[0] * sides[1] * _BYTES_PER_PIXEL[mime_type], most_bytes)


def may_be_too_low(path: Path) -> bool:
    """Whether decoding may take more than estimated. Raises OSError.

    Frames of a GIF or a video may be larger than the header says. Other decoders compare the two first.
    """
    with path.open("rb") as file:
        head = file.read(12)
    return types.is_video(head) or types.image_type(head) == "image/gif"


def _sides(file: IO[bytes], head: bytes, mime_type: str) -> tuple[int, int] | None:
    """Width and height of a picture, None when they do not stand where they should."""
    if len(head) < 32:
        return None
    if mime_type == "image/jpeg":
        return _jpeg_sides(file)
    if mime_type == "image/png":
        return struct.unpack_from(">II", head, 16) if head[12:16] == b"IHDR" else None
    if mime_type == "image/gif":
        return struct.unpack_from("<HH", head, 6)
    match head[8:16]:
        case b"WEBPVP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"WEBPVP8 ":
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"WEBPVP8L":
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return None


def _jpeg_sides(file: IO[bytes]) -> tuple[int, int] | None:
    file.seek(2)
    for _ in range(_MAX_SEGMENTS):
        segment = file.read(9)
        if len(segment) < 9 or segment[0] != 0xFF:
            return None
        marker, length = segment[1], int.from_bytes(segment[2:4])
        if marker == 0xFF:  # padding
            file.seek(-8, 1)
        elif 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", segment, 5)
            return width, height
        else:
            file.seek(length - 7, 1)
    return None
