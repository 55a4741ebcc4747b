"""Media types: what is accepted, what a file turned out to be, and what its first bytes say.

Quick to import: the child process that decodes files loads it, as does the process that starts the child. The first
bytes choose the decoder; the decoder has the last word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from socialpub.core import units

ACCEPTED_TYPES: Mapping[str, str] = {
    "image/jpeg": "image",
    "image/png": "image",
    "image/webp": "image",
    "image/gif": "image",
    "video/mp4": "video",
    "video/quicktime": "video",
    "video/webm": "video",
}
"""The media types that may be uploaded, and the kind of each."""


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What one file may measure. Bytes; pixels of one frame, and of all frames of an animation together."""

    image_bytes: int = units.MAX_IMAGE_BYTES
    image_pixels: int = units.MAX_IMAGE_PIXELS
    image_total_pixels: int = units.MAX_IMAGE_TOTAL_PIXELS
    video_bytes: int = units.MAX_VIDEO_BYTES


@dataclass(frozen=True, slots=True)
class FitLimits:
    """What a fitted image must satisfy. `types` in order of preference, pixels upright, None: no limit."""

    types: Sequence[str]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None
    rewrite: bool = False
    """Also what fits as it is: only pixels and colour profile are kept."""

    def scale(self, width: int, height: int) -> float:
        """The factor, at most 1, that brings these sides within the limits."""
        bounds = ((self.max_width, width), (self.max_height, height), (self.max_short_side, min(width, height)))
        return min([1.0, *(most / side for most, side in bounds if most is not None)])


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file turned out to be.

    `facts` is JSON; keys that do not apply are missing. Images: width, height (pixels, upright), frames, and
    orientation (EXIF, only when the file is not stored upright). Videos: width, height (as shown), duration_seconds,
    frame_rate, frames, rotation (degrees, only when turned), video_codec, has_audio, audio_codec, pixel_format,
    pixel_aspect ("4:3", only when pixels are not square).
    """

    kind: str
    mime_type: str
    size_bytes: int
    facts: dict[str, Any] = field(default_factory=dict)


class MediaRejected(Exception):
    """The file is not what it has to be. `reason` is a sentence for the caller; it names no path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CannotFit(Exception):
    """No version of the image satisfies the limits. `reason` is a sentence that names limit and found value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def canonical_type(mime_type: str) -> str | None:
    """The accepted type that this one means (`image/jpg` is `image/jpeg`), or None."""
    name = mime_type.strip().lower()
    if name == "image/jpg":
        name = "image/jpeg"
    return name if name in ACCEPTED_TYPES else None


def is_undeclared(mime_type: str) -> bool:
    """Whether a sender who names this type says nothing about the file: what it is found to be counts then."""
    return mime_type in ("", "application/octet-stream")


def media_kind(mime_type: str) -> str | None:
    """`image` or `video`; None for a type that is not accepted."""
    name = canonical_type(mime_type)
    return None if name is None else ACCEPTED_TYPES[name]


def type_mismatch(found: str, declared: str) -> MediaRejected:
    return MediaRejected(f"The file was declared as {declared}, but its content is {found}.")


# --- signatures ------------------------------------------------------------------------------------------------------

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

_SIGNATURE_BYTES = 12


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


def detect_kind(path: Path) -> str | None:
    """`image`, `video`, or None. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(_SIGNATURE_BYTES)
    if image_type(head) is not None:
        return "image"
    return "video" if is_video(head) else None
