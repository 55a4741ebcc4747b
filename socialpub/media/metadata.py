"""An image without its metadata and with its pixels as they are.

Runs in a child process. Only what a decoder needs to show the image stays: pixels, colour profile, animation.
Everything else is removed: positions, devices, names, comments, thumbnails, content credentials, and the images and
videos that phones put behind the end. A list of what stays also removes kinds of metadata that are not known yet.
"""

from collections.abc import Callable, Mapping

from socialpub.media import image_parts
from socialpub.media.image_parts import Part

_JPEG_HEADERS = frozenset((*range(0xC0, 0xD0), *range(0xDA, 0xE0), image_parts.JPEG_END))
"""Frames, tables, scans, restart intervals."""
_JPEG_SEGMENTS = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
"""How the application segments begin without which colours would change."""

_PNG_ANCILLARY = frozenset(
    b"tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV cLLI acTL fcTL fdAT".split()
)  # fmt: skip
"""Transparency, colours, size and animation (PNG 3, 2025). Chunks that every decoder needs begin with a capital."""

_GIF_APPLICATIONS = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")
"""Repetition and colour profile."""
_GIF_COMMENT, _GIF_APPLICATION = 0xFE, 0xFF

_WEBP_CHUNKS = frozenset((b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"))
_WEBP_HAS_EXIF, _WEBP_HAS_XMP = 0x08, 0x04
"""Flags of the chunk VP8X."""


def strip(data: bytes, mime_type: str) -> bytes | None:
    """Return the image file without metadata: the same bytes when it has none, None when its parts do not add up."""
    try:
        kept = [
            data[part.start : part.stop]
            for part in image_parts.parts(data, mime_type)
            if not part.name or _IS_NEEDED[mime_type](data, part)
        ]
        return _webp(kept) if mime_type == "image/webp" else b"".join(kept)
    except (image_parts.Broken, IndexError):
        return None


def _is_needed_in_jpeg(data: bytes, part: Part) -> bool:
    marker = part.name[0]
    begins = _JPEG_SEGMENTS.get(marker)
    return marker in _JPEG_HEADERS or (begins is not None and data.startswith(begins, part.start + 4))


def _is_needed_in_png(_: bytes, part: Part) -> bool:
    return part.name[:1].isupper() or part.name in _PNG_ANCILLARY


def _is_needed_in_gif(_: bytes, part: Part) -> bool:
    if part.name[0] != image_parts.GIF_EXTENSION or part.name[1] not in (_GIF_COMMENT, _GIF_APPLICATION):
        return True
    return part.name[1] == _GIF_APPLICATION and part.name[3:] in _GIF_APPLICATIONS


def _is_needed_in_webp(_: bytes, part: Part) -> bool:
    return part.name in _WEBP_CHUNKS


def _webp(kept: list[bytes]) -> bytes:
    """Join the chunks under a header that says what is there."""
    chunks = [_without_flags(chunk) if chunk.startswith(b"VP8X") else chunk for chunk in kept[1:]]
    whole = b"".join(chunks)
    return b"RIFF" + (len(whole) + 4).to_bytes(4, "little") + b"WEBP" + whole


def _without_flags(chunk: bytes) -> bytes:
    flags = chunk[8] & ~(_WEBP_HAS_EXIF | _WEBP_HAS_XMP)
    return chunk[:8] + bytes((flags,)) + chunk[9:]


_IS_NEEDED: Mapping[str, Callable[[bytes, Part], bool]] = {
    "image/jpeg": _is_needed_in_jpeg,
    "image/png": _is_needed_in_png,
    "image/gif": _is_needed_in_gif,
    "image/webp": _is_needed_in_webp,
}
