"""Inspects images frame by frame, within the limits on pixels.

The module runs in a child process and loads Pillow. It checks sizes before it allocates memory, so an image of a few
bytes cannot use gigabytes.
"""

import contextlib
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The plugins of the accepted types. A missing plugin must fail here, not at a file.
from PIL import (
    GifImagePlugin,
    Image,
    JpegImagePlugin,  # noqa: F401
    MpoImagePlugin,  # noqa: F401
    PngImagePlugin,  # noqa: F401
    UnidentifiedImageError,
    WebPImagePlugin,  # noqa: F401
)

from socialpub.media import types
from socialpub.media.decoder import structure
from socialpub.media.types import MediaLimits, MediaRejected, is_own_fault, type_mismatch

FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}
"""Pillow's name for each accepted type. Other decoders do not run."""

ORIENTATION = 0x0112
"""The EXIF tag with the orientation, 1 to 8."""


def inspect_image(path: Path, mime_type: str, found: str, limits: MediaLimits) -> dict[str, Any]:
    """Return the facts about an image (see `Facts`). Raise `MediaRejected`."""
    data = path.read_bytes()
    if types.image_type(data) != mime_type:
        raise type_mismatch(found, mime_type)
    try:
        other = structure.hidden_in_image(data, mime_type)
    except structure.Broken as broken:
        raise MediaRejected(f"The {FORMATS[mime_type]} image {broken}.") from None
    if other is not None:
        raise MediaRejected(f"The file was declared as {mime_type}, but it is also {other}. Send only the image.")
    del data
    with open_image(path, mime_type, limits.image_pixels) as image:
        return _facts(image, mime_type, limits)


def _facts(image: Image.Image, mime_type: str, limits: MediaLimits) -> dict[str, Any]:
    # Programs show only the first image of a multi-picture JPEG. Messengers remove the others and keep their index.
    frames = 1 if mime_type == "image/jpeg" else int(getattr(image, "n_frames", 1))
    _check_total(image.width * image.height * frames, frames, limits)
    total = 0
    for frame in range(frames):
        if frame:
            image.seek(frame)
        image.load()
        total += image.width * image.height
        _check_total(total, frames, limits)
    width, height = image.size
    facts: dict[str, Any] = {"frames": frames}
    turned = orientation(image)
    if turned != 1:
        facts["orientation"] = turned
    if turned >= 5:
        width, height = height, width
    return {"width": width, "height": height, **facts}


def _check_total(pixels: int, frames: int, limits: MediaLimits) -> None:
    if pixels > limits.image_total_pixels:
        raise MediaRejected(
            f"The {frames} frames of the image have {pixels} pixels or more in total. "
            f"At most {limits.image_total_pixels} pixels are accepted."
        )


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8, or 1 without a valid tag."""
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except (ValueError, SyntaxError, OSError, KeyError, IndexError, TypeError, struct.error):
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


@contextlib.contextmanager
def open_image(path: Path, mime_type: str, max_pixels: int) -> Iterator[Image.Image]:
    """Open the image in Pillow without decoding it. Raise `MediaRejected` for all errors of Pillow in this block."""
    before = Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY
    Image.MAX_IMAGE_PIXELS = max_pixels
    # Frames with a palette need a quarter of the memory.
    GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_AFTER_DIFFERENT_PALETTE_ONLY
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=[FORMATS[mime_type]]) as image:
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise MediaRejected(f"The image has more than {max_pixels} pixels in one frame.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        if str(error).startswith("out of memory"):
            raise MemoryError from None
        raise _undecodable(mime_type, error) from None
    except Exception as error:
        if isinstance(error, MemoryError) or is_own_fault(error):
            raise
        raise _undecodable(mime_type, error) from None
    finally:
        Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY = before


def _undecodable(mime_type: str, error: Exception) -> MediaRejected:
    # The message of UnidentifiedImageError contains the path.
    detail = "" if isinstance(error, UnidentifiedImageError) or not str(error) else f" ({error})"
    return MediaRejected(f"The file was declared as {mime_type}, but cannot be decoded as this type{detail}.")
