"""Refusals on a real connection: said before the body is sent, or while it is on its way, and always readable."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest
import uvicorn

from socialpub.web.http.app import create_app
from tests.samples import media


@pytest.fixture
def address(rt, caller) -> Iterator[tuple[str, int]]:
    """The same appliance, listening on a port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(rt), log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()
    server.should_exit = True
    thread.join()
    listening.close()


@pytest.fixture
def wire(address):
    with closing(socket.create_connection(address, timeout=60)) as connection:
        yield connection


def head(reservation, length, **more):
    url = urlsplit(reservation["uploadUrl"])
    told = {"host": "x", **reservation["requiredHeaders"], **length}
    told |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"PUT {url.path}?{url.query} HTTP/1.1\r\n{lines}\r\n".encode()


def reply(wire):
    """The status and everything behind it, until the server closes."""
    data = b""
    while piece := wire.recv(65536):
        data += piece
    line, _, rest = data.partition(b"\r\n")
    return int(line.split()[1]), rest


def test_whoever_asks_before_sending_is_refused_before_sending(wire, caller):
    reservation = caller.reserve(100)
    wire.sendall(head(reservation, {"content-length": "101"}, expect="100-continue"))
    status, rest = reply(wire)
    assert status == 413
    assert b'"payloadTooLarge"' in rest
    assert b"connection: close" in rest


def test_whoever_asks_before_sending_is_asked_for_a_welcome_body(wire, caller):
    reservation = caller.reserve(4)
    wire.sendall(head(reservation, {"content-length": "4"}, expect="100-continue", connection="close"))
    assert wire.recv(65536).startswith(b"HTTP/1.1 100 Continue")
    wire.sendall(b"1234")
    assert reply(wire)[0] == 200


def test_whoever_sends_too_much_without_asking_can_still_read_why(wire, caller):
    reservation = caller.reserve(100)
    wire.sendall(head(reservation, {"transfer-encoding": "chunked"}))
    for _ in range(32):
        wire.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    wire.sendall(b"0\r\n\r\n")
    status, rest = reply(wire)
    assert status == 413
    assert b'"payloadTooLarge"' in rest


def test_a_connection_that_breaks_leaves_nothing_and_the_server_goes_on(rt, address, caller):
    reservation = caller.reserve(1000)
    with closing(socket.create_connection(address, timeout=60)) as broken:
        broken.sendall(head(reservation, {"content-length": "1000"}) + b"x" * 500)
    with closing(socket.create_connection(address, timeout=60)) as wire:
        wire.sendall(head(reservation, {"content-length": "1000"}, connection="close") + b"y" * 1000)
        assert reply(wire)[0] == 200
    rows = rt.reader.all("SELECT storage_key FROM artifact")
    assert rt.files.path(rows[0][0]).read_bytes() == b"y" * 1000


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(
    ("make", "name", "found"),
    [
        (lambda path: media.video_mp4(path, 0.25), "clip.mp4", "video/mp4"),
        (media.webp, "picture.webp", "image/webp"),
        (media.jpeg, "photo.jpg", "image/jpeg"),
        (lambda path: media.video_mov(path, 0.25), "clip.MOV", "video/quicktime"),
    ],
)
def test_curl_need_not_be_told_what_a_file_is(address, caller, profile, tmp_path, make, name, found):
    make(tmp_path / name)
    draft = {"post": {"body": "Hi"}, "profiles": [profile], "media": [{"fileField": "v"}]}
    url = f"http://{address[0]}:{address[1]}/api/v1/posts"
    told = ["-H", f"Authorization: Bearer {caller.key}", "-F", f"payload={json.dumps(draft)}", "-F", f"v=@{name}"]
    answer = subprocess.run(["curl", "-sS", *told, url], cwd=tmp_path, check=True, capture_output=True)
    post = json.loads(answer.stdout)
    assert post["data"]["media"][0]["contentType"] == found


def test_a_kept_connection_is_good_for_the_next_request(wire, caller):
    reservation = caller.reserve(4)
    wire.sendall(head(reservation, {"content-length": "4"}) + b"1234")
    assert wire.recv(65536).startswith(b"HTTP/1.1 200 OK")
    wire.sendall(head(reservation, {"content-length": "4"}, connection="close") + b"5678")
    assert reply(wire)[0] == 200
