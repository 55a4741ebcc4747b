"""Pictures that a pin brings along: in the body or behind a URL."""

import base64
import binascii
import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PIL import Image

from socialpub.sandbox.call import Call, Refusal
from socialpub.sandbox.sniff import dimensions, sniff

if TYPE_CHECKING:
    from socialpub.sandbox.pinterest.network import Pinterest

BY_URL = ("image/jpeg", "image/png", "image/webp", "image/gif")


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture of a pin, or the cover of its film."""

    id: str
    mime_type: str
    size: int
    sha256: str
    width: int
    height: int
    title: str | None = None
    description: str | None = None
    link: str | None = None


def from_base64(pinterest: "Pinterest", data: str, content_type: str, **texts: str | None) -> tuple[Picture, bytes]:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(pinterest.refusal_answer("", "image_broken")) from None
    if sniff(decoded) != content_type:
        raise Refusal(pinterest.refusal_answer("", "image_broken"))
    return _picture(pinterest, decoded, texts), decoded


def from_url(pinterest: "Pinterest", call: Call, url: str, **texts: str | None) -> tuple[Picture, bytes]:
    data = call.fetched.get(url)
    if data is None:
        raise Refusal(pinterest.refusal_answer("", "unreachable_url"))
    if sniff(data) not in BY_URL:
        raise Refusal(pinterest.refusal_answer("", "image_broken"))
    return _picture(pinterest, data, texts), data


def _picture(pinterest: "Pinterest", data: bytes, texts: dict[str, Any]) -> Picture:
    width, height = dimensions(data)
    if not width or not height or (pinterest.decodes_images and not _decodes(data)):
        raise Refusal(pinterest.refusal_answer("", "image_broken"))
    if min(width, height) < pinterest.smallest_side:
        raise Refusal(pinterest.refusal_answer("", "image_too_small"))
    digest = hashlib.sha256(data).hexdigest()
    return Picture(pinterest.world.new_id(), sniff(data), len(data), digest, width, height, **texts)


def _decodes(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    return True
