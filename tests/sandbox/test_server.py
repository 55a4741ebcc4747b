"""Over a real socket: connections break, calls hang until a stop, TikTok pulls, and large bodies flow through."""

import hashlib
import threading
import time
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


def test_photos_are_fetched_over_http_when_the_status_is_asked_for(world: World, server: str, site: str) -> None:
    init, look = f"{server}/tiktok/v2/post/publish/content/init/", f"{server}/tiktok/v2/post/publish/status/fetch/"
    assert call(world, init, share(f"{site}/photo.jpg?signature=1"))["error"]["code"] == "ok"
    (task,) = world.tiktok.tasks.values()
    call(world, look, {"publish_id": task.publish_id})
    assert task.media[0].sha256 == hashlib.sha256(picture()).hexdigest()
    assert len(world.tiktok.catch_up()) == 1
    moved = call(world, init, share(f"{site}/elsewhere"))["data"]["publish_id"]
    data = call(world, look, {"publish_id": moved})["data"]
    assert data["fail_reason"] == "photo_pull_failed", "a redirect is no picture"
