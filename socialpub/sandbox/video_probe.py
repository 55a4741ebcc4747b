"""What a video really is, for networks that look inside before they show it."""

import io
from dataclasses import dataclass

import av
from av.error import FFmpegError


@dataclass(frozen=True, slots=True)
class ProbedVideo:
    seconds: float
    frame_rate: float
    """0 when it cannot be found out."""
    width: int
    height: int


def probe_video(data: bytes) -> ProbedVideo | None:
    """The facts of a video; None when there is no picture track that can be read."""
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
