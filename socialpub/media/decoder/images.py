"""Images, decoded frame by frame, under the limits on pixels.

Runs in a child process, and loads Pillow. Sizes are checked before memory is taken for them, so that an image of a few
bytes cannot ask for gigabytes.
"""

import contextlib
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The plugins are those of the accepted types: one that is missing must fail here, not at a file.
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
from socialpub.media.types import MediaLimits, MediaRejected, type_mismatch

FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}
"""Pillow's name for each accepted type; no other decoder is ever tried."""

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture must be turned to stand upright: 1 to 8."""


def inspect_image(path: Path, mime_type: str, found: str, limits: MediaLimits) -> dict[str, Any]:
    """The facts of an image (see `Facts`). Raises `MediaRejected`."""
    data = path.read_bytes()
    if types.image_type(data) != mime_type:
        raise type_mismatch(found, mime_type)
    try:
        other = structure.hidden_in_image(data, mime_type)
    except structure.Broken as broken:
        raise MediaRejected(f"The {FORMATS[mime_type]} picture {broken}.") from None
    if other is not None:
        raise MediaRejected(f"The file was declared as {mime_type}, but it is also {other}; send the picture alone.")
    del data
    with open_image(path, mime_type, limits.image_pixels) as picture:
        return _facts(picture, mime_type, limits)


def _facts(picture: Image.Image, mime_type: str, limits: MediaLimits) -> dict[str, Any]:
    # Only the first picture of a multi-picture JPEG is ever shown; messengers cut the others off and leave their index.
    frames = 1 if mime_type == "image/jpeg" else int(getattr(picture, "n_frames", 1))
    _check_total(picture.width * picture.height * frames, frames, limits)
    total = 0
    for frame in range(frames):
        if frame:
            picture.seek(frame)
        picture.load()
        total += picture.width * picture.height
        _check_total(total, frames, limits)
    width, height = picture.size
    facts: dict[str, Any] = {"frames": frames}
    turned = orientation(picture)
    if turned != 1:
        facts["orientation"] = turned
    if turned >= 5:
        width, height = height, width
    return {"width": width, "height": height, **facts}


def _check_total(pixels: int, frames: int, limits: MediaLimits) -> None:
    if pixels > limits.image_total_pixels:
        raise MediaRejected(
            f"The picture's {frames} frames have {pixels} pixels or more together; "
            f"at most {limits.image_total_pixels} are accepted."
        )


def orientation(picture: Image.Image) -> int:
    """1 to 8; 1 when the picture stands upright or does not say."""
    try:
        value = picture.getexif().get(ORIENTATION, 1)
    except (ValueError, SyntaxError, OSError, KeyError, IndexError, TypeError, struct.error):
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


@contextlib.contextmanager
def open_image(path: Path, mime_type: str, max_pixels: int) -> Iterator[Image.Image]:
    """The picture in Pillow, its pixels not decoded yet; whatever the decoder says against it is a `MediaRejected`."""
    before = Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY
    Image.MAX_IMAGE_PIXELS = max_pixels
    # Frames in their palette take a quarter of the memory.
    GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_AFTER_DIFFERENT_PALETTE_ONLY
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=[FORMATS[mime_type]]) as picture:
                yield picture
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise MediaRejected(f"The picture has more than {max_pixels} pixels in one frame.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        if str(error).startswith("out of memory"):
            raise MemoryError from None
        raise _undecodable(mime_type, error) from None
    except (ValueError, SyntaxError, EOFError, KeyError, IndexError, TypeError, AssertionError, struct.error) as error:
        raise _undecodable(mime_type, error) from None
    finally:
        Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY = before


def _undecodable(mime_type: str, error: Exception) -> MediaRejected:
    # That message would name the file's place on our disk.
    detail = "" if isinstance(error, UnidentifiedImageError) or not str(error) else f" ({error})"
    return MediaRejected(f"The file was declared as {mime_type}, but does not decode as such{detail}.")
