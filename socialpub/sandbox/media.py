"""Media bytes: their type and size, and how a network fetches them. This is enough for a sandbox. It is no decoder."""

import hashlib
import io
from collections.abc import Callable

import httpx2
from PIL import Image

Fetch = Callable[[str], bytes]
"""Returns the bytes behind a URL, or raises."""

TIMEOUT_SECONDS = 20
NOT_AN_IMAGE = (
    OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning,
)  # fmt: skip
BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"\x1a\x45\xdf\xa3": "video/webm",
}


def sniff(data: bytes) -> str:
    """Return the media type, or an empty text for bytes of no known type."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp":
        return "video/quicktime" if data[8:10] == b"qt" else "video/mp4"
    return next((kind for beginning, kind in BEGINNINGS.items() if data.startswith(beginning)), "")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def dimensions(data: bytes, *, whole: bool = False) -> tuple[int, int]:
    """Return the width and height of an image, or zeros if it cannot be read. `whole` decodes the whole image."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if whole:
                image.load()
            return image.size
    except NOT_AN_IMAGE:
        return 0, 0


def fetch(url: str, by: Fetch | None) -> bytes | None:
    """Return what is at the URL, by that callable or over HTTP; None unless it responds 200. Redirects count as a
    failure, as on the real networks. Blocks."""
    try:
        if by is not None:
            return by(url)
        response = httpx2.get(url, headers={"accept-encoding": "identity"}, timeout=TIMEOUT_SECONDS)
        return response.content if response.status_code == 200 else None
    except Exception:  # a test's own callable may raise anything
        return None
