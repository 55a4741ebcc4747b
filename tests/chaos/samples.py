"""The media of a run: shared media, uploaded once, and unique videos."""

import hashlib
import struct
from pathlib import Path

from tests.e2e.caller import Caller
from tests.e2e.videos import video_bytes
from tests.samples import media

VIDEO_BYTES = 400_000


class ChaosSamples:
    """`picture`, `photo` and `video` are artifacts; `png` is bytes."""

    def __init__(self, folder: Path, caller: Caller) -> None:
        self.png = media.png(folder / "one.png").read_bytes()
        self._video = video_bytes(VIDEO_BYTES)
        self.video_sha256 = hashlib.sha256(self._video).hexdigest()
        self.picture = caller.upload(self.png, "one.png", "image/png")
        self.photo = caller.upload(media.jpeg(folder / "one.jpg", 480, 640).read_bytes(), "one.jpg", "image/jpeg")
        self.video = caller.upload(self._video, "video.mp4", "video/mp4")

    def unique_video(self, marker: str) -> tuple[bytes, str]:
        """Return a unique video with a marker that players ignore, and its hash."""
        content = self._video + struct.pack(">I4s", 8 + len(marker), b"free") + marker.encode()
        return content, hashlib.sha256(content).hexdigest()
