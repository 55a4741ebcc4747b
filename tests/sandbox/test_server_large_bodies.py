"""Over a real socket: TikTok pulls by itself, and large bodies flow through without being held."""

import hashlib
import threading
import tracemalloc
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import pytest

from socialpub.sandbox import World
from tests.sandbox.files import picture

MEGA = 1_000_000


@pytest.fixture
def world() -> World:
    made = World()
    made.tiktok.public_urls_only = False
    made.tiktok.all_urls_verified = True
    return made


@pytest.fixture
def site() -> Iterator[str]:
    """A little web site: a photo, and a redirect to it."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = picture() if self.path.startswith("/photo.jpg") else b""
            self.send_response(200 if body else 302)
            self.send_header("content-length", str(len(body)))
            self.send_header("location", "/photo.jpg")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join(60)


def call(world: World, url: str, body: Any) -> Any:
    header = {"authorization": f"Bearer {world.tiktok.grant('demo')['accessToken']}"}
    return httpx2.post(url, json=body, headers=header, trust_env=False, timeout=60).json()


def share(url: str) -> dict[str, Any]:
    return {
        "media_type": "PHOTO",
        "post_mode": "DIRECT_POST",
        "post_info": {"privacy_level": "SELF_ONLY"},
        "source_info": {"source": "PULL_FROM_URL", "photo_images": [url], "photo_cover_index": 0},
    }


def test_photos_are_really_fetched_without_anybody_asking_how_it_goes(world: World, server: str, site: str) -> None:
    init, look = f"{server}/tiktok/v2/post/publish/content/init/", f"{server}/tiktok/v2/post/publish/status/fetch/"
    assert call(world, init, share(f"{site}/photo.jpg?signature=1"))["error"]["code"] == "ok"
    (task,) = world.tiktok.tasks.all.values()
    patience = threading.Event()
    for _ in range(6000):
        if task.whole_at is not None:
            break
        patience.wait(0.01)
    assert task.media[0].sha256 == hashlib.sha256(picture()).hexdigest()
    assert len(world.tiktok.catch_up()) == 1
    moved = call(world, init, share(f"{site}/elsewhere"))["data"]["publish_id"]
    for _ in range(6000):
        data = call(world, look, {"publish_id": moved})["data"]
        if data.get("status") == "FAILED":
            break
        patience.wait(0.01)
    assert data["fail_reason"] == "photo_pull_failed", "a redirect is no picture"


def test_a_large_film_flows_through_without_being_held(world: World, server: str) -> None:
    world.tiktok.probes_video = False
    begun = b"\x00\x00\x00\x18ftypisom"
    size, chunk = 70 * MEGA, 35 * MEGA
    body = {
        "post_info": {"privacy_level": "SELF_ONLY"},
        "source_info": {"source": "FILE_UPLOAD", "video_size": size, "chunk_size": chunk, "total_chunk_count": 2},
    }
    url = call(world, f"{server}/tiktok/v2/post/publish/video/init/", body)["data"]["upload_url"]
    expected = hashlib.sha256()
    tracemalloc.start()
    try:
        for first in (0, chunk):

            def pieces(first: int = first) -> Iterator[bytes]:
                for number in range(35):
                    piece = begun + bytes(MEGA - len(begun)) if first + number == 0 else bytes(MEGA)
                    expected.update(piece)
                    yield piece

            headers = {
                "content-type": "video/mp4",
                "content-length": str(chunk),
                "content-range": f"bytes {first}-{first + chunk - 1}/{size}",
            }
            answer = httpx2.put(url, content=pieces(), headers=headers, trust_env=False, timeout=60)
            assert answer.status_code == (201 if first else 206)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    (task,) = world.tiktok.tasks.all.values()
    assert task.media[0].sha256 == expected.hexdigest()
    assert world.tiktok.cache.used == 0
    assert peak < 20 * MEGA
