"""An image made to fit a network: upright, of a type it takes, as large and as good as its limits allow.

Runs in a child process, and loads Pillow. What fits carries no metadata but the colour profile, so neither place nor
device. If removing metadata is all that is needed, the pixels stay as they are.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from socialpub.media import encoding, metadata, pixels, signatures
from socialpub.media.images import open_image, orientation
from socialpub.media.types import CannotFit, FitLimits, MediaLimits, MediaRejected

WITH_LESS_MEMORY = 0.7
"""How far a picture is scaled down when an encoder runs out of memory: to half of the pixels."""


def fit(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a version of the picture `source` within the limits to `target`.

    Returns mime_type, width, height, size_bytes, `changed` and `reencoded`. Not changed: the source fits as it is, has
    no metadata, and nothing was written. Changed and not re-encoded: only its metadata were removed. Raises
    `CannotFit`, and MemoryError.
    """
    mime_type = _type_of(source)
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
            picture = pixels.detach(opened)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None
    del opened
    profile = picture.info.get("icc_profile")
    picture = pixels.normalize(picture, profile)
    picture = pixels.scale(picture, _sides((width, height), factor, turned))
    picture = pixels.turn(picture, turned)
    picture.info = {}  # Pillow would write comments and a profile of another colour space from there.
    candidates = encoding.candidates(mime_type, limits.types, transparent=picture.mode == "RGBA")
    if not candidates:
        raise CannotFit(f"The picture cannot be written as {' or '.join(limits.types)}.")
    return write_within(picture, candidates, target, limits.max_bytes, pixels.profile_for(picture.mode, profile))


def _shows_as_it_is(picture: Image.Image, turned: int, factor: float) -> bool:
    """Whether its pixels can stay: upright, small enough, and in colours that every viewer shows alike."""
    return turned == 1 and factor == 1 and picture.mode != "CMYK"


def _copy_pixels(source: Path, target: Path, mime_type: str, max_bytes: int) -> tuple[int, bool] | None:
    """Write the file without its metadata to `target`, unless it has none.

    Return its size and whether it was written. None: it is too large that way, or its parts do not add up."""
    data = source.read_bytes()
    plain = metadata.strip(data, mime_type)
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
                data = encoding.best(picture, candidate, max_bytes, extra, may_be_small=may_be_small)
            except encoding.TooLarge as too_large:
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
        picture = pixels.scale(picture, (width, height))


def _sides(shown: tuple[int, int], factor: float, turned: int) -> tuple[int, int]:
    """The scaled sides, as stored. Rounded down: a limit is a limit."""
    if factor == 1:
        width, height = shown
    else:
        # The epsilon keeps 1000 × (900 / 1000) at 900.
        width, height = (max(1, math.floor(side * factor + 1e-6)) for side in shown)
    return (width, height) if turned < 5 else (height, width)
