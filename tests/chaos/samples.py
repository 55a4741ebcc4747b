"""The media of a run: shared ones, uploaded once, and films that exist only once."""

import hashlib
import struct
from pathlib import Path

from tests.e2e.caller import Caller
from tests.e2e.videos import film
from tests.samples import media

FILM_BYTES = 400_000


class ChaosSamples:
    """`picture`, `photo` and `film` are artifacts; `png` is bytes."""

    def __init__(self, folder: Path, caller: Caller) -> None:
        self.png = media.png(folder / "one.png").read_bytes()
        self._film = film(FILM_BYTES)
        self.film_sha256 = hashlib.sha256(self._film).hexdigest()
        self.picture = caller.upload(self.png, "one.png", "image/png")
        self.photo = caller.upload(media.jpeg(folder / "one.jpg", 480, 640).read_bytes(), "one.jpg", "image/jpeg")
        self.film = caller.upload(self._film, "film.mp4", "video/mp4")

    def film_of(self, marker: str) -> tuple[bytes, str]:
        """The film with some words behind it, which no player looks at; and its hash."""
        content = self._film + struct.pack(">I4s", 8 + len(marker), b"free") + marker.encode()
        return content, hashlib.sha256(content).hexdigest()
