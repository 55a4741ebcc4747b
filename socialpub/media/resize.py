"""An image made to fit a network: upright, of a type it takes, as large and as good as its limits allow.

Runs in a child process, and loads Pillow. What is written anew carries no metadata but the colour profile, so neither
place nor device.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from socialpub.media import encoding, pixels, signatures
from socialpub.media.images import open_image, orientation
from socialpub.media.types import CannotFit, FitLimits, MediaLimits, MediaRejected


def fit(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a version of the picture `source` within the limits to `target`.

    Returns mime_type, width, height, size_bytes and `changed`; when that is False the source fits as it is and
    nothing was written. Raises `CannotFit`, and MemoryError.
    """
    mime_type = _type_of(source)
    try:
        with open_image(source, mime_type, MediaLimits().image_pixels) as picture:
            size = source.stat().st_size
            turned = orientation(picture)
            width, height = picture.size if turned < 5 else picture.size[::-1]
            if (
                not limits.rewrite
                and mime_type in limits.types
                and turned == 1
                and size <= limits.max_bytes
                and limits.scale(width, height) == 1
            ):
                return _result(mime_type, width, height, size, changed=False)
            if mime_type == "image/gif" and "image/gif" in limits.types and getattr(picture, "n_frames", 1) > 1:
                raise CannotFit(_gif_too_large(limits, width, height, size))
            return _write_fitting(picture, mime_type, turned, target, limits)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None


def _result(mime_type: str, width: int, height: int, size: int, *, changed: bool) -> dict[str, Any]:
    return {"mime_type": mime_type, "width": width, "height": height, "size_bytes": size, "changed": changed}


def _type_of(source: Path) -> str:
    with source.open("rb") as file:
        mime_type = signatures.image_type(file.read(12))
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


def _write_fitting(
    picture: Image.Image, mime_type: str, turned: int, target: Path, limits: FitLimits
) -> dict[str, Any]:
    shown = picture.size if turned < 5 else picture.size[::-1]
    factor = limits.scale(*shown)
    if factor < 1:
        # The JPEG decoder can leave out what would be scaled away anyway; it never goes below the size asked for.
        picture.draft(None, (math.ceil(picture.width * factor), math.ceil(picture.height * factor)))
    profile = picture.info.get("icc_profile")
    plain = pixels.normalize(picture, profile)
    upright = pixels.turn(pixels.scale(plain, _sides(shown, factor, turned)), turned)
    del plain
    upright.info = {}  # Pillow would write comments and a profile of another colour space from there.
    extra = pixels.profile_for(upright.mode, profile)
    candidates = encoding.candidates(mime_type, limits.types, transparent=upright.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The picture cannot be written as {' or '.join(limits.types)}.")

    return write_within(upright, candidates, target, limits.max_bytes, extra)


def write_within(
    picture: Image.Image, candidates: Sequence[str], target: Path, max_bytes: int, extra: dict[str, Any]
) -> dict[str, Any]:
    """Write the picture as the first of these types that takes no more than that, smaller where it has to be. Returns
    what `fit` does. Raises `CannotFit`."""
    while True:
        for candidate in candidates:
            best = encoding.best(picture, candidate, max_bytes, extra)
            if best is not None:
                target.write_bytes(best)
                return _result(candidate, picture.width, picture.height, len(best), changed=True)
        picture = _shrink(picture, candidates[-1], max_bytes, extra)


def _shrink(picture: Image.Image, mime_type: str, max_bytes: int, extra: dict[str, Any]) -> Image.Image:
    """One step towards what fits."""
    step = encoding.next_scale(picture, mime_type, max_bytes, extra)
    width, height = int(picture.width * step), int(picture.height * step)
    if width < 1 or height < 1:
        raise CannotFit(f"No version of the picture has at most {max_bytes} bytes.")
    return pixels.scale(picture, (width, height))


def _sides(shown: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """The scaled sides, as stored. Rounded down: a limit is a limit."""
    if factor == 1:
        width, height = shown
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in shown)
    return (width, height) if turned < 5 else (height, width)
