"""Images that a pin brings along: in the body or behind a URL."""

import base64
import binascii
import hashlib
import io
from typing import Any

from PIL import Image

from socialpub.sandbox.pinterest import replies
from socialpub.sandbox.pinterest.models import PinImage
from socialpub.sandbox.pinterest.network import PinterestSandbox
from socialpub.sandbox.request import SandboxRequest
from socialpub.sandbox.sniff import dimensions, sniff

BY_URL = ("image/jpeg", "image/png", "image/webp", "image/gif")


def from_base64(
    pinterest: PinterestSandbox, data: str, content_type: str, **texts: str | None
) -> tuple[PinImage, bytes]:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise replies.refused(pinterest, "image_broken") from None
    if sniff(decoded) != content_type:
        raise replies.refused(pinterest, "image_broken")
    return _image(pinterest, decoded, texts), decoded


def from_url(
    pinterest: PinterestSandbox, request: SandboxRequest, url: str, **texts: str | None
) -> tuple[PinImage, bytes]:
    data = request.fetched.get(url)
    if data is None:
        raise replies.refused(pinterest, "unreachable_url")
    if sniff(data) not in BY_URL:
        raise replies.refused(pinterest, "image_broken")
    return _image(pinterest, data, texts), data


def _image(pinterest: PinterestSandbox, data: bytes, texts: dict[str, Any]) -> PinImage:
    width, height = dimensions(data)
    if not width or not height or (pinterest.decodes_images and not _decodes(data)):
        raise replies.refused(pinterest, "image_broken")
    if min(width, height) < pinterest.smallest_side:
        raise replies.refused(pinterest, "image_too_small")
    digest = hashlib.sha256(data).hexdigest()
    return PinImage(pinterest.new_id(), sniff(data), len(data), digest, width, height, **texts)


def _decodes(data: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return False
    return True
