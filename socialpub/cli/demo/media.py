"""The demo's image and video, created while the appliance starts.

A child process encodes the video (`python -m socialpub.cli.demo.video_encoder FILE`): the demo itself needs no decoder.
"""

import io
import math
import subprocess
import sys
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from socialpub.cli.output import CommandError

TIMEOUT_SECONDS = 60


def paint_image(words: str, width: int = 1200, height: int = 675) -> bytes:
    """Return a PNG of an evening over hills, with `words` on it."""
    sky = Image.linear_gradient("L").resize((width, height))
    picture = Image.composite(
        Image.new("RGB", (width, height), (255, 158, 94)), Image.new("RGB", (width, height), (38, 36, 92)), sky
    )
    draw = ImageDraw.Draw(picture)
    sun = height * 0.14
    centre = (width * 0.72, height * 0.55)
    draw.ellipse([centre[0] - sun, centre[1] - sun, centre[0] + sun, centre[1] + sun], fill=(255, 226, 158))
    for depth, (base, swing, colour) in enumerate(
        ((0.66, 0.05, (122, 68, 108)), (0.76, 0.04, (82, 50, 96)), (0.87, 0.03, (45, 33, 71)))
    ):
        ridge = [
            (x, height * (base + swing * math.sin(x / width * (4 + depth) + depth * 2) + 0.012 * math.sin(x / 37)))
            for x in range(0, width + 8, 8)
        ]
        draw.polygon([*ridge, (width, height), (0, height)], fill=colour)
    draw.text((width * 0.06, height * 0.1), "socialpub", font=ImageFont.load_default(92), fill=(255, 244, 224))
    draw.text((width * 0.063, height * 0.27), words, font=ImageFont.load_default(34), fill=(255, 214, 170))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class DemoVideo:
    """A video that a child process encodes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._encoder = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "socialpub.cli.demo.video_encoder", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def wait(self) -> bytes:
        """Return the finished video. Raise CommandError."""
        try:
            _, output = self._encoder.communicate(timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.cancel()
            raise CommandError(f"The video was not made within {TIMEOUT_SECONDS} seconds.", "Try again.") from None
        if self._encoder.returncode != 0:
            last = output.decode(errors="replace").strip().rpartition("\n")[2]
            raise CommandError(f"The video could not be made: {last}", "Install PyAV: pip install av")
        return self.path.read_bytes()

    def cancel(self) -> None:
        """End the child process."""
        self._encoder.kill()
        self._encoder.communicate()
