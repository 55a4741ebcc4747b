"""A change with a malformed body is not made (contract 1.7)."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import create_app
from socialpub.web.http.server import Server
from socialpub.web.routes import API
from tests.integration.uploads.caller import Caller
from tests.integration.web.wire import Line, on_server, serve
from tests.samples import media
from tests.support.appliance import accept, add_profile, status_of


class Asked(NamedTuple):
    """A change that a valid body would make."""

    url: str
    body: bytes
    content_type: str = "application/json"


BROKEN = b"ZZ not a size\r\n"
FORM = "multipart/form-data; boundary=b"


@pytest.fixture
def changes(rt: Runtime, tmp_path: Path) -> dict[str, Asked]:
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    profile = add_profile(rt)
    post = accept(rt, profile, at=rt.now() + timedelta(hours=1))
    draft = json.dumps({"post": {"body": "Hello"}, "profiles": [profile]}).encode()
    with Caller(create_app(rt), rt.write(api_keys.create, "uploads")) as caller:
        arriving, arrived = caller.reserve(png), caller.reserve(png)
        caller.put(arrived, png)
        url = caller.upload(png)["url"]
    upload = urlsplit(arriving["uploadUrl"])
    return {
        "POST /api/v1/posts": Asked("/api/v1/posts", draft),
        "POST /api/v1/posts/validate": Asked("/api/v1/posts/validate", draft),
        "PATCH /api/v1/posts/{postId}": Asked(f"/api/v1/posts/{post}", b'{"post": {"body": "Changed"}}'),
        "POST /api/v1/posts/{postId}/cancel": Asked(f"/api/v1/posts/{post}/cancel", b"{}"),
        "POST /api/v1/posts/{postId}/retry": Asked(f"/api/v1/posts/{post}/retry", b"{}"),
        "POST /api/v1/profiles/{id}/disconnect": Asked(f"/api/v1/profiles/{profile}/disconnect", b"{}"),
        "POST /api/v1/uploads": Asked(
            "/api/v1/uploads", b'{"fileName": "a.png", "mimeType": "image/png", "fileSize": 9}'
        ),
        "POST /api/v1/uploads/complete": Asked(
            "/api/v1/uploads/complete", json.dumps({"artifactId": arrived["artifactId"]}).encode()
        ),
        "POST /api/v1/uploads/import": Asked("/api/v1/uploads/import", json.dumps({"url": url}).encode()),
        "PUT /storage/uploads/{artifactId}": Asked(f"{upload.path}?{upload.query}", png, "image/png"),
        "POST form": Asked(
            "/api/v1/posts",
            b'--b\r\nContent-Disposition: form-data; name="payload"\r\n\r\n' + draft + b"\r\n--b--\r\n",
            FORM,
        ),
    }


def all_changes() -> list[str]:
    found = [f"{method} /api/v1{one.path_format}" for one in API for method in sorted(one.methods or ())]
    return [*(one for one in found if one[:3] not in ("GET", "HEA")), "PUT /storage/uploads/{artifactId}", "POST form"]


def content_of(rt: Runtime) -> tuple[list[str], list[str]]:
    """Return all rows and all files."""
    files = sorted(str(path) for path in rt.settings.media_dir.rglob("*") if path.is_file())
    return list(rt.db.connection().iterdump()), files


async def only_status(line: Line) -> int:
    """Return the status of the only response. 0 if there is none."""
    data = await line.reader.read()
    assert data.count(b"HTTP/1.1") <= 1
    return int(data.split()[1]) if data else 0


@pytest.mark.parametrize("is_split", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("change", all_changes())
def test_a_change_with_a_malformed_body_is_not_made(rt, changes, change, is_split):
    asked = changes[change]
    method = change.partition(" ")[0]

    async def story(serving: Server, key: str, port: int) -> None:
        before = content_of(rt)
        async with Line(key, port) as line:
            authorization = "" if method == "PUT" else f"authorization: Bearer {key}\r\n"
            line.writer.write(
                f"{method} {asked.url} HTTP/1.1\r\nhost: x\r\n{authorization}"
                f"content-type: {asked.content_type}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
            )
            line.writer.write(b"%x\r\n%b\r\n" % (len(asked.body), asked.body))
            if is_split:
                while not any(one.cycle and not one.cycle.body for one in serving._connections()):
                    await asyncio.sleep(0)
            line.writer.write(BROKEN)
            assert await only_status(line) in (0, 400)
        while serving.server_state.tasks:
            await asyncio.sleep(0)
        assert content_of(rt) == before

    serve(rt, story)


@pytest.fixture
def post(rt: Runtime) -> str:
    return accept(rt, add_profile(rt), at=rt.now() + timedelta(hours=1))


@pytest.mark.parametrize(
    "body", [b"content-length: 2\r\n\r\n{}", b"\r\n", b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"]
)
@on_server()
async def test_a_change_before_invalid_bytes_is_made_and_confirmed(key, port, rt, post, body):
    async with Line(key, port) as line:
        head = f"POST /api/v1/posts/{post}/cancel HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n"
        line.writer.write(head.encode() + body + b"nonsense\r\n\r\n")
        assert await only_status(line) == 200
    assert status_of(rt, post) == "canceled"


@on_server()
async def test_invalid_bytes_in_a_refused_body_get_no_second_response(port, post):
    async with Line("wrong", port) as line:
        head = f"POST /api/v1/posts/{post}/cancel HTTP/1.1\r\nhost: x\r\nauthorization: Bearer wrong\r\n"
        line.writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n")
        assert (await line.answer())[0] == 401
        line.writer.write(BROKEN)
        assert await line.ended()


@on_server()
async def test_a_change_with_an_incomplete_body_is_not_made(serving, key, port, rt, post):
    async with Line(key, port) as line:
        line.ask(f"/api/v1/posts/{post}/cancel", 10, "POST")
        while not serving.server_state.tasks:
            await asyncio.sleep(0)
    while serving._connections() or serving.server_state.tasks:
        await asyncio.sleep(0)
    assert status_of(rt, post) == "scheduled"


INNER = b"GET /api/v1/profiles HTTP/1.1\r\nhost: x\r\n\r\n"
AMBIGUOUS = {
    "two lengths": b"content-length: 5\r\ncontent-length: 6\r\n",
    "a list of lengths": b"content-length: 5, 5\r\n",
    "a length and chunks": b"content-length: 4\r\ntransfer-encoding: chunked\r\n",
    "chunks and a length": b"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    "a length with a sign": b"content-length: +5\r\n",
    "a length in hexadecimal": b"content-length: 0x5\r\n",
    "a negative length": b"content-length: -1\r\n",
    "a length with a blank": b"content-length: 1 1\r\n",
    "a blank before the colon": b"transfer-encoding : chunked\r\n",
    "another last coding": b"transfer-encoding: chunked, identity\r\n",
    "an unknown coding": b"transfer-encoding: xchunked\r\n",
    "chunks twice": b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
    "a folded line": b"transfer-encoding:\r\n chunked\r\n",
    "a control character": b"transfer-encoding: \x0bchunked\r\n",
    "a nul": b"x-a: b\0c\r\n",
    "a lone carriage return": b"x-a: b\rtransfer-encoding: chunked\r\n",
    "no name": b": b\r\n",
    "a body and another protocol": b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 5\r\n",
}
BODY = b"0\r\n\r\n"


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_requests_are_refused(rt, head):
    said: list[bytes] = []

    async def story(server: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            start = f"POST /api/v1/posts/validate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n".encode()
            line.writer.write(start + b"content-type: application/json\r\n" + head + b"\r\n" + BODY + INNER)
            async with asyncio.timeout(20):
                said.append(await line.reader.read())  # until the connection ends

    serve(rt, story)
    (answers,) = said
    assert answers.startswith(b"HTTP/1.1 4"), answers
    assert answers.count(b"HTTP/1.1 ") == 1, answers
    assert b"401" not in answers, "the second was taken for a request"
