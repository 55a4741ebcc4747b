"""What a file is, found by looking inside it: kind, type, and the figures that the networks ask about.

Meant to run in a child process (`examiner.py`): whatever a caller sent is decoded here. A file passes only when
libmagic, the structure of the file and a decoder agree on what it is; its name and its sender are never believed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACCEPTED: Mapping[str, str] = {
    "image/jpeg": "image",
    "image/png": "image",
    "image/webp": "image",
    "image/gif": "image",
    "video/mp4": "video",
    "video/quicktime": "video",
    "video/webm": "video",
}
"""The media types that may be uploaded, and the kind of each."""

_UNDECIDED = frozenset({"application/octet-stream"})
_MP4_FAMILY = _UNDECIDED | {
    "video/mp4",
    "video/x-m4v",
    "video/3gpp",
    "video/3gpp2",
    "video/quicktime",
    "application/mp4",
    # PlayStation and some phones write brands that libmagic files under sound; the decoder looks for the video track.
    "audio/mp4",
    "audio/x-m4a",
}
_ALSO_NAMED: Mapping[str, frozenset[str]] = {
    "image/jpeg": _UNDECIDED | {"image/mpo", "image/x-mpo", "image/pjpeg"},
    "image/png": _UNDECIDED | {"image/apng", "image/vnd.mozilla.apng"},
    "image/webp": _UNDECIDED,
    "image/gif": _UNDECIDED,
    "video/mp4": _MP4_FAMILY,
    "video/quicktime": _MP4_FAMILY,
    "video/webm": _UNDECIDED | {"video/x-matroska"},
}
"""Names of libmagic under which a real file of the declared type is known to appear. The decoder has the last word."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may measure. Bytes; pixels of one frame, and of all frames of an animation together."""

    image_bytes: int = 32 * 1024 * 1024
    image_pixels: int = 100_000_000
    image_total_pixels: int = 500_000_000
    video_bytes: int = 157_286_400


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


class Refused(Exception):
    """The file is not what it has to be. `reason` is a sentence for the caller; it names no path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def canonical(mime_type: str) -> str | None:
    """The accepted type that this one means (`image/jpg` is `image/jpeg`), or None."""
    name = mime_type.strip().lower()
    if name == "image/jpg":
        name = "image/jpeg"
    return name if name in ACCEPTED else None


def kind_of(mime_type: str) -> str | None:
    """`image` or `video`; None for a type that is not accepted."""
    name = canonical(mime_type)
    return None if name is None else ACCEPTED[name]


def examine(path: Path, declared: str, limits: Limits) -> Facts:
    """Look inside the file at `path`, which its sender declared as `declared`.

    Raises `Refused` when it is something else, broken, or over a limit; OSError when the file cannot be read at all,
    which is not the file's fault.
    """
    from socialpub.media import images, videos

    expected = canonical(declared)
    if expected is None:
        raise Refused(f"The declared type {declared!r} is not accepted; accepted are {', '.join(ACCEPTED)}.")
    kind = ACCEPTED[expected]
    size = path.stat().st_size
    most = limits.image_bytes if kind == "image" else limits.video_bytes
    if size == 0:
        raise Refused(f"The file is empty; it was declared as {expected}.")
    if size > most:
        raise Refused(f"The file has {size} bytes; {kind}s may have at most {most}.")

    found = name_of(path)
    if found != expected and found not in _ALSO_NAMED[expected]:
        raise differs(found, expected)
    try:
        look = images.look if kind == "image" else videos.look
        facts = look(path, expected, found, limits)
    except Refused:
        raise
    except MemoryError:
        raise Refused(f"Decoding the file as {expected} needs more memory than one upload may take.") from None
    return Facts(kind, expected, size, facts)


def name_of(path: Path) -> str:
    """libmagic's name for the file's content."""
    import pylibmagic  # noqa: F401  # makes `magic` load the libmagic that it carries, and its data file
    import magic  # isort: skip

    return str(magic.Magic(mime=True).from_file(str(path)))


def differs(found: str, declared: str) -> Refused:
    """The refusal that names both types."""
    return Refused(f"The file was declared as {declared}, but its content is {found}.")
