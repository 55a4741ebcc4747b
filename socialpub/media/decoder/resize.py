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

from PIL import Image, ImageChops, ImageCms

from socialpub.media import types
from socialpub.media.decoder import structure
from socialpub.media.decoder.images import FORMATS, count_frames, open_image, orientation, shows_the_same
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
        return _to_srgb(image, profile) if profile and profile[16:20] == b"CMYK" else image.convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        clear = image if image.mode == "RGBA" else image.convert("RGBA")
        lowest = clear.getchannel("A").getextrema()[0]
        return clear if isinstance(lowest, (int, float)) and lowest < 255 else clear.convert("RGB")
    if image.mode in ("L", "RGB"):
        return image  # a copy could need a fifth of the child's memory
    return image.convert("L" if image.mode == "1" else "RGB")


def _to_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    """Return the pixels as RGB in sRGB. An invalid profile is ignored."""
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError):
        converted = None
    return image.convert("RGB") if converted is None else converted


_MAX_PROFILE_BYTES = 1024 * 1024
"""Decoders such as Pillow refuse a larger profile in a PNG."""


def apply_profile(image: Image.Image, profile: bytes | None) -> tuple[Image.Image, dict[str, Any]]:
    """Return the image, and the encoder's option for the color profile, if the profile is for this mode.

    A large profile is replaced by sRGB.
    """
    if profile is None or profile[16:20] != (b"GRAY" if image.mode == "L" else b"RGB "):
        return image, {}
    if len(profile) <= _MAX_PROFILE_BYTES:
        return image, {"icc_profile": profile}
    converted = _to_srgb(image.convert("RGB") if image.mode == "RGBA" else image, profile)
    if image.mode == "RGBA":
        converted.putalpha(image.getchannel("A"))
    return converted, {}


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

_PNG, _WEBP_LOSSLESS = "image/png", "image/webp;lossless"
_HOLDS_TRANSPARENCY = (_PNG, "image/webp")
_FROM_CAMERAS = ("image/jpeg", *types.BOXED_IMAGES)
"""An image of these types was already compressed with loss."""


def candidate_types(own: str, accepted: Sequence[str], *, transparent: bool) -> list[str]:
    """Return the types to try, in order.

    Images that are not photos of cameras stay without loss if possible: as PNG, else as WebP. The last type is lossy if
    possible, because the image is scaled for this type.
    """
    able = [name for name in accepted if name in _MAX_SIDE]
    if own in types.BOXED_IMAGES and "image/jpeg" in able:
        return ["image/jpeg"]
    lossless = [name for name in (_PNG, _WEBP_LOSSLESS) if name.partition(";")[0] in able][:1]
    lossy = [name for name in able if name != _PNG]
    lossy.sort(key=lambda name: (transparent and name not in _HOLDS_TRANSPARENCY, name != own))
    return [*([] if own in _FROM_CAMERAS and lossy else lossless), *lossy[:1]]


class TooLarge(Exception):
    """No encoding of an image with this size is small enough. `scale` is the next factor."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale


def encode_best(
    image: Image.Image, candidate: str, max_bytes: int, extra: dict[str, Any], *, may_be_small: bool = True
) -> bytes:
    """Return the best encoding of this size within `max_bytes`. `candidate` is from `candidate_types`.

    `may_be_small` False: the image hardly fits, so the lowest quality is tried first. Raise `TooLarge`, `CannotFit` or
    MemoryError.
    """
    mime_type = candidate.partition(";")[0]
    lossless = candidate in (_PNG, _WEBP_LOSSLESS)
    longest = max(image.size)
    if longest > _MAX_SIDE[mime_type]:
        raise TooLarge(_MAX_SIDE[mime_type] / longest)
    if mime_type not in _HOLDS_TRANSPARENCY and image.mode == "RGBA":
        image = _on_white(image)
    above = _BEST + 1
    if may_be_small or lossless:
        data = _encode(image, candidate, _BEST, extra)
        if len(data) <= max_bytes:
            return data
        above = _BEST
    if not lossless:
        data = _encode(image, candidate, _LEAST, extra)
    if len(data) > max_bytes:
        # Bytes are proportional to the area, so few steps are enough.
        raise TooLarge(min(0.9, math.sqrt(max_bytes / len(data)) * 0.98))
    quality = _LEAST
    while above - quality > 1:
        middle = (quality + above) // 2
        attempt = _encode(image, candidate, middle, extra)
        if len(attempt) <= max_bytes:
            quality, data = middle, attempt
        else:
            above = middle
    return data


def _encode(image: Image.Image, candidate: str, quality: int, extra: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    mime_type = candidate.partition(";")[0]
    options: dict[str, Any] = {} if candidate == _PNG else {"quality": quality}
    if candidate == "image/jpeg":
        options["subsampling"] = 0  # drawings need colors at full resolution
    elif candidate == _WEBP_LOSSLESS:
        options = {"lossless": True}
    try:
        (_with_palette(image) if candidate == _PNG else image).save(buffer, FORMATS[mime_type], **options, **extra)
    except (OSError, ValueError) as error:
        reason = str(error)
        if reason in _NO_MEMORY or reason.startswith("out of memory"):
            raise MemoryError from None
        raise CannotFit(f"The image cannot be written as {mime_type} ({reason}).") from None
    return buffer.getvalue()


def _with_palette(image: Image.Image) -> Image.Image:
    """Return the image with a palette if it has at most 256 colors: the PNG then has a fraction of the size."""
    if image.mode != "RGB" or image.getcolors(256) is None:
        return image
    small = image.quantize(256, dither=Image.Dither.NONE)
    return small if ImageChops.difference(small.convert("RGB"), image).getbbox() is None else image


def _on_white(image: Image.Image) -> Image.Image:
    background = Image.new("RGB", image.size, (255, 255, 255))
    background.paste(image, mask=image.getchannel("A"))
    return background


# --- fitting ---------------------------------------------------------------------------------------------------------

_MAX_PIXELS = MediaLimits().image_pixels

WITH_LESS_MEMORY = 0.7
"""The factor (half of the pixels) after an encoder runs out of memory."""


def fit(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a version of the image `source` within the limits to `target`.

    Return mime_type, width, height, size_bytes, `changed` and `reencoded`. `changed` is False if the source fits and
    has no metadata, so nothing was written. `reencoded` is False if only metadata were removed. Raise `CannotFit` or
    MemoryError.
    """
    data = source.read_bytes()
    mime_type = types.image_type(data)
    if mime_type is None:
        raise CannotFit("The file is not an image of an accepted type.")
    try:
        with open_image(data, mime_type, _MAX_PIXELS) as opened:
            turned = orientation(opened)
            width, height = opened.size if turned < 5 else opened.size[::-1]
            factor = limits.scale(width, height)
            animated = count_frames(opened, mime_type) > 1
            # Networks animate only GIFs. Of other animations, they show the first frame or refuse the file.
            fits = mime_type in limits.types and not limits.rewrite and (mime_type == "image/gif" or not animated)
            if fits and _shows_as_it_is(opened, turned, factor):
                plain = structure.strip_metadata(data, mime_type)
                size = len(data) if plain is None else len(plain)
                if size <= limits.max_bytes and plain == data:
                    return _result(mime_type, width, height, size, changed=False, reencoded=False)
                if plain and size <= limits.max_bytes and shows_the_same(plain, data, mime_type, _MAX_PIXELS):
                    target.write_bytes(plain)
                    return _result(mime_type, width, height, size, reencoded=False)
            if animated and mime_type == "image/gif" and "image/gif" in limits.types:
                if factor == 1 and len(data) <= limits.max_bytes:
                    raise CannotFit("The metadata of this animated GIF cannot be removed. Save the GIF again.")
                raise CannotFit(_gif_too_large(limits, width, height, len(data)))
            if factor < 1:
                # The JPEG decoder can decode at a lower size, which is never below the given size.
                opened.draft(None, (math.ceil(opened.width * factor), math.ceil(opened.height * factor)))
            image = detach_image(opened)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None
    del opened, data
    profile = image.info.get("icc_profile")
    image = normalize_colors(image, profile)
    image = scale_image(image, _sides((width, height), factor, turned))
    image = set_upright(image, turned)
    candidates = candidate_types(mime_type, limits.types, transparent=image.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The image cannot be written as {' or '.join(limits.types)}.")
    image, extra = apply_profile(image, profile)
    image.info = {}  # otherwise, Pillow writes comments and a profile of another color space
    return write_within(image, candidates, target, limits.max_bytes, extra)


def _shows_as_it_is(image: Image.Image, turned: int, factor: float) -> bool:
    """Return whether the pixels can stay: upright, small enough, and in colors that every viewer supports."""
    large_profile = len(image.info.get("icc_profile") or b"") > _MAX_PROFILE_BYTES
    return turned == 1 and factor == 1 and image.mode != "CMYK" and not large_profile


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
                result = _result(candidate.partition(";")[0], image.width, image.height, len(data))
                return result | ({"gave_way": True} if ran_out else {})
        width, height = int(image.width * scale), int(image.height * scale)
        if width < 1 or height < 1:
            raise CannotFit(f"No version of the image has at most {max_bytes} bytes.")
        image = scale_image(image, (width, height))


def _sides(upright: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """Return the scaled sides in the stored orientation, rounded down."""
    if factor == 1:
        width, height = upright
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in upright)
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
        size = videos.square_size(track, frame)
        factor = limits.scale(*(size if turned < 5 else reversed(size)))
        # Scale the frame before its conversion, so a large video needs only the memory of one frame.
        width, height = (max(2, int(side * factor)) for side in size)
        still: Image.Image = frame.to_image(width=width, height=height)  # type: ignore[no-untyped-call]
    return write_within(set_upright(still, turned), limits.types, target, limits.max_bytes, {})
