"""An ext4 file system in an image in memory, mounted through a loop device; and copies of what it holds at a moment."""

import subprocess
import time
from pathlib import Path

SIZE_BYTES = 256 * 1024 * 1024
TRIES = 200


class ImageDisk:
    """Wants root, and a mount namespace of its own: its end leaves no mount."""

    def __init__(self, image: Path, mounted_at: Path) -> None:
        """Mounts what the image holds; a new image gets an empty file system."""
        self.image, self.mounted_at = image, mounted_at
        mounted_at.mkdir(parents=True, exist_ok=True)
        if not image.exists():
            with image.open("wb") as file:
                file.truncate(SIZE_BYTES)
            _run("mkfs.ext4", "-q", "-F", str(image))
        _run("mount", "-o", "loop", str(image), str(mounted_at))
        device = _run("findmnt", "-n", "-o", "SOURCE", "--mountpoint", str(mounted_at)).strip()
        self._stat = Path(f"/sys/block/{Path(device).name}/stat")

    def capture(self, copy: Path) -> bool:
        """Copy the image at one moment. False when the device was writing all the time."""
        for _ in range(TRIES):
            before = self._writes()
            _run("cp", "--sparse=always", str(self.image), str(copy))
            if before == self._writes() and before[1] == 0:
                return True
            time.sleep(0.002)
        return False

    def _writes(self) -> tuple[int, int]:
        """How many were completed, and how many are under way."""
        fields = self._stat.read_text().split()
        return int(fields[4]) + int(fields[15] if len(fields) > 15 else 0), int(fields[8])

    def unmount(self) -> None:
        _run("umount", "--lazy", str(self.mounted_at))


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
