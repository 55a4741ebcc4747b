"""Limits of bodies: size without a key, time, and memory of all bodies together (contract 1.20)."""

import json
from urllib.parse import urlsplit

import pytest

from socialpub.accounts import api_keys
from socialpub.web.http import limits
from socialpub.web.http.app import create_app
from socialpub.web.http.connections import GuardedProtocol
from socialpub.web.http.server import Server
from tests.integration.uploads.caller import Caller
from tests.integration.web.wire import Line, on_server, serve, sweep, until

KIB = 1024
ANONYMOUS = 8 * KIB
FORM = b'--b\r\nContent-Disposition: form-data; name="payload"\r\n\r\n'
UNKNOWN = "/api/v1/nowhere"


def held(serving: Server) -> int:
    return serving.app.state.body_memory.used_bytes


def connection(serving: Server) -> GuardedProtocol:
    (found,) = serving._connections()
    return found


async def refusal(line: Line) -> int:
    """Return the status of the response, which must close the connection."""
    status, headers, body = await line.answer()
    assert headers["connection"] == "close"
    assert headers["content-type"].startswith("text/html") or json.loads(body)["status"] == status
    return status


def begin_form(line: Line) -> None:
    line.writer.write(
        f"POST /api/v1/posts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {line.key}\r\ntransfer-encoding: chunked\r\n"
        "content-type: multipart/form-data; boundary=b\r\n\r\n".encode()
    )


def send(line: Line, piece: bytes) -> None:
    line.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))


# --- without a key ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/healthz", 200), ("POST", "/login", 403), ("PUT", UNKNOWN, 404)]
)
def test_a_body_without_a_key_has_at_most_8_kib(rt, method, path, status):
    form = "content-type: application/x-www-form-urlencoded\r\n" if method == "POST" else ""

    async def story(_: Server, key: str, port: int) -> None:
        async with Line("", port) as line:
            line.writer.write(
                f"{method} {path} HTTP/1.1\r\nhost: x\r\n{form}content-length: {ANONYMOUS}\r\n\r\n".encode()
            )
            line.writer.write(b"a" * ANONYMOUS)
            assert (await line.answer())[0] == status
        async with Line("", port) as line:  # the head decides: no byte of the body is sent
            line.ask(path, ANONYMOUS + 1, method)
            line.writer.write_eof()
            assert await refusal(line) == 413

    serve(rt, story)


@pytest.mark.parametrize("path", ["/healthz", "/login"])
@on_server()
async def test_chunks_without_a_key_are_limited_as_they_arrive(serving, port, path):
    async with Line("", port) as line:
        line.ask(path, None, "GET" if path == "/healthz" else "POST")
        line.writer.write(b"2000\r\n" + b"a" * ANONYMOUS + b"\r\n")
        await until(lambda: serving._connections() and connection(serving).cycle)
        line.writer.write(b"1\r\na\r\n")
        assert await refusal(line) == 413


@on_server()
async def test_a_wrong_key_with_a_large_declared_body_is_a_401(port):
    for length in (ANONYMOUS + 1, 1 << 30):
        async with Line("wrong", port) as line:
            line.ask("/api/v1/posts", length, "POST")
            assert (await line.answer())[0] == 401


@on_server()
async def test_a_large_form_without_a_session_redirects_to_the_sign_in_unread(serving, port):
    async with Line("", port) as line:
        line.ask("/system/pause", 1 << 20, "POST", more="hx-request: true\r\n")
        line.writer.write(b"a" * (1 << 20))
        status, headers, _ = await line.answer()
        assert (status, headers["hx-redirect"]) == (401, "../login")
    await until(lambda: held(serving) == 0)


# --- a body that nothing reads ---------------------------------------------------------------------------------------


@on_server()
async def test_a_refused_body_is_discarded_and_the_connection_stays_open(serving, port):
    async with Line("wrong", port) as line:
        line.ask("/api/v1/posts", 900 * KIB, "POST")
        line.writer.write(b"a" * (400 * KIB))
        assert (await line.answer())[0] == 401
        line.writer.write(b"a" * (500 * KIB))
        await until(lambda: not connection(serving)._in_body)
        assert held(serving) == 0
        line.ask("/healthz")
        assert (await line.answer())[0] == 200


@on_server()
async def test_a_body_without_end_is_discarded_for_a_while_after_its_response(serving, port):
    async with Line("wrong", port) as line:
        line.ask("/api/v1/posts", None, "POST")
        with pytest.raises(ConnectionError):
            while True:
                line.writer.write(b"10000\r\n" + b"a" * (64 * KIB) + b"\r\n")
                await line.writer.drain()
    assert held(serving) == 0


# --- how long --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "keyed"), [("/api/v1/posts", True), ("/login", False), ("/healthz", False)])
@on_server()
async def test_a_body_in_memory_must_be_complete_within_20_seconds(serving, key, port, path, keyed, monkeypatch):
    assert limits.COMPLETE_SECONDS == 20
    monkeypatch.setattr(limits, "COMPLETE_SECONDS", 0.01)
    monkeypatch.setattr(limits, "MAX_DISCARDED_SECONDS", 0.01)
    async with Line(key if keyed else "", port) as line:
        line.ask(path, 100, "POST" if path != "/healthz" else "GET")
        line.writer.write(b"a")
        assert await refusal(line) == 408
        assert await line.ended()
        await until(lambda: not serving.server_state.tasks)
        assert held(serving) == 0


def test_a_file_needs_only_progress(rt):
    with Caller(create_app(rt), rt.write(api_keys.create, "uploads")) as caller:
        reservation = caller.reserve(100)
    address = urlsplit(reservation["uploadUrl"])

    async def story(serving: Server, key: str, port: int) -> None:
        async with Line("", port) as line:
            line.writer.write(
                f"PUT {address.path}?{address.query} HTTP/1.1\r\nhost: x\r\n"
                "content-type: image/png\r\ncontent-length: 100\r\n\r\n".encode()
            )
            await until(lambda: serving._connections() and connection(serving)._in_body)
            await until(lambda: connection(serving).idle_since() is None)
            sweep(serving, 74)
            assert connection(serving).idle_since() is None
            line.writer.write(b"a" * 100)
            assert (await line.answer())[0] == 200

    serve(rt, story)


def test_a_text_field_of_a_form_must_be_complete_within_20_seconds(rt, clock):
    file = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f.png"\r\nContent-Type: image/png\r\n\r\n'

    async def story(serving: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            begin_form(line)
            send(line, file + b"a" * 1000)
            await until(lambda: list(rt.settings.media_dir.rglob("*.part")))
            clock.forward(60)
            send(line, b"a" * 1000 + b"\r\n" + FORM + b" " * 1000)
            await until(lambda: held(serving) == 1000)
            clock.forward(21)
            send(line, b" ")
            assert await refusal(line) == 408
        await until(lambda: held(serving) == 0)

    serve(rt, story)


# --- how much memory -------------------------------------------------------------------------------------------------


@on_server()
async def test_all_bodies_in_memory_share_one_limit_and_release_it(serving, key, port):
    serving.app.state.body_memory.max_bytes = 100_000
    async with Line(key, port) as first, Line(key, port, "127.0.0.2") as second:
        first.ask("/api/v1/posts", 90_000, "POST")
        first.writer.write(b"a" * 60_000)
        await until(lambda: held(serving) == 60_000)
        second.ask("/api/v1/posts", 60_000, "POST")
        second.writer.write(b"a" * 60_000)
        status, headers, body = await second.answer()
        assert (status, json.loads(body)["code"]) == (503, "unavailable")
        assert int(headers["retry-after"]) > 0
        first.writer.write(b"a" * 30_000)
        assert (await first.answer())[0] == 400
        await until(lambda: held(serving) == 0)
        first.ask("/api/v1/posts", 90_000, "POST")
        first.writer.write(b"a" * 60_000)
        await until(lambda: held(serving) == 60_000)
    await until(lambda: held(serving) == 0)  # the client disconnected


def test_text_fields_of_a_form_count_as_memory_and_files_do_not(rt):
    file = b'\r\n--b\r\nContent-Disposition: form-data; name="f"; filename="f.png"\r\nContent-Type: image/png\r\n\r\n'

    async def story(serving: Server, key: str, port: int) -> None:
        serving.app.state.body_memory.max_bytes = 100_000
        async with Line(key, port) as line:
            for text_bytes, status in ((40_000, None), (110_000, 503)):
                form = FORM + b" " * text_bytes
                begin_form(line)
                for at in range(0, len(form), 10_000):
                    piece = form[at : at + 10_000]
                    send(line, piece)
                if status is None:
                    await until(lambda: held(serving) == 40_000)
                    files = file + b"a" * 300_000
                    send(line, files)
                    await until(lambda: list(rt.settings.media_dir.rglob("*.part")) or held(serving) == 40_000)
                    line.writer.write(b"9\r\n\r\n--b--\r\n\r\n0\r\n\r\n")
                    assert (await line.answer())[0] == 400
                    await until(lambda: held(serving) == 0)
                else:
                    assert (await line.answer())[0] == status
            assert await line.ended()
        await until(lambda: held(serving) == 0)

    serve(rt, story)
