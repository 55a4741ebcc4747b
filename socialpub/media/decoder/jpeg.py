"""The segments of a JPEG: what precedes the first scan, where each scan stops, and where the image ends.

libjpeg decodes every JPEG, including those that are damaged. This module never decides what an image shows: a rewritten
JPEG counts only if libjpeg decodes the same pixels from it (`images.py`).
"""

import functools
import re
from dataclasses import dataclass, field
from random import Random

from socialpub.media.types import MediaRejected

MAX_SCANS = 100
"""The decoder processes the whole image for each scan of a JPEG, so a small file could take hours. Programs write about
ten scans."""

END = b"\xff\xd9"

_MARKER = re.compile(rb"\xff[^\x00\xff]")
_STOP_WITH_RESTARTS = re.compile(rb"\xff[\xc0-\xcf\xd8-\xfe]")
"""With restart markers, libjpeg skips other damaged bytes and continues at the next restart marker."""

_SCAN, _RESTART_INTERVAL = 0xDA, 0xDD
_RESTARTS, _WITHOUT_LENGTH = range(0xD0, 0xD8), (0x01, 0xD8)
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_TABLES = frozenset({0xC4, 0xCC, _SCAN, 0xDB, 0xDC, _RESTART_INTERVAL})
_METADATA = frozenset((*range(0xE0, 0xF0), 0xFE))
_COLORS = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
"""The beginnings of application segments that colors depend on."""


@dataclass(slots=True)
class Segments:
    """The segments of a JPEG, found as libjpeg finds them."""

    end: int = 0
    """The position after the pixels: the end marker, or bytes that libjpeg cannot continue with."""
    ended: bool = False
    """Whether the end marker is at `end`."""
    head: list[tuple[int, int]] = field(default_factory=list)
    """The segments before the first scan that pixels and colors depend on: start and stop."""
    scans_at: int = 0
    stops: list[int] = field(default_factory=list)
    """The position after the compressed data of each scan."""
    components: int = 0
    scanned: set[int] = field(default_factory=set)
    """The components with data."""
    late_metadata: bool = False
    """Whether metadata follow the first scan."""


def read_segments(data: bytes) -> Segments:
    """Return the segments. Raise `MediaRejected` for more scans than programs write."""
    segments, restarts = Segments(end=len(data)), False
    at = 2
    while match := _MARKER.search(data, at):
        start, marker = match.start(), data[match.end() - 1]
        if marker in _RESTARTS or (marker in _WITHOUT_LENGTH and not segments.stops):
            at = start + 2
            continue
        at = start + 2 + int.from_bytes(data[start + 2 : start + 4])
        if marker == END[1] or (segments.stops and (marker not in _TABLES | _METADATA or at > len(data))):
            segments.end, segments.ended = start, marker == END[1]
            break
        body = data[start + 4 : at]
        if marker == _RESTART_INTERVAL:
            restarts = body != b"\0\0"
        elif marker == _SCAN:
            segments.scans_at = segments.scans_at or start
            segments.scanned.update(body[1 : 1 + 2 * body[0] : 2] if body else ())
            stop = (_STOP_WITH_RESTARTS if restarts else _MARKER).search(data, at)
            at = stop.start() if stop else len(data)
            segments.stops.append(at)
            if len(segments.stops) > MAX_SCANS:
                raise MediaRejected(
                    f"The JPEG image has more than {MAX_SCANS} scans, more than cameras and programs write. "
                    "Save the image again."
                )
        elif marker in _FRAMES and body[5:6]:
            segments.components = body[5]
        if segments.stops:
            segments.late_metadata |= marker in _METADATA
        elif marker not in _METADATA or body.startswith(_COLORS.get(marker, b"?")):
            segments.head.append((start, at))
    return segments


def with_end(data: bytes) -> bytes:
    """Return the image with an end marker and without what follows it. Viewers show an image without one."""
    return data[: read_segments(data).end] + END


def with_padding(data: bytes, segments: Segments) -> bytes:
    """Return the image with these segments and with random data after the data of each scan.

    libjpeg skips data after a complete scan. If the scan is incomplete, libjpeg takes the random data for pixels
    instead of filling the image with gray, so the result differs.
    """
    pieces, at = [], 0
    for stop in segments.stops:
        pieces += [data[at:stop], _padding()]
        at = stop
    return b"".join([*pieces, data[at : segments.end], END])


def strip_metadata(data: bytes) -> bytes | None:
    """Return the image without metadata. Bytes from the first scan to the end marker stay as they are.

    Further images and other data after the end go, because they contain metadata as well. Return None for an image
    without an end marker, or with metadata after the first scan.
    """
    segments = read_segments(data)
    if not segments.ended or not segments.stops or segments.late_metadata:
        return None
    return b"".join(
        [data[:2], *(data[start:stop] for start, stop in segments.head), data[segments.scans_at : segments.end], END]
    )


@functools.cache
def _padding() -> bytes:
    """Return random data with all restart markers, because libjpeg continues only at the next one."""
    random = Random(0)
    pieces = [bytes(random.randrange(255) for _ in range(512)) for _ in range(9)]
    restarts = (bytes((0xFF, marker)) for marker in _RESTARTS)
    return pieces[0] + b"".join(restart + piece for restart, piece in zip(restarts, pieces[1:], strict=True))
