"""The upload lines: 150 MB to the disk, against a bare handler; and what that does to memory."""

import os
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench import figures, memory
from tests.bench.figures import Figure
from tests.bench.servers import MeasuredAppliance, Servers, call

SIZE = 157_286_400
UPLOAD = 0.8
ADDED_MB = 10
MIME_TYPE = "video/mp4"


def measure(servers: Servers, appliance: MeasuredAppliance, rounds: int) -> list[Figure]:
    """PUTs of 150 MB, in turns, and by how much memory rose at most while one ran."""
    film = servers.folder / "video.mp4"
    block = os.urandom(1 << 20)
    with film.open("wb") as file:
        for _ in range(SIZE // len(block)):
            file.write(block)
    key = appliance.key()

    def through_the_appliance() -> float:
        url = _reserve(appliance, key)
        speed = put(url, film)
        _clear(appliance.rt.files.root)
        return speed

    def bare() -> float:
        speed = put(f"{servers.bare_url}/put", film)
        for path in servers.folder.glob("put-*"):
            path.unlink()
        return speed

    # The very first one: later ones would find room that this one made.
    url = _reserve(appliance, key)
    added = memory.peak_added_mb(appliance.pid, lambda: put(url, film))
    _clear(appliance.rt.files.root)
    yardstick, values = figures.take_turns(rounds, bare, through_the_appliance)
    film.unlink()
    return [
        figures.at_least(
            "upload of 150 MB",
            f"{_mb(values):,.0f} MB/s",
            f"{_mb(yardstick):,.0f} MB/s bare handler",
            figures.ratio(values, yardstick),
            UPLOAD,
        ),
        figures.at_most("memory added by that upload, at most", f"{added:.1f} MB", "", added, ADDED_MB, " MB"),
    ]


def put(url: str, film: Path) -> float:
    """Send the video. Return megabytes per second until the response."""
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    head = (
        f"PUT {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: {MIME_TYPE}\r\n"
        f"Content-Length: {SIZE}\r\nConnection: close\r\n\r\n"
    )
    began = time.perf_counter()
    with socket.create_connection((str(parts.hostname), parts.port), timeout=60) as sock, film.open("rb") as file:
        sock.sendall(head.encode())
        sock.sendfile(file)
        answer = sock.recv(4096)
    passed = time.perf_counter() - began
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"The upload was answered with {answer[:300]!r}")
    return SIZE / 1e6 / passed


def _reserve(appliance: MeasuredAppliance, key: str) -> str:
    body = {"fileName": "video.mp4", "mimeType": MIME_TYPE, "fileSize": SIZE}
    return str(call("POST", f"{appliance.url}/api/v1/uploads", body, key)["data"]["uploadUrl"])


def _clear(media: Path) -> None:
    """Make room, so that a small disk is enough."""
    for path in media.rglob("*.mp4"):
        path.unlink()


def _mb(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
