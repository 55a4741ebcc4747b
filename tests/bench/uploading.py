"""The upload lines: 150 MB to the disk, beside a bare handler and nginx, and the memory that an upload needs."""

import os
import socket
import time
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench import figures, memory
from tests.bench.figures import Figure
from tests.bench.servers import MeasuredAppliance, Servers, call
from tests.bench.turns import Turns

SIZE = 157_286_400
LEAST = 0.8
ADDED_MB = 10
MIME_TYPE = "video/mp4"


def measure(servers: Servers, appliance: MeasuredAppliance, turns: Turns, size: int = SIZE) -> list[Figure]:
    """Measure PUTs in alternation, and the highest rise of memory during the first one."""
    video = write_video(servers.folder / "video.mp4", size)
    key, nginx, numbers = appliance.key(), servers.start_nginx(), count()

    def to_appliance() -> float:
        speed = put(reserve(appliance, key, size), video)
        for path in appliance.rt.files.root.rglob("*.mp4"):
            path.unlink()  # so that a small disk is enough
        return speed

    def bare() -> float:
        speed = put(f"{servers.bare_url}/put", video)
        for path in servers.folder.glob("put-*"):
            path.unlink()
        return speed

    def to_nginx() -> float:
        name = f"put-{next(numbers)}.mp4"
        speed = put(f"{nginx}/{name}", video)
        (servers.folder / "nginx" / name).unlink()
        return speed

    # The first upload, because a later one would use the memory that an earlier one requested.
    added = turns.once(lambda: memory.peak_added_mb(appliance.pid, to_appliance))
    floors, values, *others = turns.take(bare, to_appliance, *([to_nginx] if nginx else []))
    video.unlink()
    name = f"upload of {size / 1e6:,.0f} MB"
    beside_nginx = f"{name}, beside nginx's PUT"
    return [
        figures.compare(name, values, floors, "MB/s", "bare handler", least=LEAST),
        figures.compare(beside_nginx, values, others[0], "MB/s", "nginx, without fsync")
        if others
        else Figure(beside_nginx, None, "MB/s", note="nginx with its DAV module is not installed"),
        Figure("memory that this upload adds, at most", added, "MB", most=ADDED_MB),
    ]


def write_video(path: Path, size: int) -> Path:
    block = os.urandom(1 << 20)
    with path.open("wb") as file:
        for start in range(0, size, len(block)):
            file.write(block[: size - start])
    return path


def put(url: str, video: Path) -> float:
    """Send the video. Return megabytes per second until the response."""
    parts, size = urlsplit(url), video.stat().st_size
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    head = (
        f"PUT {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: {MIME_TYPE}\r\n"
        f"Content-Length: {size}\r\nConnection: close\r\n\r\n"
    )
    began = time.perf_counter()
    with socket.create_connection((str(parts.hostname), parts.port), timeout=60) as sock, video.open("rb") as file:
        sock.sendall(head.encode())
        sock.sendfile(file)
        answer = sock.recv(4096)
    passed = time.perf_counter() - began
    if not answer.startswith(b"HTTP/1.1 20"):
        raise SystemExit(f"The upload got an unexpected response: {answer[:300]!r}")
    return size / 1e6 / passed


def reserve(appliance: MeasuredAppliance, key: str, size: int) -> str:
    body = {"fileName": "video.mp4", "mimeType": MIME_TYPE, "fileSize": size}
    return str(call("POST", f"{appliance.url}/api/v1/uploads", body, key)["data"]["uploadUrl"])
