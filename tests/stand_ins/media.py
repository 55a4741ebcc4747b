"""What a video contains, and what happens to uploads."""

import io
from collections import deque
from dataclasses import dataclass

import av
from av.error import FFmpegError


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
