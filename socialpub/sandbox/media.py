"""Media bytes: their type and size, what a video contains, how a network fetches them, and what happens to them.

This is enough for a stand-in. It is no decoder.
"""

import io
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import av
import httpx2
from av.error import FFmpegError
from PIL import Image

from socialpub.sandbox.messages import StreamedBody

Fetch = Callable[[str], bytes]
"""Returns the bytes behind a URL, or raises."""

TIMEOUT_SECONDS = 20
NOT_AN_IMAGE = (
    OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning,
)  # fmt: skip


def sniff(data: bytes) -> str:
    """Return the media type, or an empty text for bytes of no known type."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp":
        return "video/quicktime" if data[8:10] == b"qt" else "video/mp4"
    if data.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm"
    return ""


def dimensions(data: bytes, *, whole: bool = False) -> tuple[int, int]:
    """Return the width and height of an image, or zeros if it cannot be read. `whole` decodes the whole image."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            if whole:
                image.load()
            return image.size
    except NOT_AN_IMAGE:
        return 0, 0


@dataclass(frozen=True, slots=True)
class ProbedVideo:
    seconds: float
    frame_rate: float
    """0 if unknown."""
    width: int
    height: int


def probe_video(data: bytes) -> ProbedVideo | None:
    """Return the facts of a video, or None when it has no readable video track."""
    try:
        with av.open(io.BytesIO(data), mode="r") as container:
            if not container.streams.video:
                return None
            stream = container.streams.video[0]
            if stream.duration is not None and stream.time_base is not None:
                seconds = float(stream.duration * stream.time_base)
            else:
                seconds = (container.duration or 0) / 1_000_000
            return ProbedVideo(seconds, float(stream.average_rate or 0), stream.width, stream.height)
    except (FFmpegError, OSError, ValueError):
        return None


def fetch(url: str, by: Fetch | None) -> StreamedBody | None:
    """Return what is at the URL, by that callable or over HTTP; None unless it responds 200. Redirects count as a
    failure, as on the real networks. Blocks."""
    body = StreamedBody()
    try:
        if by is not None:
            body.write(by(url))
            return body
        with httpx2.stream("GET", url, headers={"accept-encoding": "identity"}, timeout=TIMEOUT_SECONDS) as response:
            for piece in response.iter_raw():
                body.write(piece)
            return body if response.status_code == 200 else None
    except Exception:  # a test's own callable may raise anything
        return None


class FateQueue(deque[str]):
    """The fates of the next uploads. Afterwards, the network's own setting counts again."""

    def __init__(self, known: tuple[str, ...]) -> None:
        super().__init__()
        self._known = known

    def schedule(self, fate: str, times: int = 1) -> None:
        """Add a fate. Raise ValueError for an unknown name."""
        self.check(fate)
        self.extend([fate] * times)

    def take(self, usual: str) -> str:
        fate = self.popleft() if self else usual
        self.check(fate)
        return fate

    def check(self, fate: str) -> None:
        if fate not in self._known:
            raise ValueError(f"no such fate: {fate!r} (known: {', '.join(self._known)})")
