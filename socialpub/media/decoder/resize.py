"""Fits an image to a network's limits, and creates thumbnails.

The module runs in a child process and loads Pillow, and PyAV for the thumbnail of a video. The result is upright, has
an accepted type, and is as large and as good as the limits allow. If removing metadata is enough, the pixels do not
change.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageCms

from socialpub.media import types
from socialpub.media.decoder import structure
from socialpub.media.decoder.images import FORMATS, open_image, orientation
from socialpub.media.types import CannotFit, FitLimits, MediaLimits, MediaRejected

# --- pixels ----------------------------------------------------------------------------------------------------------


def detach_image(opened: Image.Image) -> Image.Image:
    """Decode the first frame, and return its pixels without the decoder, which may hold three copies of them."""
    opened.load()
    return opened._new(opened.im)


def normalize_colors(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return the pixels as L, RGB or, if pixels are transparent, RGBA with 8 bits."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        # `convert` alone would change all values above 255 to white.
        return image.convert("I").point(lambda value: value * (1 / 257) + 0).convert("L")
    if image.mode == "CMYK":
        return _from_cmyk(image, profile)
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image if image.mode == "RGBA" else image.convert("RGBA")
        lowest = clear.getchannel("A").getextrema()[0]
        return clear if isinstance(lowest, (int, float)) and lowest < 255 else clear.convert("RGB")
    if image.mode in ("L", "RGB"):
        return image  # a copy could need a fifth of the child's memory
    return image.convert("L" if image.mode == "1" else "RGB")


def _from_cmyk(image: Image.Image, profile: bytes | None) -> Image.Image:
    if profile is not None and profile[16:20] == b"CMYK":
        try:
            inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            shown = ImageCms.profileToProfile(image, inks, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if shown is not None:
                return shown
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # ignore an invalid profile
    return image.convert("RGB")


def profile_for(mode: str, profile: bytes | None) -> dict[str, Any]:
    """Return the encoder's option for the color profile, if the profile is for this mode."""
    space = b"GRAY" if mode == "L" else b"RGB "
    return {"icc_profile": profile} if profile is not None and profile[16:20] == space else {}


def scale_image(image: Image.Image, sides: tuple[int, int]) -> Image.Image:
    if image.size == sides:
        return image
    return image.resize(sides, Image.Resampling.LANCZOS, reducing_gap=3.0)


def set_upright(image: Image.Image, turned: int) -> Image.Image:
    """Return the image upright. `turned` is its EXIF orientation, 1 to 8."""
    method = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }.get(turned)
    return image if method is None else image.transpose(method)


# --- encoding --------------------------------------------------------------------------------------------------------

_BEST, _LEAST = 95, 60
"""JPEG and WebP quality. A higher quality only makes files larger; below the lowest quality, fewer pixels look
better."""

_NO_MEMORY = ("encoding error 1", "encoding error 2")
"""Pillow's messages for libwebp's VP8_ENC_ERROR_OUT_OF_MEMORY and VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY."""

_MAX_SIDE = {"image/jpeg": 65_500, "image/webp": 16_383, "image/png": 2**31 - 1}
"""The limits of the encoders. libjpeg's limit is below the limit of the format."""

_HOLDS_TRANSPARENCY = ("image/png", "image/webp")


def candidate_types(own: str, types: Sequence[str], *, transparent: bool) -> list[str]:
    """Return the types to try, in order: types with transparency first, then the image's own type, then `types`.

    The image is scaled for the last type, so this is a lossy type if possible.
    """
    able = [name for name in types if name in _MAX_SIDE]
    able.sort(key=lambda name: (transparent and name not in _HOLDS_TRANSPARENCY, name != own))
    lossy = [name for name in able if name != "image/png"]
    if not lossy:
        return able
    # PNG is only useful if the image is a PNG or has transparency.
    return [name for name in able[:1] if name == "image/png" and (transparent or own == name)] + lossy[:1]


class TooLarge(Exception):
    """No encoding of an image with this size is small enough. `scale` is the next factor."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale


def encode_best(
    image: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any], *, may_be_small: bool = True
) -> bytes:
    """Return the best encoding of this size within `max_bytes`.

    `may_be_small` False: the image hardly fits, so the lowest quality is tried first. Raise `TooLarge`, `CannotFit` or
    MemoryError.
    """
    longest = max(image.size)
    if longest > _MAX_SIDE[mime_type]:
        raise TooLarge(_MAX_SIDE[mime_type] / longest)
    if mime_type not in _HOLDS_TRANSPARENCY and image.mode == "RGBA":
        image = _on_white(image)
    above = _BEST + 1
    if may_be_small or mime_type == "image/png":
        data = _encode(image, mime_type, _BEST, extra)
        if len(data) <= max_bytes:
            return data
        above = _BEST
    if mime_type != "image/png":
        data = _encode(image, mime_type, _LEAST, extra)
    if len(data) > max_bytes:
        # Bytes are proportional to the area, so few steps are enough.
        raise TooLarge(min(0.9, math.sqrt(max_bytes / len(data)) * 0.98))
    quality = _LEAST
    while above - quality > 1:
        middle = (quality + above) // 2
        attempt = _encode(image, mime_type, middle, extra)
        if len(attempt) <= max_bytes:
            quality, data = middle, attempt
        else:
            above = middle
    return data


def _encode(image: Image.Image, mime_type: str, quality: int, extra: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    options = extra if mime_type == "image/png" else {"quality": quality, **extra}
    try:
        image.save(buffer, FORMATS[mime_type], **options)
    except (OSError, ValueError) as error:
        reason = str(error)
        if reason in _NO_MEMORY or reason.startswith("out of memory"):
            raise MemoryError from None
        raise CannotFit(f"The image cannot be written as {mime_type} ({reason}).") from None
    return buffer.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    background = Image.new("RGB", image.size, (255, 255, 255))
    background.paste(image, mask=image.getchannel("A"))
    return background


# --- fitting ---------------------------------------------------------------------------------------------------------

WITH_LESS_MEMORY = 0.7
"""The factor (half of the pixels) after an encoder runs out of memory."""


def fit(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a version of the image `source` within the limits to `target`.

    Return mime_type, width, height, size_bytes, `changed` and `reencoded`. `changed` is False if the source fits and
    has no metadata, so nothing was written. `reencoded` is False if only metadata were removed. Raise `CannotFit` or
    MemoryError.
    """
    mime_type = _image_type(source)
    try:
        with open_image(source, mime_type, MediaLimits().image_pixels) as opened:
            turned = orientation(opened)
            width, height = opened.size if turned < 5 else opened.size[::-1]
            factor = limits.scale(width, height)
            if not limits.rewrite and mime_type in limits.types and _shows_as_it_is(opened, turned, factor):
                copied = _copy_pixels(source, target, mime_type, limits.max_bytes)
                if copied is not None:
                    size, changed = copied
                    return _result(mime_type, width, height, size, changed=changed, reencoded=False)
            if mime_type == "image/gif" and "image/gif" in limits.types and getattr(opened, "n_frames", 1) > 1:
                raise CannotFit(_gif_too_large(limits, width, height, source.stat().st_size))
            if factor < 1:
                # The JPEG decoder can decode at a lower size, which is never below the given size.
                opened.draft(None, (math.ceil(opened.width * factor), math.ceil(opened.height * factor)))
            image = detach_image(opened)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None
    del opened
    profile = image.info.get("icc_profile")
    image = normalize_colors(image, profile)
    image = scale_image(image, _sides((width, height), factor, turned))
    image = set_upright(image, turned)
    image.info = {}  # otherwise, Pillow writes comments and a profile of another color space
    candidates = candidate_types(mime_type, limits.types, transparent=image.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The image cannot be written as {' or '.join(limits.types)}.")
    return write_within(image, candidates, target, limits.max_bytes, profile_for(image.mode, profile))


def _shows_as_it_is(image: Image.Image, turned: int, factor: float) -> bool:
    """Return whether the pixels can stay: upright, small enough, and in colors that every viewer supports."""
    return turned == 1 and factor == 1 and image.mode != "CMYK"


def _copy_pixels(source: Path, target: Path, mime_type: str, max_bytes: int) -> tuple[int, bool] | None:
    """Write the file without its metadata to `target`, unless it has no metadata.

    Return its size and whether it was written, or None for a file that is too large or invalid.
    """
    data = source.read_bytes()
    plain = structure.strip_metadata(data, mime_type)
    if plain is None or len(plain) > max_bytes:
        return None
    if plain == data:
        return len(data), False
    target.write_bytes(plain)
    return len(plain), True


def _result(
    mime_type: str, width: int, height: int, size: int, *, changed: bool = True, reencoded: bool = True
) -> dict[str, Any]:
    return {
        "mime_type": mime_type,
        "width": width,
        "height": height,
        "size_bytes": size,
        "changed": changed,
        "reencoded": reencoded,
    }


def _image_type(source: Path) -> str:
    with source.open("rb") as file:
        mime_type = types.image_type(file.read(12))
    if mime_type is None:
        raise CannotFit("The file is not an image of an accepted type.")
    return mime_type


def _gif_too_large(limits: FitLimits, width: int, height: int, size: int) -> str:
    most = [f"{limits.max_bytes} bytes"]
    most += [
        f"{side} pixels {name}" for side, name in ((limits.max_width, "wide"), (limits.max_height, "high")) if side
    ]
    return (
        f"socialpub does not resize animated GIFs. This GIF has {size} bytes and {width} × {height} pixels. "
        f"At most {', '.join(most)} are accepted."
    )


def write_within(
    image: Image.Image, candidates: Sequence[str], target: Path, max_bytes: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Write the image as the first of these types that fits, with fewer pixels if necessary. Raise `CannotFit`.

    Return the result of `fit`, and `gave_way` if an encoder ran out of memory at a larger size.
    """
    whole, ran_out = image.size, False
    while True:
        for candidate in candidates:
            may_be_small = ran_out or image.size == whole
            try:
                data = encode_best(image, candidate, max_bytes, extra, may_be_small=may_be_small)
            except TooLarge as too_large:
                scale = too_large.scale
            except MemoryError:
                scale, ran_out = WITH_LESS_MEMORY, True
            else:
                target.write_bytes(data)
                result = _result(candidate, image.width, image.height, len(data))
                return result | ({"gave_way": True} if ran_out else {})
        width, height = int(image.width * scale), int(image.height * scale)
        if width < 1 or height < 1:
            raise CannotFit(f"No version of the image has at most {max_bytes} bytes.")
        image = scale_image(image, (width, height))


def _sides(shown: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """Return the scaled sides in the stored orientation, rounded down."""
    if factor == 1:
        width, height = shown
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in shown)
    return (width, height) if turned < 5 else (height, width)


# --- thumbnails ------------------------------------------------------------------------------------------------------

_TURNS = {90: 8, 180: 3, 270: 6}
"""The EXIF orientation for counterclockwise degrees."""


def write_thumbnail(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a still of `source` within the limits to `target`. Return the result of `fit`. Raise `CannotFit`."""
    if types.detect_kind(source) != "video":
        return fit(source, target, limits)
    try:
        return _write_first_frame(source, target, limits)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None


def _write_first_frame(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    from socialpub.media.decoder import videos

    with source.open("rb") as file:
        demuxer = "matroska" if file.read(4) == types.EBML else "mov"
    with videos.open_video(source, demuxer, "video") as container:
        track = videos.find_track(container, "video")
        frame = videos.first_frame(container, track)
        if frame is None:
            raise CannotFit(
                "The beginning of the video cannot be decoded. Export the video again, for example as MP4 with H.264."
            )
        turned = _TURNS.get(frame.rotation % 360, 1)
        shown = (frame.width, frame.height) if turned < 5 else (frame.height, frame.width)
        factor = limits.scale(*shown)
        # Scale the frame before its conversion, so a large video needs only the memory of one frame.
        width, height = (max(2, int(side * factor)) for side in (frame.width, frame.height))
        still: Image.Image = frame.to_image(width=width, height=height)  # type: ignore[no-untyped-call]
    return write_within(set_upright(still, turned), limits.types, target, limits.max_bytes, {})
