"""Inspects images frame by frame, within the limits on pixels.

The module runs in a child process and loads Pillow. It checks sizes before it allocates memory, so an image of a few
bytes cannot use gigabytes.
"""

import contextlib
import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The plugins of the accepted types. A missing plugin must fail here, not at a file.
from PIL import (
    GifImagePlugin,
    Image,
    JpegImagePlugin,  # noqa: F401
    MpoImagePlugin,  # noqa: F401
    PngImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,  # noqa: F401
)

from socialpub.media import types
from socialpub.media.decoder import jpeg, structure
from socialpub.media.types import MediaLimits, MediaRejected, is_own_fault, type_mismatch

FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/webp": "WEBP",
    "image/gif": "GIF",
    "image/heic": "HEIF",
    "image/heif": "HEIF",
    "image/avif": "AVIF",
}
"""Pillow's name for each accepted type. Other decoders do not run."""

_DECODER_ERRORS: tuple[type[Exception], ...] = (
    ValueError, SyntaxError, EOFError, RuntimeError, LookupError, TypeError, AssertionError, struct.error,
)  # fmt: skip

_ORIENTATION = 0x0112
"""The EXIF tag with the orientation, 1 to 8."""

PngImagePlugin.MAX_TEXT_CHUNK = 16 * 1024 * 1024
"""The limit of an unpacked text or color profile in a PNG. Pillow's own limit, 1 MiB, is too low for real files."""

_ROWS = 64
"""Checksums are computed for this number of rows at a time, because the whole copy needs too much memory."""


def load_decoder(path: Path) -> None:
    """Load the decoder of HEIC and AVIF if the file has such a type, because other files do not need it."""
    with path.open("rb") as file:
        _load_decoder(types.image_type(file.read(12)))


def _load_decoder(mime_type: str | None) -> None:
    if mime_type not in types.BOXED_IMAGES:
        return
    from PIL import AvifImagePlugin

    AvifImagePlugin.DEFAULT_MAX_THREADS = 1  # each further thread would need address space
    if mime_type != "image/avif":
        import pillow_heif

        pillow_heif.register_heif_opener(decode_threads=1, thumbnails=False, depth_images=False, aux_images=False)


def inspect_image(path: Path, mime_type: str, detected: str, limits: MediaLimits) -> dict[str, Any]:
    """Return the facts about an image (see `Facts`). Raise `MediaRejected`."""
    data = path.read_bytes()
    actual = types.image_type(data)
    both = {actual, mime_type}
    if len(both) > 1 and not ("image/heif" in both and both <= set(types.BOXED_IMAGES)):
        raise type_mismatch(actual or detected, mime_type)
    try:
        other = structure.hidden_in_image(data, mime_type)
    except structure.Broken as broken:
        raise MediaRejected(f"The {FORMATS[mime_type]} image {broken}.") from None
    if other is not None:
        raise MediaRejected(f"The file was declared as {mime_type}, but it is also {other}. Send only the image.")
    with open_image(data, mime_type, limits.image_pixels) as image:
        facts = _facts(image, mime_type, limits)
        pixels = _checksum(image) if mime_type == "image/jpeg" else None
    if pixels is not None:
        _check_complete(data, pixels, limits.image_pixels)
    return facts


def _check_complete(data: bytes, pixels: int, max_pixels: int) -> None:
    """Raise `MediaRejected` unless all pixels of the JPEG come from its data.

    libjpeg fills missing pixels with gray and reports no error. The other decoders report an error.
    """
    segments = jpeg.read_segments(data)
    with open_image(jpeg.with_padding(data, segments), "image/jpeg", max_pixels) as image:
        image.load()
        complete = _checksum(image) == pixels
    if not (complete and len(segments.scanned) >= segments.components):
        raise MediaRejected("The JPEG image is incomplete: data of its pixels are missing.")


def shows_the_same(rewritten: bytes, original: bytes, mime_type: str, max_pixels: int) -> bool:
    """Return whether all frames of both files have the same pixels, colors and durations."""
    try:
        return _shown(rewritten, mime_type, max_pixels) == _shown(original, mime_type, max_pixels)
    except MediaRejected:
        return False


def _shown(data: bytes, mime_type: str, max_pixels: int) -> list[tuple[Any, ...]]:
    frames_shown: list[tuple[Any, ...]] = []
    with open_image(data, mime_type, max_pixels) as image:
        for frame in range(count_frames(image, mime_type)):
            image.seek(frame)
            image.load()
            facts = (image.info.get(name) for name in ("duration", "loop", "icc_profile", "gamma", "transparency"))
            frames_shown.append((image.mode, image.size, _checksum(image), *facts))
    return frames_shown


def _checksum(image: Image.Image) -> int:
    value = 0
    for top in range(0, image.height, _ROWS):
        rows = image.crop((0, top, image.width, min(top + _ROWS, image.height)))
        value = zlib.crc32((rows.convert("RGBA") if rows.mode in ("P", "PA") else rows).tobytes(), value)
    return value


def count_frames(image: Image.Image, mime_type: str) -> int:
    """Return the number of frames.

    Programs show only the first image of a multi-picture JPEG and the primary image of a HEIC file. Messengers remove
    the others of a JPEG and keep their index.
    """
    still = mime_type == "image/jpeg" or image.format == "HEIF"
    return 1 if still else int(getattr(image, "n_frames", 1))


def _facts(image: Image.Image, mime_type: str, limits: MediaLimits) -> dict[str, Any]:
    frames = count_frames(image, mime_type)
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
    """Return the EXIF orientation, 1 to 8, or 1 without a valid tag. Browsers ignore an orientation in XMP."""
    if image.format == "PNG":
        image.load()  # EXIF may follow the pixels
    exif = Image.Exif()
    try:
        exif.load(image.info.get("exif") or b"")
        value = exif.get(_ORIENTATION, 1)
    except (ValueError, SyntaxError, OSError, KeyError, IndexError, TypeError, struct.error):
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


@contextlib.contextmanager
def open_image(data: bytes, mime_type: str, max_pixels: int) -> Iterator[Image.Image]:
    """Open the image in Pillow without decoding it. Raise `MediaRejected` for all errors of Pillow in this block."""
    before = Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY
    Image.MAX_IMAGE_PIXELS = max_pixels
    # Frames with a palette need a quarter of the memory.
    GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_AFTER_DIFFERENT_PALETTE_ONLY
    if mime_type == "image/jpeg":
        data = jpeg.with_end(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            actual = types.image_type(data) or mime_type
            if actual == "image/heif" and b"avif" in data[: int.from_bytes(data[:4])]:
                actual = "image/avif"  # the other brands of the file
            _load_decoder(actual)
            with Image.open(io.BytesIO(data), formats=[FORMATS[actual]]) as image:
                yield image
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise MediaRejected(f"The image has more than {max_pixels} pixels in one frame.") from None
    except OSError as error:
        if error.errno is not None:
            raise
        if str(error).startswith("out of memory"):
            raise MemoryError from None
        raise _undecodable(mime_type, error) from None
    except _DECODER_ERRORS as error:
        if is_own_fault(error):
            raise
        raise _undecodable(mime_type, error) from None
    finally:
        Image.MAX_IMAGE_PIXELS, GifImagePlugin.LOADING_STRATEGY = before


def _undecodable(mime_type: str, error: Exception) -> MediaRejected:
    if "truncated" in str(error):
        return MediaRejected(f"The {FORMATS[mime_type]} image is incomplete: data of its pixels are missing.")
    # The message of UnidentifiedImageError contains the path.
    detail = "" if isinstance(error, UnidentifiedImageError) or not str(error) else f" ({error})"
    return MediaRejected(
        f"The file was declared as {mime_type}, but cannot be decoded as this type{detail}. Save the image again as "
        "JPEG or PNG."
    )
