"""Pictures, looked at by decoding them: every frame, under the limits on pixels.

Runs in a child process; Pillow is imported here and nowhere above. Sizes are checked before memory is taken for them,
so that a picture of a few bytes cannot ask for gigabytes.
"""

import contextlib
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from socialpub.media import polyglots
from socialpub.media.inspect import Limits, Refused, differs

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP", "image/gif": "GIF"}
"""Pillow's name for each accepted type; no other decoder is ever tried."""

_SIGNATURES = {
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/gif": (b"GIF87a", b"GIF89a"),
}

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture must be turned to stand upright: 1 to 8."""


def look(path: Path, mime_type: str, found: str, limits: Limits) -> dict[str, Any]:
    """The facts of a picture (see `Facts`). Raises `Refused`."""
    data = path.read_bytes()
    if not _signed(data, mime_type):
        raise differs(found, mime_type)
    try:
        other = polyglots.hidden_in_picture(data, mime_type)
    except polyglots.Broken as broken:
        raise Refused(f"The {FORMATS[mime_type]} picture {broken}.") from None
    if other is not None:
        raise Refused(f"The file was declared as {mime_type}, but it is also {other}; send the picture alone.")
    del data
    with opened(path, mime_type, limits.image_pixels) as picture:
        return _facts(picture, mime_type, limits)


def _signed(data: bytes, mime_type: str) -> bool:
    if mime_type == "image/webp":
        return data[:4] == b"RIFF" and data[8:12] == b"WEBP"
    return data.startswith(_SIGNATURES[mime_type])


def _facts(picture: "Image", mime_type: str, limits: Limits) -> dict[str, Any]:
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


def _check_total(pixels: int, frames: int, limits: Limits) -> None:
    if pixels > limits.image_total_pixels:
        raise Refused(
            f"The picture's {frames} frames have {pixels} pixels or more together; "
            f"at most {limits.image_total_pixels} are accepted."
        )


def orientation(picture: "Image") -> int:
    """1 to 8; 1 when the picture stands upright or does not say."""
    try:
        value = picture.getexif().get(ORIENTATION, 1)
    except (ValueError, SyntaxError, OSError, KeyError, IndexError, TypeError, struct.error):
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


@contextlib.contextmanager
def opened(path: Path, mime_type: str, most_pixels: int) -> Iterator["Image"]:
    """The picture in Pillow, its pixels not decoded yet; whatever the decoder says against it is a `Refused`."""
    from PIL import GifImagePlugin, Image

    before = Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY
    Image.MAX_IMAGE_PIXELS = most_pixels
    # Frames in their palette take a quarter of the memory.
    GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_AFTER_DIFFERENT_PALETTE_ONLY
    try:
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=[FORMATS[mime_type]]) as picture:
                yield picture
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise Refused(f"The picture has more than {most_pixels} pixels in one frame.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise _undecodable(mime_type, error) from None
    except (ValueError, SyntaxError, EOFError, KeyError, IndexError, TypeError, AssertionError, struct.error) as error:
        raise _undecodable(mime_type, error) from None
    finally:
        Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY = before


def _undecodable(mime_type: str, error: Exception) -> Refused:
    from PIL import UnidentifiedImageError

    # That message would name the file's place on our disk.
    told = "" if isinstance(error, UnidentifiedImageError) or not str(error) else f" ({error})"
    return Refused(f"The file was declared as {mime_type}, but does not decode as such{told}.")
