"""Accepted media types, the facts about a file, and the detection of a type by the first bytes.

The child process that decodes files also imports this module, so the import must be fast. The first bytes choose the
decoder, and the decoder decides.
"""

import traceback
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
    "image/heic": "image",
    "image/heif": "image",
    "image/avif": "image",
    "video/mp4": "video",
    "video/quicktime": "video",
    "video/webm": "video",
}
"""The media types that the API accepts, each with its kind."""


_OTHER_NAMES: Mapping[str, str] = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/apng": "image/png",
    "image/vnd.mozilla.apng": "image/png",
    "video/x-m4v": "video/mp4",
    "video/x-matroska": "video/webm",
}
"""Other names of accepted types. The decoder decides whether Matroska is WebM."""

UNDECLARED = "application/octet-stream"


BOXED_IMAGES = ("image/heic", "image/heif", "image/avif")
"""Images in the container of MP4. Networks get a JPEG. `image/heif` is the general name of the other two."""


NAMES_WITHOUT_TYPE = (".heic", ".heif", ".avif", ".jfif", ".apng", ".m4v")
"""Names of files for which many browsers know no accepted type."""


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """The limits of one file: bytes, pixels of one frame, and pixels of all frames of an animation."""

    image_bytes: int = units.MAX_IMAGE_BYTES
    image_pixels: int = units.MAX_IMAGE_PIXELS
    image_total_pixels: int = units.MAX_IMAGE_TOTAL_PIXELS
    video_bytes: int = units.MAX_VIDEO_BYTES


@dataclass(frozen=True, slots=True)
class FitLimits:
    """The limits of a fitted image. `types` are in order of preference, sides are upright, and None means no limit."""

    types: Sequence[str]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None
    rewrite: bool = False
    """Rewrite even an image that fits: only the pixels and the color profile stay."""

    def scale(self, width: int, height: int) -> float:
        """Return the factor, at most 1, that brings these sides within the limits."""
        bounds = ((self.max_width, width), (self.max_height, height), (self.max_short_side, min(width, height)))
        return min([1.0, *(most / side for most, side in bounds if most is not None)])


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a file.

    `facts` is JSON without empty keys. Images: width, height (upright), frames, orientation (EXIF, if not upright).
    Videos: width, height (as shown), duration_seconds, frame_rate, frames, rotation (degrees, if rotated), video_codec,
    has_audio, audio_codec, audio_channels, pixel_format, pixel_aspect ("4:3", if pixels are not square), has_position
    (if metadata say where the video was recorded). Codecs have FFmpeg's canonical names (`av1`).
    """

    kind: str
    mime_type: str
    size_bytes: int
    facts: dict[str, Any] = field(default_factory=dict)


class _WithReason(Exception):
    """An error whose `reason` is a sentence for the caller, without a path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class MediaRejected(_WithReason):
    """The file is not valid."""


class CannotFit(_WithReason):
    """No version of the image is within the limits."""


_PACKAGE = str(Path(__file__).parents[1])


def is_own_fault(error: Exception) -> bool:
    """Return whether our code raised the error, and not a library that it called."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename.startswith(_PACKAGE)


def position_note(facts: Mapping[str, Any]) -> str | None:
    """Return a note for a video whose metadata contain a position. Networks get videos unchanged."""
    if not facts.get("has_position"):
        return None
    return (
        "The metadata of this video contain a position. socialpub sends videos unchanged, so the network gets the "
        "position. To remove it, turn off the location in the phone's share options, or run "
        "`ffmpeg -i video.mp4 -map_metadata -1 -c copy new.mp4`."
    )


def canonical_type(mime_type: str) -> str | None:
    """Return the accepted type of this name (`image/jpeg` for `image/jpg; q=1`), or None."""
    name = type_name(mime_type)
    name = _OTHER_NAMES.get(name, name)
    return name if name in ACCEPTED_TYPES and mime_type.strip().isprintable() else None


def type_name(mime_type: str) -> str:
    """Return the type without its parameters."""
    return mime_type.partition(";")[0].strip().lower()


def is_undeclared(mime_type: str) -> bool:
    """Return whether this type does not describe the file, so that only the content counts."""
    return type_name(mime_type) in ("", UNDECLARED)


def media_kind(mime_type: str) -> str | None:
    """Return `image` or `video`, or None for a type that is not accepted."""
    name = canonical_type(mime_type)
    return None if name is None else ACCEPTED_TYPES[name]


def type_mismatch(actual: str, declared: str) -> MediaRejected:
    """Return the error of a file that was declared as another type. It ends with what to do."""
    if actual == "video/x-matroska":
        advice = (
            f" Declare video/webm if it has VP8, VP9 or AV1 with Opus or Vorbis. Otherwise:{how_to_convert(actual)}"
        )
    elif (right := canonical_type(actual)) is not None:
        advice = f" Declare {right}."
    else:
        advice = how_to_convert(actual)
    return MediaRejected(f"The file was declared as {declared}, but its content is {actual}.{advice}")


def how_to_convert(mime_type: str) -> str:
    """Return a sentence for an image or a video of a type that is not accepted. Return "" for other types."""
    name = type_name(mime_type)
    if name.startswith("image/") and name not in ACCEPTED_TYPES:
        return " Save it as JPEG or PNG."
    if name.startswith(("video/", "audio/")) and name not in ACCEPTED_TYPES:
        return " Convert it to MP4 with H.264 and AAC."
    return ""


# --- signatures ------------------------------------------------------------------------------------------------------

_IMAGES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_IMAGE_BRANDS = {
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx"), "image/heic"),
    **dict.fromkeys((b"mif1", b"msf1"), "image/heif"),
    **dict.fromkeys((b"avif", b"avis"), "image/avif"),
}
_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot", b"moof", b"styp", b"sidx"})
"""The first boxes of files (MP4, QuickTime, images)."""

EBML = b"\x1a\x45\xdf\xa3"
"""The first bytes of Matroska and WebM."""

_SIGNATURE_BYTES = 12


def image_type(head: bytes) -> str | None:
    """Return the accepted image type with this beginning, or None."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:8] == b"ftyp":
        return _IMAGE_BRANDS.get(head[8:12])
    return next((mime_type for start, mime_type in _IMAGES if head.startswith(start)), None)


def is_boxes(head: bytes) -> bool:
    """Return whether this is the beginning of a file of boxes: MP4, QuickTime, or an image of boxes."""
    return head[4:8] in _BOXES


def is_video(head: bytes) -> bool:
    return (is_boxes(head) and image_type(head) is None) or head.startswith(EBML)


def guess_type(path: Path) -> str:
    """Return the type for the name of a stored file without a declared type. Raise OSError."""
    with path.open("rb") as file:
        head = file.read(_SIGNATURE_BYTES)
    return image_type(head) or ("video/webm" if head.startswith(EBML) else "video/mp4")


def detect_kind(path: Path) -> str | None:
    """Return `image`, `video` or None. Raise OSError."""
    with path.open("rb") as file:
        head = file.read(_SIGNATURE_BYTES)
    if image_type(head) is not None:
        return "image"
    return "video" if is_video(head) else None
