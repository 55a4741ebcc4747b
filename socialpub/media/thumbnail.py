"""A thumbnail: a small still of a picture, or of how a film begins.

Runs in a child process, and loads Pillow, and PyAV for a film.
"""

from pathlib import Path
from typing import Any

from PIL import Image

from socialpub.media import pixels, resize, signatures
from socialpub.media.types import CannotFit, FitLimits, MediaRejected

_TURNS = {90: 8, 180: 3, 270: 6}
"""What degrees against the clock are as an EXIF orientation."""


def write(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    """Write a still of `source` within the limits to `target`; returns what `resize.fit` does. Raises `CannotFit`, and
    MemoryError."""
    if signatures.kind_of_file(source) != "video":
        return resize.fit(source, target, limits)
    try:
        return _write_first_frame(source, target, limits)
    except MediaRejected as rejected:
        raise CannotFit(rejected.reason) from None


def _write_first_frame(source: Path, target: Path, limits: FitLimits) -> dict[str, Any]:
    from socialpub.media import videos

    with source.open("rb") as file:
        demuxer = "matroska" if file.read(4) == signatures.EBML else "mov"
    with videos.open_video(source, demuxer, "video") as container:
        track = videos.track_of(container, "video")
        frame = videos.first_frame(container, track)
        if frame is None:
            raise CannotFit("The film begins with no picture that can be decoded.")
        turned = _TURNS.get(frame.rotation % 360, 1)
        shown = (frame.width, frame.height) if turned < 5 else (frame.height, frame.width)
        factor = limits.scale(*shown)
        # Scaled before it becomes a picture, so that a large film takes no more memory than its one frame.
        width, height = (max(2, int(side * factor)) for side in (frame.width, frame.height))
        still: Image.Image = frame.to_image(width=width, height=height)  # type: ignore[no-untyped-call]
    return resize.write_within(pixels.turn(still, turned), limits.types, target, limits.max_bytes, {})
