"""A PUT streams bytes to the disk and checks them, and a failed PUT changes nothing (contract 5.3, 5.4)."""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn

from socialpub.core.secrets import signed_urls
from socialpub.web.http.app import create_app
from tests.integration.uploads.caller import Gone
from tests.samples import media


def files_of(rt):
    return [path for path in rt.settings.media_dir.rglob("*") if path.is_file()]


def problem(reply, status, code):
    assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json"), reply.body
    assert reply.json()["code"] == code
    assert reply.json()["status"] == status
    return reply.json()["detail"]


def test_a_reservation_says_where_to_send_the_bytes_and_with_what(caller):
    reservation = caller.reserve(10, "image/jpg", "a.jpg")
    assert set(reservation) == {"artifactId", "uploadUrl", "requiredHeaders"}
    assert reservation["requiredHeaders"] == {"content-type": "image/jpg"}
    prefix = f"http://127.0.0.1:8000/storage/uploads/{reservation['artifactId']}?expires="
    assert reservation["uploadUrl"].startswith(prefix)


def test_a_put_is_answered_with_an_etag_once_the_bytes_are_on_the_disk(rt, caller, png, monkeypatch):
    flushed = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (flushed.append(fd), fsync(fd)))
    reply = caller.put(caller.reserve(png), png)
    assert (reply.status, reply.body) == (200, b"")
    assert reply.headers["etag"].startswith('"')
    assert "content-type" not in reply.headers, "there is nothing that could be of a type"
    assert len(flushed) >= 2, "the file and its folder"
    assert [path.read_bytes() for path in files_of(rt)] == [png]


def test_bytes_may_come_in_pieces_of_unknown_number(rt, caller, png):
    pieces = [png[:1], b"", png[1:50], png[50:]]
    assert caller.put(caller.reserve(png), pieces).status == 200
    assert files_of(rt)[0].read_bytes() == png


@pytest.mark.parametrize(
    ("declared", "sent"),
    [
        ("image/png", "image/png"),
        ("image/png", "IMAGE/PNG"),
        ("image/png", "image/png; charset=utf-8"),
        ("image/jpg", "image/jpeg"),
        ("image/PJPEG; q=1", "image/jpeg"),
        ("image/apng", "image/png"),
        ("video/x-m4v", "video/mp4"),
        ("video/webm; codecs=vp9", "video/x-matroska"),
    ],
)
def test_the_declared_type_may_be_spelled_differently(caller, declared, sent):
    assert caller.put(caller.reserve(4, declared), b"1234", content_type=sent).status == 200


@pytest.mark.parametrize("sent", ["image/jpeg", "text/plain", ""])
def test_another_type_is_a_400_and_not_a_403(rt, caller, png, sent):
    reply = caller.put(caller.reserve(png), png, content_type=sent)
    assert "image/png" in problem(reply, 400, "invalidRequest")
    assert reply.paths() == [["content-type"]]
    assert files_of(rt) == []


def test_fewer_bytes_are_a_400(rt, caller, png):
    reservation = caller.reserve(png)
    assert "only" in problem(caller.put(reservation, png[:-1]), 400, "invalidRequest")
    assert "only" in problem(caller.put(reservation, [png[:9], png[9:-1]]), 400, "invalidRequest")
    assert files_of(rt) == []
    assert caller.put(reservation, png).status == 200


def test_more_bytes_are_a_413_as_soon_as_the_head_says_so(rt, caller, png):
    reply = caller.put(caller.reserve(png), png + b"!")
    problem(reply, 413, "payloadTooLarge")
    assert reply.headers["connection"] == "close"
    assert files_of(rt) == []


def test_more_bytes_are_a_413_as_soon_as_they_are_too_many(rt, caller, png):
    endless = [b"x" * 65536] * 1000
    reply = caller.put(caller.reserve(png), endless)
    problem(reply, 413, "payloadTooLarge")
    assert reply.headers["connection"] == "close"
    assert caller.taken < 10_000_000, "what follows is not read to its end"
    assert files_of(rt) == []


def test_an_url_that_was_changed_is_a_403(rt, caller, png):
    reservation, other = caller.reserve(png), caller.reserve(png)
    url = reservation["uploadUrl"]
    for bad in (
        url[:-1] + ("A" if url[-1] != "A" else "B"),
        url.replace(reservation["artifactId"], other["artifactId"]),
        url.replace(reservation["artifactId"], "not-an-id"),
        url.replace("expires=1", "expires=2"),
        url.partition("?")[0],
    ):
        problem(caller.put({**reservation, "uploadUrl": bad}, png), 403, "forbidden")
    assert files_of(rt) == []


def test_an_hour_later_the_url_has_expired(rt, clock, caller, png):
    reservation = caller.reserve(png)
    clock.forward(3599)
    assert caller.put(reservation, png).status == 200
    clock.forward(1)
    assert "expired" in problem(caller.put(reservation, png), 403, "forbidden")


def test_a_url_to_read_takes_no_bytes_and_a_url_to_send_gives_none(rt, caller, png):
    reservation = caller.reserve(png)
    artifact = caller.upload(png)
    upload_query, read_query = reservation["uploadUrl"].partition("?")[2], artifact["url"].partition("?")[2]
    path = reservation["uploadUrl"].partition("?")[0]
    problem(caller.put({**reservation, "uploadUrl": f"{path}?{read_query}"}, png), 403, "forbidden")
    problem(caller.ask("GET", f"{artifact['url'].partition('?')[0]}?{upload_query}"), 403, "forbidden")
    refused = caller.ask("GET", reservation["uploadUrl"])
    problem(refused, 405, "methodNotAllowed")
    assert refused.headers["allow"] == "PUT"


def test_a_put_after_completion_is_a_409_and_changes_nothing(rt, caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)
    assert caller.complete(reservation).status == 200
    problem(caller.put(reservation, b"x" * len(png)), 409, "conflict")
    problem(caller.put(reservation, b"short"), 409, "conflict")
    assert [path.read_bytes() for path in files_of(rt)] == [png]


def test_a_caller_who_goes_away_leaves_nothing_and_may_come_back(rt, caller, png):
    reservation = caller.reserve(png)
    fields = reservation["requiredHeaders"]
    with pytest.raises(Gone):
        caller.run(caller.asking("PUT", reservation["uploadUrl"], [png[:20]], fields, goes_away=True))
    assert files_of(rt) == []
    assert caller.complete(reservation).status == 400
    assert caller.put(reservation, png).status == 200
    assert caller.complete(reservation).status == 200


def test_the_last_complete_put_counts(rt, caller, png, tmp_path):
    other = bytearray(media.png(tmp_path / "b.png", 64, 48, noise=True).read_bytes())
    reservation = caller.reserve(bytes(other))
    assert caller.put(reservation, b"\0" * len(other)).status == 200
    first = caller.put(reservation, bytes(other))
    with pytest.raises(Gone):
        caller.run(
            caller.asking("PUT", reservation["uploadUrl"], [b"half"], reservation["requiredHeaders"], goes_away=True)
        )
    assert [path.read_bytes() for path in files_of(rt)] == [bytes(other)]
    artifact = caller.complete(reservation).data
    assert caller.ask("GET", artifact["url"]).headers["etag"] == first.headers["etag"]


def test_two_puts_at_once_never_make_a_mixture(rt, caller):
    reservation = caller.reserve(100_000)

    async def both():
        async def other():
            assert (await caller.putting(reservation, b"b" * 100_000)).status == 200

        fields = reservation["requiredHeaders"]
        pieces = [b"a" * 50_000, b"a" * 50_000]
        return await caller.asking("PUT", reservation["uploadUrl"], pieces, fields, before_last=other)

    assert caller.run(both()).status == 200
    assert [path.read_bytes() for path in files_of(rt)] == [b"a" * 100_000], "the last to become whole"


def test_a_put_that_becomes_whole_after_completion_is_a_409(rt, caller, png):
    reservation = caller.reserve(png)
    caller.put(reservation, png)

    async def late():
        async def completed():
            assert (await caller.completing(reservation)).status == 200

        pieces = [b"x" * (len(png) - 1), b"x"]
        fields = reservation["requiredHeaders"]
        return await caller.asking("PUT", reservation["uploadUrl"], pieces, fields, before_last=completed)

    problem(caller.run(late()), 409, "conflict")
    assert [path.read_bytes() for path in files_of(rt)] == [png]


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_a_503_after_which_the_reservation_still_works(rt, caller, png, monkeypatch, call):
    reservation = caller.reserve(png)
    real = getattr(os, call)

    def full(fd, *data):
        # The database has file descriptors of its own; only the media folder is full.
        if "/media/" in str(Path(f"/proc/self/fd/{fd}").readlink()):
            raise OSError(errno.ENOSPC, "no room")
        return real(fd, *data)

    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        reply = caller.put(reservation, png)
    assert "disk is full" in problem(reply, 503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0
    assert files_of(rt) == []
    assert caller.put(reservation, png).status == 200
    assert caller.complete(reservation).status == 200


def test_a_stalled_caller_is_disconnected(rt, caller, monkeypatch):
    monkeypatch.setattr("socialpub.web.http.limits.STALL_SECONDS", 0.01)
    reservation = caller.reserve(100)

    async def story():
        async def never():
            await asyncio.Event().wait()

        fields = reservation["requiredHeaders"]
        monkeypatch.setattr("socialpub.web.http.limits.MAX_DISCARDED_SECONDS", 0.01)
        return await caller.asking("PUT", reservation["uploadUrl"], [b"x", b"y"], fields, before_last=never)

    assert "No data arrived" in problem(caller.run(story()), 400, "invalidRequest")
    assert files_of(rt) == []


def test_the_proxy_removes_the_path_of_base_url(tmp_path, clock, png):
    from socialpub.accounts import api_keys
    from socialpub.web.http.app import create_app
    from tests.integration.uploads.caller import Caller
    from tests.support.appliance import open_appliance

    (tmp_path / "appliance").mkdir()
    rt = open_appliance(tmp_path / "appliance", clock, base_url="https://home.example.net/social")
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        reservation = caller.reserve(png)
        assert reservation["uploadUrl"].startswith("https://home.example.net/social/storage/uploads/")
        at_home = {**reservation, "uploadUrl": reservation["uploadUrl"].replace("/social/", "/")}
        assert caller.put(at_home, png, host="somebody.else.example").status == 200
        url = caller.complete(reservation).data["url"]
        assert url.startswith("https://home.example.net/social/storage/media/")
        assert caller.ask("GET", url.replace("/social/", "/"), headers={"host": "a.b"}).body == png
        problem(caller.put(at_home, png[:-1]), 409, "conflict")
    rt.close()


def test_the_log_contains_no_signature(caller, png, caplog):
    caplog.set_level("DEBUG")
    reservation = caller.reserve(png)
    caller.put(reservation, png)
    caller.put(reservation, b"")
    signature = reservation["uploadUrl"].rpartition("=")[2]
    logged = str([vars(record) for record in caplog.records])
    assert signed_urls.UPLOADS in logged
    assert signature not in logged


# --- Refusals on a real connection: said before the body is sent, or while it is on its way, and always readable ------


@pytest.fixture
def address(rt, caller) -> Iterator[tuple[str, int]]:
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
    fields = {"host": "x", **reservation["requiredHeaders"], **length}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"PUT {url.path}?{url.query} HTTP/1.1\r\n{lines}\r\n".encode()


def reply(wire):
    data = b""
    while piece := wire.recv(65536):
        data += piece
    line, _, rest = data.partition(b"\r\n")
    return int(line.split()[1]), rest


def test_expect_100_continue_is_rejected_before_the_body(wire, caller):
    reservation = caller.reserve(100)
    wire.sendall(head(reservation, {"content-length": "101"}, expect="100-continue"))
    status, rest = reply(wire)
    assert status == 413
    assert b'"payloadTooLarge"' in rest
    assert b"connection: close" in rest


def test_expect_100_continue_is_accepted_for_a_valid_body(wire, caller):
    reservation = caller.reserve(4)
    wire.sendall(head(reservation, {"content-length": "4"}, expect="100-continue", connection="close"))
    assert wire.recv(65536).startswith(b"HTTP/1.1 100 Continue")
    wire.sendall(b"1234")
    assert reply(wire)[0] == 200


def test_a_caller_that_sends_too_much_can_read_the_reason(wire, caller):
    reservation = caller.reserve(100)
    wire.sendall(head(reservation, {"transfer-encoding": "chunked"}))
    for _ in range(32):
        wire.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
    wire.sendall(b"0\r\n\r\n")
    status, rest = reply(wire)
    assert status == 413
    assert b'"payloadTooLarge"' in rest
