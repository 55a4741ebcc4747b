"""What a file is, found by decoding it: kind, type, and the figures that the networks ask about.

Runs in a child process (`decoder_process.py`), as whatever a caller sent is decoded here. A file passes only when
libmagic, the structure of the file and a decoder agree on what it is; its name and its sender are never believed.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from socialpub.core import units
from socialpub.media import types
from socialpub.media.decoder import structure
from socialpub.media.types import ACCEPTED_TYPES, Facts, MediaLimits, MediaRejected, canonical_type, type_mismatch

_ACCEPTED = ", ".join(ACCEPTED_TYPES)
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


def inspect_file(path: Path, declared: str | None, limits: MediaLimits) -> Facts:
    """The facts of the file at `path`, which its sender declared as `declared`; None: it counts as what it is.

    Raises `MediaRejected` when it is something else, broken, or over a limit; OSError when the file cannot be read at
    all, which is not the file's fault; MemoryError.
    """
    if declared is not None:
        expected = canonical_type(declared)
        if expected is None:
            raise MediaRejected(f"The declared type {declared!r} is not accepted; accepted are {_ACCEPTED}.")
        return _inspect_as(path, expected, limits)
    try:
        return _inspect_as(path, _recognize(path), limits)
    except MediaRejected as rejected:
        raise MediaRejected(rejected.reason.replace("was declared as", "was found to be")) from None


def _recognize(path: Path) -> str:
    """The accepted type that a file seems to be of. Raises `MediaRejected`."""
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise MediaRejected("The file is empty.")
    found = types.image_type(head)
    if found is None:
        found = detect_type(path)
        if types.is_video(head) and not found.startswith("image/"):
            # Whether Matroska is WebM is for the decoder to say.
            found = structure.read_container(path, found).mime_type.replace("video/x-matroska", "video/webm")
    if found not in ACCEPTED_TYPES:
        raise MediaRejected(f"The file was sent without a type, and its content is {found}; accepted are {_ACCEPTED}.")
    return found


def _inspect_as(path: Path, expected: str, limits: MediaLimits) -> Facts:
    kind = ACCEPTED_TYPES[expected]
    size = path.stat().st_size
    most = limits.image_bytes if kind == "image" else limits.video_bytes
    if size == 0:
        raise MediaRejected(f"The file is empty; it was declared as {expected}.")
    if size > most:
        raise MediaRejected(f"The file is {units.size(size)}; {kind}s may have at most {units.size(most)}.")

    found = detect_type(path)
    if found != expected and found not in _ALSO_NAMED[expected]:
        raise type_mismatch(found, expected)
    # Each brings a decoder of its own, and loading both would double the child's start.
    if kind == "image":
        from socialpub.media.decoder import images

        return Facts(kind, expected, size, images.inspect_image(path, expected, found, limits))
    from socialpub.media.decoder import videos

    return Facts(kind, expected, size, videos.inspect_video(path, expected, found))


def detect_type(path: Path) -> str:
    return str(load_libmagic().from_file(str(path)))


@functools.cache
def load_libmagic() -> Any:
    """Return libmagic with its data loaded: they are files of their own."""
    import pylibmagic  # noqa: F401  # makes `magic` load the libmagic that it carries, and its data file
    import magic  # isort: skip

    return magic.Magic(mime=True)
