"""A short video for the demo, made while the appliance starts.

Encoding runs in a child process (`python -m socialpub.cli.demo.video_encoder FILE`), so that the demo itself never
holds a decoder.
"""

import subprocess
import sys
from pathlib import Path

from socialpub.cli.errors import CommandError

TIMEOUT_SECONDS = 60


class DemoVideo:
    """One that is being made, by a process of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._encoder = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-m", "socialpub.cli.demo.video_encoder", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def wait(self) -> bytes:
        """The finished video. Raises CommandError."""
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
        """Nobody needs it any more."""
        self._encoder.kill()
        self._encoder.communicate()
