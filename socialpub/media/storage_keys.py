"""Storage keys: what bytes are called in rows and URLs, and the only place where such a name becomes a path.

A key may come from a database that a stranger made. What is not exactly of our form leads to a file that never exists,
inside the media folder: to whoever asks, the bytes are gone.
"""

import re
import secrets
from hashlib import sha256
from pathlib import Path

FITTED = "fitted"
"""The folder of versions that were made for a delivery: a folder for each, and a file for each version."""

THUMBNAILS = "thumbnails"
"""The folder of thumbnails, each under the key of what it shows."""

_NOWHERE = "nowhere"
_SUFFIXES = {
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "image/gif": "gif",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}
_KEY = re.compile(r"[0-9a-f]{2}/[0-9a-f-]{36}-[0-9a-f]{16}\.[a-z0-9]{2,4}")
_FITTED_KEY = re.compile(FITTED + r"/[0-9a-z-]{1,36}/[0-9a-f]{24}")


def new(artifact_id: str, mime_type: str) -> str:
    """A key that was never used."""
    # The end of an id is random; its beginning is the time, which would fill one folder after the other.
    return f"{artifact_id[-2:]}/{artifact_id}-{secrets.token_hex(8)}.{_SUFFIXES[mime_type]}"


def fitted(delivery_id: str, name: str) -> str:
    """The key of a version made for a delivery; `name` is 24 hexadecimal digits."""
    return f"{FITTED}/{delivery_id}/{name}"


def is_key(text: str) -> bool:
    """Whether this has the form of an artifact's key."""
    return _KEY.fullmatch(text) is not None


def path(root: Path, key: str) -> Path:
    """Where the bytes are, or would be."""
    if is_key(key) or _FITTED_KEY.fullmatch(key):
        return root / key
    return root / _NOWHERE / sha256(key.encode(errors="surrogatepass")).hexdigest()


def thumbnail_path(root: Path, key: str) -> Path:
    """Where the thumbnail of the artifact with this key is, or would be."""
    return root / THUMBNAILS / f"{key}.jpg" if is_key(key) else path(root, key)
