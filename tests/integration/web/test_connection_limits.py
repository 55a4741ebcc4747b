"""Limits of connections, which need no key (contract 1.19)."""

import asyncio
import contextlib
import json
import logging
import os
import resource
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http import server
from socialpub.web.http.app import create_app
from socialpub.web.http.client_address import TrustedProxies
from socialpub.web.http.connections import ConnectionLimits, ConnectionWatch, Limit
from tests.integration.uploads.caller import Caller
from tests.integration.web.wire import Line, on_server, reached_limits, sweep, until
from tests.samples import media
from tests.support.appliance import accept, add_profile

MOST = 32 * 1024
START = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"


def head_of(size: int, *, in_lines: int = 1) -> bytes:
    """Return a complete head of this size."""
    line = (size - len(START) - 2) // in_lines
    lines = [b"x-%04d: %b\r\n" % (number, b"v" * (line - 10)) for number in range(in_lines)]
    rest = size - len(START) - 2 - line * in_lines
    return START + b"".join(lines[:-1]) + lines[-1][:-2] + b"v" * rest + b"\r\n\r\n"


# --- how large a head may be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_lines", [1, 90])
@on_server()
async def test_a_head_of_32_kib_is_read_and_one_byte_more_is_not(key, port, in_lines):
    for size, status in ((MOST, 200), (MOST + 1, 431)):
        async with Line(key, port) as line:
            line.writer.write(head_of(size, in_lines=in_lines))
            assert (await line.answer())[0] == status


@on_server()
async def test_a_request_has_at_most_100_headers(key, port):
    for fields, status in ((100, 200), (101, 431)):
        async with Line(key, port) as line:
            end = b"\r\n" if status == 200 else b"the-rest"
            line.writer.write(START + b"a: b\r\n" * (fields - 1) + end)
            assert (await line.answer())[0] == status


@pytest.mark.parametrize("piece", [100, 5000, 200_000])
@pytest.mark.parametrize("begin", [START + b"x: ", b"GET /"])
@on_server()
async def test_an_endless_head_gets_a_problem_when_it_is_too_large(line, begin, piece, caplog):
    line.writer.write(begin)
    for _ in range(0, MOST + 1, piece):
        line.writer.write(b"v" * piece)
    status, headers, body = await line.answer()
    assert (status, headers["connection"]) == (431, "close")
    assert headers["x-request-id"]
    assert json.loads(body)["code"] == "headersTooLarge"
    assert reached_limits(caplog) == [Limit.HEAD_BYTES]


@pytest.mark.parametrize("rest", [b"0\r\nx: ", b"1;"])
@on_server()
async def test_bytes_of_no_head_and_no_body_are_limited(serving, key, port, rest, caplog):
    async with Line(key, port) as line:
        line.writer.write(
            b"POST /api/v1/posts HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\n"
            b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n%b" % (key.encode(), rest)
        )
        with pytest.raises(ConnectionError):
            while True:
                line.writer.write(b"v" * 100_000)
                await line.writer.drain()
    await until(lambda: not serving.server_state.tasks)
    assert reached_limits(caplog) == [Limit.HEAD_BYTES]


# --- how long it may take --------------------------------------------------------------------------------------------


@on_server()
async def test_a_silent_connection_is_closed(serving, key, port, caplog):
    async with Line(key, port) as line:
        await until(serving._connections)
        sweep(serving, 19)
        line.ask("/healthz")
        assert (await line.answer())[0] == 200
    async with Line(key, port) as silent:
        await until(serving._connections)
        sweep(serving, 21)
        assert await silent.ended()
    assert reached_limits(caplog) == [Limit.HEAD_SECONDS]


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("piece", [b"v", b"\r\nx: y"])
@on_server()
async def test_a_slow_head_must_be_complete_in_time(serving, line, is_kept, piece):
    if is_kept:
        line.ask("/healthz")
        await line.answer()
    line.writer.write(START + b"x: ")
    await until(lambda: [one for one in serving._connections() if one._in_head])
    (connection,) = serving._connections()
    for _ in range(5):
        before = connection._unfinished_bytes
        line.writer.write(piece)
        await until(lambda before=before: connection._unfinished_bytes > before)
    sweep(serving, 19)
    assert serving._connections()
    sweep(serving, 21)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await line.answer()


@on_server()
async def test_the_rest_of_a_body_after_its_response_must_be_complete_in_time(serving, port):
    async with Line("wrong", port) as line:
        line.ask("/api/v1/posts", 100, "POST")
        assert (await line.answer())[0] == 401
        (connection,) = serving._connections()
        for _ in range(3):
            line.writer.write(b"a")
            await until(lambda: connection.timeout_keep_alive_task is None)
        sweep(serving, 19)
        assert serving._connections()
        sweep(serving, 21)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await line.answer()


# --- who does not read -----------------------------------------------------------------------------------------------


@pytest.fixture
def large_file(rt: Runtime, tmp_path: Path) -> Iterator[str]:
    """The address of a file that is larger than the socket buffers."""
    png = media.png(tmp_path / "a.png", 64, 48).read_bytes()
    with Caller(create_app(rt), rt.write(api_keys.create, "uploads")) as caller:
        artifact = caller.upload(png)
    os.truncate(rt.files.path(artifact["storageKey"]), 1 << 30)
    parts = urlsplit(artifact["url"])
    return f"{parts.path}?{parts.query}"


@on_server()
async def test_a_client_that_reads_nothing_is_disconnected(serving, line, large_file, caplog):
    line.ask(large_file)
    await until(lambda: [one for one in serving._connections() if one.flow.write_paused])
    await line.reader.readuntil(b"\r\n\r\n")
    sweep(serving, 0)
    sweep(serving, 29)
    assert serving.server_state.tasks
    sweep(serving, 31)
    # The server stops reading the file.
    await until(lambda: not serving.server_state.tasks)
    assert reached_limits(caplog) == [Limit.READER_SECONDS]


@on_server()
async def test_a_slow_reader_gets_the_whole_response(serving, line, large_file):
    line.ask(large_file)
    now = 0.0
    for _ in range(5):
        await until(lambda: [one for one in serving._connections() if one.flow.write_paused])
        (connection,) = serving._connections()
        now += 29
        sweep(serving, now)
        before = connection.transport.get_write_buffer_size()
        while connection.transport.get_write_buffer_size() == before:
            await line.reader.read(1 << 20)
    sweep(serving, now + 29)
    assert serving._connections()


# --- how many --------------------------------------------------------------------------------------------------------


def addresses_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the addresses in the log, line by line."""
    fields = [record.__dict__.get("fields", {}) for record in caplog.records]
    return [found["addresses"] for found in fields if "addresses" in found]


async def answers(*lines: Line) -> list[int]:
    for line in lines:
        line.ask("/healthz")
    return [(await line.answer())[0] for line in lines]


@pytest.fixture
def waiting_post(rt: Runtime) -> str:
    """The address of a request that waits for a minute."""
    return f"/api/v1/posts/{accept(rt, add_profile(rt), at=rt.now() + timedelta(hours=1))}?wait=60"


@on_server(ConnectionLimits(connections=3))
async def test_when_all_connections_are_in_use_the_longest_idle_one_is_closed(serving, key, port, waiting_post, caplog):
    async with Line(key, port) as served, Line(key, port) as second, Line(key, port, "127.0.0.9") as third:
        served.ask(waiting_post)
        await until(lambda: serving.app.state.long_poll._poller)
        assert await answers(second) == [200]
        third.ask("/api/v1/posts", 10, "POST")  # a connection without the rest of its body is idle
        await until(lambda: [one for one in serving._connections() if one._in_body])
        ages = {"127.0.0.9": 1.0, "127.0.0.1": 2.0}
        for one in serving._connections():
            one._since = ages[one.peer]
        async with Line(key, port) as new:
            assert await answers(new) == [200]
            assert await third.ended()
            async with Line(key, port) as newer:
                assert await answers(newer, new) == [200, 200]
                assert await second.ended()
                serving.app.state.long_poll.stop()
                assert (await served.answer())[0] == 200
    assert reached_limits(caplog) == [Limit.IDLE_CONNECTIONS]
    assert addresses_in(caplog) == ["127.0.0.9"]


@on_server(ConnectionLimits(connections=2))
async def test_when_no_connection_is_idle_a_new_one_is_closed(serving, key, port, waiting_post, caplog):
    async with Line(key, port) as first, Line(key, port) as second:
        for line in (first, second):
            line.ask(waiting_post)
        await until(lambda: len(serving.server_state.tasks) == 2)
        for _ in range(3):
            async with Line(key, port) as line:
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await line.answer()
        serving.app.state.long_poll.stop()
        for line in (first, second):
            assert (await line.answer())[0] == 200
    await until(lambda: not serving._connections())
    async with Line(key, port) as line:
        assert await answers(line) == [200]
    assert reached_limits(caplog) == [Limit.CONNECTIONS]


@on_server()
async def test_the_connection_limit_of_one_address_does_not_affect_others(serving, key, port, waiting_post, caplog):
    async with contextlib.AsyncExitStack() as stack:

        async def connect(address: str, count: int) -> list[Line]:
            return [await stack.enter_async_context(Line(key, port, address)) for _ in range(count)]

        neighbor, *proxied = [*await connect("127.0.0.3", 1), *await connect("127.0.0.1", 70)]
        lines = await connect("127.0.0.2", 64)
        assert set(await answers(neighbor, *proxied, *lines)) == {200}
        longest = lines[0].writer.get_extra_info("sockname")
        (idle_longest,) = [one for one in serving._connections() if one.client == longest]
        idle_longest._since -= 1
        (newest,) = await connect("127.0.0.2", 1)
        assert await answers(newest, *lines[1:]) == [200] * 64
        assert await lines[0].ended()
        for line in (newest, *lines[1:]):
            line.ask(waiting_post)
        await until(lambda: len(serving.server_state.tasks) == 64)
        (refused,) = await connect("127.0.0.2", 1)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await refused.answer()
        assert set(await answers(neighbor, *proxied)) == {200}
        serving.app.state.long_poll.stop()
        assert {(await line.answer())[0] for line in (newest, *lines[1:])} == {200}
    await until(lambda: not serving._connections())
    assert not serving.watch._by_network
    assert reached_limits(caplog) == [Limit.ADDRESS_CONNECTIONS]
    assert addresses_in(caplog) == ["127.0.0.2"]


class Idle:
    def __init__(self, peer: str, since: float = 0.0) -> None:
        self.peer, self.since = peer, since
        self.is_aborted = False

    def exceeded_limit(self, now: float) -> Limit | None:
        return None

    def idle_since(self) -> float | None:
        return self.since

    def abort(self) -> None:
        self.is_aborted = True


def test_an_ipv6_household_is_one_address_and_a_trusted_proxy_is_exempt():
    watch = ConnectionWatch(ConnectionLimits(connections_per_address=2), TrustedProxies(["2001:db8:0:1::/64"]).contains)
    trusted = [Idle(f"2001:db8:0:1::{number}") for number in range(5)]
    household = [Idle(f"2001:db8:0:2::{number}", since=number) for number in range(3)]
    others = [Idle(f"2001:db8:0:{number}::1") for number in range(3, 6)]
    for one in (*trusted, *household, *others):
        assert watch.admit(one, 0.0)
    assert [one for one in (*trusted, *household, *others) if one.is_aborted] == household[:1]


@pytest.mark.parametrize(
    ("limits", "soft"),
    [((1024, 524288), 524288), ((1024, 1024), 1024), ((1024, resource.RLIM_INFINITY), 1 << 20)],
)
def test_the_descriptor_limit_is_raised_to_the_hard_limit(limits, soft, monkeypatch):
    now = [limits]
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: now.__setitem__(0, wanted))
    assert server.raise_descriptors() == soft
    assert now[0] == (soft, limits[1])


@pytest.mark.parametrize(("descriptors", "connections"), [(524288, 4096), (1024, 412), (100, 1)])
def test_connections_leave_descriptors_for_files_and_the_database(descriptors, connections):
    assert server.connections_within(descriptors) == connections


def test_a_reached_limit_is_logged_at_once_and_then_once_a_minute(caplog):
    watch = ConnectionWatch(ConnectionLimits())

    def times() -> list[int]:
        found = [record.__dict__["fields"]["times"] for record in caplog.records]
        caplog.clear()
        return found

    with caplog.at_level(logging.WARNING):
        watch.report(Limit.CONNECTIONS, 0.0, "192.0.2.1")
        assert addresses_in(caplog) == ["192.0.2.1"]
        assert times() == [1]
        for second in range(1, 50):
            watch.report(Limit.CONNECTIONS, second, f"192.0.2.{min(second, 4)}")
        assert times() == []
        watch.check((), 61.0)
        assert addresses_in(caplog) == ["192.0.2.4, 192.0.2.1, 192.0.2.2"], "the most frequent first"
        assert times() == [49]
        watch.check((), 200.0)
        assert times() == []
