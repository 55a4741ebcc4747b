"""The bytes of an image that was made to fit: which types are worth a try, and the best quality within a size.

Runs in a child process, and loads Pillow.
"""

import io
import math
from collections.abc import Sequence
from typing import Any

from PIL import Image

from socialpub.media.images import FORMATS
from socialpub.media.types import CannotFit

_BEST, _LEAST = 95, 60
"""JPEG and WebP quality: above, files only grow; below, it shows, and fewer pixels look better."""

_NO_MEMORY = ("encoding error 1", "encoding error 2")
"""How Pillow names libwebp's two errors of that kind, VP8_ENC_ERROR_OUT_OF_MEMORY and ..._BITSTREAM_OUT_OF_MEMORY."""

_LONGEST_SIDE = {"image/jpeg": 65_500, "image/webp": 16_383, "image/png": 2**31 - 1}
"""What the encoders take (libjpeg a little less than the format)."""

_HOLDS_TRANSPARENCY = ("image/png", "image/webp")


def candidates(own: str, types: Sequence[str], *, transparent: bool) -> list[str]:
    """Types to try, in order: its own, then as preferred; those that keep transparency before those that lose it.

    The last one is that which gives way to scaling, so a lossy type is put there when there is one.
    """
    able = [name for name in types if name in _LONGEST_SIDE]
    able.sort(key=lambda name: (transparent and name not in _HOLDS_TRANSPARENCY, name != own))
    lossy = [name for name in able if name != "image/png"]
    if not lossy:
        return able
    # One lossless try at most, and only when that is where the picture comes from or transparency would be lost.
    return [name for name in able[:1] if name == "image/png" and (transparent or own == name)] + lossy[:1]


class TooLarge(Exception):
    """No encoding of an image at this size is small enough. `scale` is how far to scale it down next."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale


def best(
    picture: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any], *, may_be_small: bool = True
) -> bytes:
    """Return the best encoding within `max_bytes` at this size.

    `may_be_small` False: it hardly fits, so the least quality is tried first. Raises `TooLarge`, `CannotFit`, and
    MemoryError when the encoder needs more than it may have.
    """
    longest = max(picture.size)
    if longest > _LONGEST_SIDE[mime_type]:
        raise TooLarge(_LONGEST_SIDE[mime_type] / longest)
    if mime_type not in _HOLDS_TRANSPARENCY and picture.mode == "RGBA":
        picture = _on_white(picture)
    above = _BEST + 1
    if may_be_small or mime_type == "image/png":
        data = _encode(picture, mime_type, _BEST, extra)
        if len(data) <= max_bytes:
            return data
        above = _BEST
    if mime_type != "image/png":
        data = _encode(picture, mime_type, _LEAST, extra)
    if len(data) > max_bytes:
        # Bytes go with the area, so few steps are needed.
        raise TooLarge(min(0.9, math.sqrt(max_bytes / len(data)) * 0.98))
    quality = _LEAST
    while above - quality > 1:
        middle = (quality + above) // 2
        attempt = _encode(picture, mime_type, middle, extra)
        if len(attempt) <= max_bytes:
            quality, data = middle, attempt
        else:
            above = middle
    return data


def _encode(picture: Image.Image, mime_type: str, quality: int, extra: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    options = extra if mime_type == "image/png" else {"quality": quality, **extra}
    try:
        picture.save(buffer, FORMATS[mime_type], **options)
    except (OSError, ValueError) as error:
        reason = str(error)
        if reason in _NO_MEMORY or reason.startswith("out of memory"):
            raise MemoryError from None
        raise CannotFit(f"The picture cannot be written as {mime_type} ({reason}).") from None
    return buffer.getvalue()


def _on_white(picture: Image.Image) -> Image.Image:
    background = Image.new("RGB", picture.size, (255, 255, 255))
    background.paste(picture, mask=picture.getchannel("A"))
    return background
