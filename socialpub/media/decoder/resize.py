"""Fits an image to a network's limits, and makes thumbnails.

Runs in a child process, and loads Pillow; PyAV only for the thumbnail of a video. The result is upright, of an accepted
type, and as large and as good as the limits allow. If removing metadata is enough, the pixels stay as they are.
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
    """Decode the first frame, and return its pixels without their decoder.

    A decoder may hold a multiple of the pixels: that of WebP keeps three copies.
    """
    opened.load()
    return opened._new(opened.im)


def normalize_colors(picture: Image.Image, profile: bytes | None) -> Image.Image:
    """The pixels as L, RGB or RGBA of 8 bits; RGBA only when something is transparent."""
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        # `convert` alone would clip everything above 255 to white.
        return picture.convert("I").point(lambda value: value * (1 / 257) + 0).convert("L")
    if picture.mode == "CMYK":
        return _from_cmyk(picture, profile)
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        clear = picture if picture.mode == "RGBA" else picture.convert("RGBA")
        lowest = clear.getchannel("A").getextrema()[0]
        return clear if isinstance(lowest, (int, float)) and lowest < 255 else clear.convert("RGB")
    if picture.mode in ("L", "RGB"):
        return picture  # A copy of a large one would be a fifth of the child's memory.
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _from_cmyk(picture: Image.Image, profile: bytes | None) -> Image.Image:
    if profile is not None and profile[16:20] == b"CMYK":
        try:
            inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            shown = ImageCms.profileToProfile(picture, inks, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if shown is not None:
                return shown
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # A profile that cannot be read is as good as none.
    return picture.convert("RGB")


def profile_for(mode: str, profile: bytes | None) -> dict[str, Any]:
    """What the encoder needs to keep the colour profile, if it is one for images of this mode."""
    space = b"GRAY" if mode == "L" else b"RGB "
    return {"icc_profile": profile} if profile is not None and profile[16:20] == space else {}


def scale_image(picture: Image.Image, sides: tuple[int, int]) -> Image.Image:
    if picture.size == sides:
        return picture
    return picture.resize(sides, Image.Resampling.LANCZOS, reducing_gap=3.0)


def set_upright(picture: Image.Image, turned: int) -> Image.Image:
    """The image upright; `turned` is its EXIF orientation, 1 to 8."""
    method = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }.get(turned)
    return picture if method is None else picture.transpose(method)


# --- encoding --------------------------------------------------------------------------------------------------------

_BEST, _LEAST = 95, 60
"""JPEG and WebP quality: above, files only grow; below, it shows, and fewer pixels look better."""

_NO_MEMORY = ("encoding error 1", "encoding error 2")
"""How Pillow names libwebp's two errors of that kind, VP8_ENC_ERROR_OUT_OF_MEMORY and ..._BITSTREAM_OUT_OF_MEMORY."""

_MAX_SIDE = {"image/jpeg": 65_500, "image/webp": 16_383, "image/png": 2**31 - 1}
"""What the encoders take (libjpeg a little less than the format)."""

_HOLDS_TRANSPARENCY = ("image/png", "image/webp")


def candidate_types(own: str, types: Sequence[str], *, transparent: bool) -> list[str]:
    """Types to try, in order: its own, then as preferred; those that keep transparency before those that lose it.

    The last one is that which gives way to scaling, so a lossy type is put there when there is one.
    """
    able = [name for name in types if name in _MAX_SIDE]
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


def encode_best(
    picture: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any], *, may_be_small: bool = True
) -> bytes:
    """Return the best encoding within `max_bytes` at this size.

    `may_be_small` False: it hardly fits, so the least quality is tried first. Raises `TooLarge`, `CannotFit`, and
    MemoryError when the encoder needs more than it may have.
    """
    longest = max(picture.size)
    if longest > _MAX_SIDE[mime_type]:
        raise TooLarge(_MAX_SIDE[mime_type] / longest)
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


# --- fitting ---------------------------------------------------------------------------------------------------------

WITH_LESS_MEMORY = 0.7
"""How far a picture is scaled down when an encoder runs out of memory: to half of the pixels."""


def fit(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a version of the picture `source` within the limits to `target`.

    Returns mime_type, width, height, size_bytes, `changed` and `reencoded`. Not changed: the source fits as it is, has
    no metadata, and nothing was written. Changed and not re-encoded: only its metadata were removed. Raises
    `CannotFit`, and MemoryError.
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
                # The JPEG decoder can leave out what would be scaled away anyway; it never goes below the size asked
                # for.
                opened.draft(None, (math.ceil(opened.width * factor), math.ceil(opened.height * factor)))
            picture = detach_image(opened)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None
    del opened
    profile = picture.info.get("icc_profile")
    picture = normalize_colors(picture, profile)
    picture = scale_image(picture, _sides((width, height), factor, turned))
    picture = set_upright(picture, turned)
    picture.info = {}  # Pillow would write comments and a profile of another colour space from there.
    candidates = candidate_types(mime_type, limits.types, transparent=picture.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The picture cannot be written as {' or '.join(limits.types)}.")
    return write_within(picture, candidates, target, limits.max_bytes, profile_for(picture.mode, profile))


def _shows_as_it_is(picture: Image.Image, turned: int, factor: float) -> bool:
    """Whether its pixels can stay: upright, small enough, and in colours that every viewer shows alike."""
    return turned == 1 and factor == 1 and picture.mode != "CMYK"


def _copy_pixels(source: Path, target: Path, mime_type: str, max_bytes: int) -> tuple[int, bool] | None:
    """Write the file without its metadata to `target`, unless it has none.

    Return its size and whether it was written. None: it is too large that way, or its parts do not add up."""
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
        raise CannotFit("The file is not a picture that can be made to fit.")
    return mime_type


def _gif_too_large(limits: FitLimits, width: int, height: int, size: int) -> str:
    most = [f"{limits.max_bytes} bytes"]
    most += [
        f"{side} pixels {name}" for side, name in ((limits.max_width, "wide"), (limits.max_height, "high")) if side
    ]
    return (
        f"An animated GIF is not made smaller: it has {size} bytes and {width} × {height} pixels; "
        f"at most {', '.join(most)} are taken."
    )


def write_within(
    picture: Image.Image, candidates: Sequence[str], target: Path, max_bytes: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Write the picture as the first of these types that takes no more than that, smaller where it has to be. Returns
    what `fit` does, and `gave_way` when an encoder ran out of memory at a larger size. Raises `CannotFit`."""
    whole, ran_out = picture.size, False
    while True:
        for candidate in candidates:
            may_be_small = ran_out or picture.size == whole
            try:
                data = encode_best(picture, candidate, max_bytes, extra, may_be_small=may_be_small)
            except TooLarge as too_large:
                scale = too_large.scale
            except MemoryError:
                scale, ran_out = WITH_LESS_MEMORY, True
            else:
                target.write_bytes(data)
                result = _result(candidate, picture.width, picture.height, len(data))
                return result | ({"gave_way": True} if ran_out else {})
        width, height = int(picture.width * scale), int(picture.height * scale)
        if width < 1 or height < 1:
            raise CannotFit(f"No version of the picture has at most {max_bytes} bytes.")
        picture = scale_image(picture, (width, height))


def _sides(shown: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """The scaled sides, as stored. Rounded down: a limit is a limit."""
    if factor == 1:
        width, height = shown
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in shown)
    return (width, height) if turned < 5 else (height, width)


# --- thumbnails ------------------------------------------------------------------------------------------------------

_TURNS = {90: 8, 180: 3, 270: 6}
"""What degrees against the clock are as an EXIF orientation."""


def write_thumbnail(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a still of `source` within the limits to `target`; returns what `resize.fit` does. Raises `CannotFit`, and
    MemoryError."""
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
            raise CannotFit("The film begins with no picture that can be decoded.")
        turned = _TURNS.get(frame.rotation % 360, 1)
        shown = (frame.width, frame.height) if turned < 5 else (frame.height, frame.width)
        factor = limits.scale(*shown)
        # Scaled before it becomes a picture, so that a large video takes no more memory than its one frame.
        width, height = (max(2, int(side * factor)) for side in (frame.width, frame.height))
        still: Image.Image = frame.to_image(width=width, height=height)  # type: ignore[no-untyped-call]
    return write_within(set_upright(still, turned), limits.types, target, limits.max_bytes, {})
