"""Videos of any size that every network accepts."""

import functools
import random
import struct
import tempfile
from pathlib import Path

from tests.samples import media

PATTERN_BYTES = 1_000_003
"""A prime number: no chunk of a network begins at the same place of the pattern as another one."""


def video_bytes(size_bytes: int) -> bytes:
    """Return four seconds of H.264 in this number of bytes. A lost, doubled or moved part changes the hash."""
    real = _four_seconds()
    missing = size_bytes - len(real)
    pattern = random.Random(PATTERN_BYTES).randbytes(PATTERN_BYTES)
    filling = (pattern * (missing // PATTERN_BYTES + 1))[: missing - 8]
    return b"".join((real, struct.pack(">I4s", missing, b"free"), filling))


@functools.cache
def _four_seconds() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return media.video_mp4(Path(folder) / "video.mp4", 4.0, width=640, height=360).read_bytes()
