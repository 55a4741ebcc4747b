"""Finds the kind, type and facts of a file by decoding the file.

The module runs in a child process (`process.py`). A file is only valid if libmagic, its structure and a decoder agree
on the type. Its name is ignored.
"""

import ctypes
import functools
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from socialpub.core import units
from socialpub.media import types
from socialpub.media.decoder import structure
from socialpub.media.types import (
    ACCEPTED_TYPES,
    Facts,
    MediaLimits,
    MediaRejected,
    canonical_type,
    how_to_convert,
    type_mismatch,
)

_ACCEPTED = ", ".join(ACCEPTED_TYPES)
_UNDECIDED = frozenset({types.UNDECLARED})
_MP4_FAMILY = _UNDECIDED | {
    "video/mp4",
    "video/x-m4v",
    "video/3gpp",
    "video/3gpp2",
    "video/quicktime",
    "application/mp4",
    # For brands of PlayStation and some phones, libmagic reports audio. The decoder checks the video track.
    "audio/mp4",
    "audio/x-m4a",
}
_ALSO_NAMED: Mapping[str, frozenset[str]] = {
    "image/jpeg": _UNDECIDED | {"image/mpo", "image/x-mpo", "image/pjpeg"},
    "image/png": _UNDECIDED | {"image/apng", "image/vnd.mozilla.apng"},
    "image/webp": _UNDECIDED,
    "image/gif": _UNDECIDED,
    # Phones and browsers use both names for the images of a phone.
    "image/heic": _UNDECIDED | {"image/heif", "image/heic-sequence", "image/heif-sequence"},
    "image/heif": _UNDECIDED | {"image/heic", "image/avif", "image/heic-sequence", "image/heif-sequence"},
    "image/avif": _UNDECIDED | {"image/heif", "image/avif-sequence"},
    "video/mp4": _MP4_FAMILY,
    "video/quicktime": _MP4_FAMILY,
    "video/webm": _UNDECIDED | {"video/x-matroska"},
}
"""libmagic's other names for valid files of a type. The decoder decides."""


def inspect_file(path: Path, declared: str | None, limits: MediaLimits) -> Facts:
    """Return the facts about a file with this declared type. None: only the content counts.

    Raise `MediaRejected` for a bad file, OSError if the file cannot be read, or MemoryError.
    """
    if declared is not None:
        expected = canonical_type(declared)
        if expected is None:
            raise MediaRejected(
                f"The declared type {declared!r} is not accepted.{how_to_convert(declared)} Accepted types are "
                f"{_ACCEPTED}."
            )
        return _inspect_as(path, expected, limits)
    try:
        return _inspect_as(path, _recognize(path), limits)
    except MediaRejected as rejected:
        raise MediaRejected(rejected.reason.replace("was declared as", "was found to be")) from None


def _recognize(path: Path) -> str:
    """Return the accepted type of a file by its beginning. Raise `MediaRejected`."""
    with path.open("rb") as file:
        head = file.read(16)
    if not head:
        raise MediaRejected("The file is empty.")
    mime_type = types.image_type(head)
    if mime_type is None:
        mime_type = detect_type(path)
        if types.is_video(head) and not mime_type.startswith("image/"):
            # The decoder decides whether Matroska is WebM.
            mime_type = structure.read_container(path, mime_type).mime_type.replace("video/x-matroska", "video/webm")
    if mime_type not in ACCEPTED_TYPES:
        raise MediaRejected(
            f"The content of the file is {mime_type}.{how_to_convert(mime_type)} Accepted types are {_ACCEPTED}."
        )
    return mime_type


def _inspect_as(path: Path, expected: str, limits: MediaLimits) -> Facts:
    kind = ACCEPTED_TYPES[expected]
    size = path.stat().st_size
    most = limits.image_bytes if kind == "image" else limits.video_bytes
    if size == 0:
        raise MediaRejected(f"The file is empty. The declared type is {expected}.")
    if size > most:
        raise MediaRejected(
            f"The file has {units.size(size)}. {kind.capitalize()}s may have at most {units.size(most)}."
        )

    detected = detect_type(path)
    if detected != expected and detected not in _ALSO_NAMED[expected]:
        raise type_mismatch(detected, expected)
    # Loading the decoders of both kinds would double the time of the child's start.
    if kind == "image":
        from socialpub.media.decoder import images

        return Facts(kind, expected, size, images.inspect_image(path, expected, detected, limits))
    from socialpub.media.decoder import videos

    return Facts(kind, expected, size, videos.inspect_video(path, expected, detected))


def detect_type(path: Path) -> str:
    """Return libmagic's name for the content. Raise `MediaRejected`."""
    libmagic = load_libmagic()
    import magic

    try:
        return str(libmagic.from_file(str(path)))
    except magic.MagicException as error:
        raise MediaRejected(f"libmagic cannot recognize the content of the file ({error}).") from None


@functools.cache
def load_libmagic() -> Any:
    """Return libmagic with its data files loaded: the newer one of the system's and the included one."""
    package = importlib.util.find_spec("pylibmagic")
    assert package is not None and package.origin is not None
    included = Path(package.origin).parent
    # The system's library comes first: a name without a path means the first one that is loaded.
    version = _usable_version("libmagic.so.1", None)
    if _usable_version(str(included / "libmagic.so"), str(included / "magic.mgc")) >= version:
        import pylibmagic  # noqa: F401  # makes `magic` load the included library and its data file
    import magic

    return magic.Magic(mime=True)


def describe_libmagic() -> str:
    """Return the version of the library in use and its place."""
    load_libmagic()
    import magic

    place = "included in pylibmagic" if "pylibmagic" in sys.modules else "installed on this system"
    number = int(magic.version())  # type: ignore[no-untyped-call]
    return f"{number // 100}.{number % 100:02} ({place})"


def _usable_version(library: str, data: str | None) -> int:
    """Return the version of a library that can load its data file (None: the library's default), or 0."""
    try:
        libmagic = ctypes.CDLL(library)
        libmagic.magic_open.restype = ctypes.c_void_p
        cookie = ctypes.c_void_p(libmagic.magic_open(0))
        usable = libmagic.magic_load(cookie, None if data is None else data.encode()) == 0
        libmagic.magic_close(cookie)
        return int(libmagic.magic_version()) if usable else 0
    except (OSError, AttributeError):  # no such library, or one without versions
        return 0
