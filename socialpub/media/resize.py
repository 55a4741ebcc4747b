"""A picture made to fit a network: upright, of a type it takes, as large and as good as its limits allow.

Runs in a child process; Pillow is imported here and nowhere above. What is written anew carries no metadata but the
colour profile: neither place nor device travel on.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from socialpub.media.images import FORMATS, opened, orientation
from socialpub.media.inspect import Limits, Refused

if TYPE_CHECKING:
    from PIL.Image import Image

_BEST, _LEAST = 95, 60
"""JPEG and WebP quality: above, files only grow; below, it shows, and fewer pixels look better."""

_LONGEST_SIDE = {"image/jpeg": 65_500, "image/webp": 16_383, "image/png": 2**31 - 1}
"""What the encoders take (libjpeg a little less than the format)."""

_HOLDS_TRANSPARENCY = ("image/png", "image/webp")


class CannotFit(Exception):
    """No version of the picture satisfies the limits. `reason` is a sentence that names limit and found value."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Frame:
    """What the fitted picture must satisfy; `types` in order of preference, pixels upright, None: no limit."""

    types: tuple[str, ...]
    max_bytes: int
    max_width: int | None = None
    max_height: int | None = None
    max_short_side: int | None = None

    def scale(self, width: int, height: int) -> float:
        """The factor, at most 1, that brings these sides within the limits."""
        bounds = ((self.max_width, width), (self.max_height, height), (self.max_short_side, min(width, height)))
        return min([1.0, *(most / side for most, side in bounds if most is not None)])


def fit(
    source: Path,
    target: Path,
    types: Sequence[str],
    max_bytes: int,
    max_width: int | None = None,
    max_height: int | None = None,
    max_short_side: int | None = None,
) -> dict[str, Any]:
    """Write a version of the picture `source` within the limits to `target`.

    Returns mime_type, width, height, size_bytes and `changed`; when that is False the source fits as it is and
    nothing was written. Raises `CannotFit`.
    """
    frame = Frame(tuple(types), max_bytes, max_width, max_height, max_short_side)
    mime_type = _type_of(source)
    try:
        with opened(source, mime_type, Limits().image_pixels) as picture:
            size = source.stat().st_size
            turned = orientation(picture)
            width, height = picture.size if turned < 5 else picture.size[::-1]
            if mime_type in frame.types and turned == 1 and size <= max_bytes and frame.scale(width, height) == 1:
                return _answer(mime_type, width, height, size, changed=False)
            if mime_type == "image/gif" and "image/gif" in frame.types and getattr(picture, "n_frames", 1) > 1:
                raise CannotFit(_gif_too_large(frame, width, height, size))
            return _made(picture, mime_type, turned, target, frame)
    except Refused as refused:
        raise CannotFit(refused.reason) from None
    except MemoryError:
        raise CannotFit("Making the picture fit needs more memory than one picture may take.") from None


def _answer(mime_type: str, width: int, height: int, size: int, *, changed: bool) -> dict[str, Any]:
    return {"mime_type": mime_type, "width": width, "height": height, "size_bytes": size, "changed": changed}


def _type_of(source: Path) -> str:
    with source.open("rb") as file:
        head = file.read(12)
    for start, mime_type in ((b"\xff\xd8", "image/jpeg"), (b"\x89PNG", "image/png"), (b"GIF8", "image/gif")):
        if head.startswith(start):
            return mime_type
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "image/webp"
    raise CannotFit("The file is not a picture that can be made to fit.")


def _gif_too_large(frame: Frame, width: int, height: int, size: int) -> str:
    limits = [f"{frame.max_bytes} bytes"]
    limits += [
        f"{side} pixels {name}" for side, name in ((frame.max_width, "wide"), (frame.max_height, "high")) if side
    ]
    return (
        f"An animated GIF is not made smaller: it has {size} bytes and {width} × {height} pixels; "
        f"at most {', '.join(limits)} are taken."
    )


def _made(picture: "Image", mime_type: str, turned: int, target: Path, frame: Frame) -> dict[str, Any]:
    shown = picture.size if turned < 5 else picture.size[::-1]
    factor = frame.scale(*shown)
    if factor < 1:
        # The JPEG decoder can leave out what would be scaled away anyway; it never goes below the size asked for.
        picture.draft(None, (math.ceil(picture.width * factor), math.ceil(picture.height * factor)))
    profile = picture.info.get("icc_profile")
    plain = _plain(picture, profile)
    upright = _turned(_scaled(plain, _sides(shown, factor, turned)), turned)
    del plain
    upright.info = {}  # Pillow would write comments and a profile of another colour space from there.
    extra = _profile_for(upright.mode, profile)
    candidates = _candidates(mime_type, frame.types, transparent=upright.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The picture cannot be written as {' or '.join(frame.types)}.")

    while True:
        for candidate in candidates:
            best = _best(upright, candidate, frame.max_bytes, extra)
            if best is not None:
                target.write_bytes(best)
                return _answer(candidate, upright.width, upright.height, len(best), changed=True)
        upright = _smaller(upright, candidates[-1], frame.max_bytes, extra)


def _smaller(picture: "Image", mime_type: str, max_bytes: int, extra: dict[str, Any]) -> "Image":
    """One step towards what fits; few are needed, as bytes go with the area."""
    longest = max(picture.size)
    if longest > _LONGEST_SIDE[mime_type]:
        step = _LONGEST_SIDE[mime_type] / longest
    else:
        plain = picture.convert("RGB") if picture.mode == "RGBA" and mime_type == "image/jpeg" else picture
        step = min(0.9, math.sqrt(max_bytes / len(_encoded(plain, mime_type, _LEAST, extra))) * 0.98)
    width, height = int(picture.width * step), int(picture.height * step)
    if width < 1 or height < 1:
        raise CannotFit(f"No version of the picture has at most {max_bytes} bytes.")
    return _scaled(picture, (width, height))


def _sides(shown: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """The scaled sides, as stored. Rounded down: a limit is a limit."""
    if factor == 1:
        width, height = shown
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in shown)
    return (width, height) if turned < 5 else (height, width)


# --- pixels ----------------------------------------------------------------------------------------------------------


def _plain(picture: "Image", profile: bytes | None) -> "Image":
    """The first frame as L, RGB or RGBA of 8 bits; RGBA only when something is transparent."""
    picture.load()
    if picture.mode in ("I", "F") or picture.mode.startswith("I;16"):
        # `convert` alone would clip everything above 255 to white.
        return picture.convert("I").point(lambda value: value * (1 / 257) + 0).convert("L")
    if picture.mode == "CMYK":
        return _from_cmyk(picture, profile)
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        lowest = clear.getchannel("A").getextrema()[0]
        return clear if isinstance(lowest, (int, float)) and lowest < 255 else clear.convert("RGB")
    if picture.mode in ("L", "RGB"):
        return picture  # A copy of a large one would be a fifth of the child's memory.
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _from_cmyk(picture: "Image", profile: bytes | None) -> "Image":
    from PIL import ImageCms

    if profile is not None and profile[16:20] == b"CMYK":
        try:
            inks = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            shown = ImageCms.profileToProfile(picture, inks, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if shown is not None:
                return shown
        except (ImageCms.PyCMSError, OSError, ValueError):
            pass  # A profile that cannot be read is as good as none.
    return picture.convert("RGB")


def _profile_for(mode: str, profile: bytes | None) -> dict[str, Any]:
    space = b"GRAY" if mode == "L" else b"RGB "
    return {"icc_profile": profile} if profile is not None and profile[16:20] == space else {}


def _scaled(picture: "Image", sides: tuple[int, int]) -> "Image":
    from PIL import Image

    if picture.size == sides:
        return picture
    return picture.resize(sides, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _turned(picture: "Image", turned: int) -> "Image":
    from PIL import Image

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


# --- bytes -----------------------------------------------------------------------------------------------------------


def _candidates(own: str, types: tuple[str, ...], *, transparent: bool) -> list[str]:
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


def _best(picture: "Image", mime_type: str, max_bytes: int, extra: dict[str, Any]) -> bytes | None:
    """The best encoding within `max_bytes` at this size, or None."""
    if max(picture.size) > _LONGEST_SIDE[mime_type]:
        return None
    if mime_type not in _HOLDS_TRANSPARENCY and picture.mode == "RGBA":
        picture = _on_white(picture)
    data = _encoded(picture, mime_type, _BEST, extra)
    if len(data) <= max_bytes:
        return data
    if mime_type == "image/png":
        return None
    data = _encoded(picture, mime_type, _LEAST, extra)
    if len(data) > max_bytes:
        return None
    low, high = _LEAST, _BEST
    while high - low > 1:
        middle = (low + high) // 2
        attempt = _encoded(picture, mime_type, middle, extra)
        if len(attempt) <= max_bytes:
            low, data = middle, attempt
        else:
            high = middle
    return data


def _encoded(picture: "Image", mime_type: str, quality: int, extra: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    if mime_type == "image/png":
        picture.save(buffer, "PNG", **extra)
    else:
        picture.save(buffer, FORMATS[mime_type], quality=quality, **extra)
    return buffer.getvalue()


def _on_white(picture: "Image") -> "Image":
    from PIL import Image

    paper = Image.new("RGB", picture.size, (255, 255, 255))
    paper.paste(picture, mask=picture.getchannel("A"))
    return paper
