"""The bytes of an image that was made to fit: which types are worth a try, and the best quality within a size.

Runs in a child process, and loads Pillow.
"""

import io
import math
from typing import Any

from PIL import Image

from socialpub.media.images import FORMATS

_BEST, _LEAST = 95, 60
"""JPEG and WebP quality: above, files only grow; below, it shows, and fewer pixels look better."""

_LONGEST_SIDE = {"image/jpeg": 65_500, "image/webp": 16_383, "image/png": 2**31 - 1}
"""What the encoders take (libjpeg a little less than the format)."""

_HOLDS_TRANSPARENCY = ("image/png", "image/webp")


def candidates(own: str, types: tuple[str, ...], *, transparent: bool) -> list[str]:
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


def best(picture: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any]) -> bytes | None:
    """The best encoding within `max_bytes` at this size, or None."""
    if max(picture.size) > _LONGEST_SIDE[mime_type]:
        return None
    if mime_type not in _HOLDS_TRANSPARENCY and picture.mode == "RGBA":
        picture = _on_white(picture)
    data = _encode(picture, mime_type, _BEST, extra)
    if len(data) <= max_bytes:
        return data
    if mime_type == "image/png":
        return None
    data = _encode(picture, mime_type, _LEAST, extra)
    if len(data) > max_bytes:
        return None
    low, high = _LEAST, _BEST
    while high - low > 1:
        middle = (low + high) // 2
        attempt = _encode(picture, mime_type, middle, extra)
        if len(attempt) <= max_bytes:
            low, data = middle, attempt
        else:
            high = middle
    return data


def next_scale(picture: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any]) -> float:
    """How far to scale down an image for which `best` found nothing. Few steps are needed: bytes go with the area."""
    longest = max(picture.size)
    if longest > _LONGEST_SIDE[mime_type]:
        return _LONGEST_SIDE[mime_type] / longest
    plain = picture.convert("RGB") if picture.mode == "RGBA" and mime_type == "image/jpeg" else picture
    return min(0.9, math.sqrt(max_bytes / len(_encode(plain, mime_type, _LEAST, extra))) * 0.98)


def _encode(picture: Image.Image, mime_type: str, quality: int, extra: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    if mime_type == "image/png":
        picture.save(buffer, "PNG", **extra)
    else:
        picture.save(buffer, FORMATS[mime_type], quality=quality, **extra)
    return buffer.getvalue()


def _on_white(picture: Image.Image) -> Image.Image:
    background = Image.new("RGB", picture.size, (255, 255, 255))
    background.paste(picture, mask=picture.getchannel("A"))
    return background
