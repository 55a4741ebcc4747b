"""The pixels of an image: in plain colours, scaled, set upright.

Runs in a child process, and loads Pillow.
"""

import io
from typing import Any

from PIL import Image, ImageCms


def detach(opened: Image.Image) -> Image.Image:
    """Decode the first frame, and return its pixels without their decoder.

    A decoder may hold a multiple of the pixels: that of WebP keeps three copies.
    """
    opened.load()
    return opened._new(opened.im)


def normalize(picture: Image.Image, profile: bytes | None) -> Image.Image:
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


def scale(picture: Image.Image, sides: tuple[int, int]) -> Image.Image:
    """The image with these sides."""
    if picture.size == sides:
        return picture
    return picture.resize(sides, Image.Resampling.LANCZOS, reducing_gap=3.0)


def turn(picture: Image.Image, turned: int) -> Image.Image:
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
