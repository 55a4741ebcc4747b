"""Over a real socket: connections break, calls hang until a stop, TikTok pulls, and large bodies flow through."""

import hashlib
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx2
import pytest

from socialpub.sandbox.app import SandboxServer
from tests.sandbox.files import picture
from tests.stand_ins import World

# --- faults -----------------------------------------------------------------------------------------------------------


PATIENT = httpx2.Timeout(60)
"""Nothing takes that long unless it is broken."""


@pytest.fixture
def world() -> World:
    made = World()
    made.tiktok.public_urls_only = False
    made.tiktok.all_urls_verified = True
    return made


def post(world: World, server: str, text: str, timeout: httpx2.Timeout = PATIENT) -> httpx2.Response:
    token = world.x.grant("demo")["accessToken"]
    with httpx2.Client(timeout=timeout, trust_env=False) as client:
        header = {"authorization": f"Bearer {token}"}
        return client.post(f"{server}/x/2/tweets", json={"text": text}, headers=header)


def test_a_cut_connection_is_really_cut(world: World, server: str) -> None:
    assert post(world, server, "fine").status_code == 201
    world.x.next("create_post").drops_connection_after_effect()
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        post(world, server, "cut")
    assert [made.text for made in world.x.posts] == ["fine", "cut"]


def test_a_hanging_call_ends_by_the_callers_own_deadline(world: World, server: str) -> None:
    world.x.next("create_post").times_out_before_effect()
    with pytest.raises(httpx2.ReadTimeout):
        post(world, server, "lost", httpx2.Timeout(60, read=0.3))
    assert world.x.posts == []
    assert post(world, server, "fine").status_code == 201


def test_a_trickling_answer_begins_and_is_never_whole(world: World, server: str) -> None:
    world.x.next("create_post").trickles()
    token = world.x.grant("demo")["accessToken"]
    with (
        httpx2.Client(timeout=PATIENT, trust_env=False) as client,
        client.stream(
            "POST", f"{server}/x/2/tweets", json={"text": "a"}, headers={"authorization": f"Bearer {token}"}
        ) as answer,
    ):
        assert answer.status_code == 200
        assert next(answer.iter_raw()) == b" "
    assert len(world.x.posts) == 1


def test_a_stop_ends_a_call_that_hangs(world: World, running: tuple[SandboxServer, str]) -> None:
    server, url = running
    world.x.next("create_post").times_out_after_effect()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(post, world, url, "a")
        deadline = time.monotonic() + 60
        while not world.x.posts and time.monotonic() < deadline:
            threading.Event().wait(0.005)
        assert world.x.posts
        server.should_exit = True
        assert isinstance(call.exception(60), httpx2.TransportError)


# --- bodies -----------------------------------------------------------------------------------------------------------


MEGA = 1_000_000


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


def test_a_large_video_is_never_held_in_memory(world: World, server: str) -> None:
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
