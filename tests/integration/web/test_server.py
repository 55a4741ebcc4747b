"""The web process listens, serves requests and stops without breaking a request."""

import asyncio
import json
import logging
import socket
from datetime import timedelta

import pytest

from socialpub.core.errors import OperatorError
from socialpub.core.sd_notify import ServiceManager
from socialpub.runtime import Runtime
from socialpub.web.http import server
from socialpub.web.http.server import Server
from tests.integration.web.wire import Line, on_server, serve
from tests.support.appliance import accept, add_profile
from tests.support.ports import free_port


@on_server()
async def test_the_server_keeps_connections_open(line):
    for _ in range(2):
        line.ask("/api/v1/posts")
        status, headers, _ = await line.answer()
        assert status == 200
        assert "connection" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "request_line", [b"no http at all", b"FOO /healthz HTTP/1.1", b"GET /\xff HTTP/1.1", b"CONNECT x:443 HTTP/1.1"]
)
@on_server()
async def test_invalid_http_gets_a_problem(line, request_line):
    line.writer.write(request_line + b"\r\nhost: x\r\n\r\n")
    status, headers, body = await line.answer()
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert headers["x-request-id"]
    assert json.loads(body)["errors"] == [{"path": [], "message": "The request is not valid HTTP."}]
    assert await line.ended()


@on_server()
async def test_an_upgrade_is_declined(line):
    """`curl --http2` offers HTTP/2 with every first request."""
    line.ask("/healthz", more="connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n")
    status, headers, _ = await line.answer()
    assert (status, headers["connection"]) == (200, "close")
    assert await line.ended()


@on_server()
async def test_at_a_stop_waiting_requests_get_responses_and_new_connections_are_refused(
    serving, key, port, rt, profile_post
):
    async with Line(key, port) as line:
        line.ask(f"/api/v1/posts/{profile_post}?wait=60")
        while serving.app.state.long_poll._poller is None:
            await asyncio.sleep(0)
        serving.stop()
        assert rt.stopping.is_set()
        status, headers, body = await line.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert b'"status":"scheduled"' in body
        assert await line.ended()
    await serving._draining  # type: ignore[misc]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@on_server()
async def test_a_request_on_an_open_connection_during_the_stop_gets_a_response(serving, line):
    line.ask("/healthz")
    assert (await line.answer())[0] == 200
    serving.stop()
    while any(listener.is_serving() for listener in serving.servers):
        await asyncio.sleep(0)
    line.ask("/healthz")
    status, headers, _ = await line.answer()
    assert (status, headers["connection"]) == (200, "close")
    assert await line.ended()


def test_a_stop_waits_for_an_incomplete_body(rt, monkeypatch):
    monkeypatch.setattr(server, "IDLE_GRACE_SECONDS", 0.0)
    looked = 0

    async def story(serving: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            line.ask("/api/v1/posts", 2, "POST")
            line.writer.write(b"{")
            while not serving.server_state.tasks:
                await asyncio.sleep(0)
            busy = serving._busy

            def look() -> list[object]:
                nonlocal looked
                looked += 1
                return busy()

            monkeypatch.setattr(serving, "_busy", look)
            serving.stop()
            while looked < 5:  # an idle connection would be closed by now
                await asyncio.sleep(0)
            line.writer.write(b"}")
            status, headers, _ = await line.answer()
            assert (status, headers["connection"]) == (400, "close")

    serve(rt, story)


def test_an_idle_connection_does_not_delay_the_stop(rt, monkeypatch):
    monkeypatch.setattr(server, "IDLE_GRACE_SECONDS", 0.01)

    async def story(serving: Server, key: str, port: int) -> None:
        line = Line(key, port)
        await line.__aenter__()
        line.ask("/healthz")
        await line.answer()
        serving.stop()
        assert await line.ended()
        await line.__aexit__()

    serve(rt, story)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("{taken}", "in use by another program"),
        ("192.0.2.1:8000", "Cannot listen on 192.0.2.1:8000"),
        ("no.invalid:80", "listen"),
    ],
)
def test_an_unusable_address_is_reported_with_a_remedy(rt, address, message):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        settings = rt.settings.model_copy(update={"listen": address.replace("{taken}", taken)})
        with pytest.raises(OperatorError, match=message) as failed:
            server.bind(settings)
        assert failed.value.hint


@pytest.fixture
def profile_post(rt: Runtime) -> str:
    return accept(rt, add_profile(rt), at=rt.now() + timedelta(hours=1))


# --- listening sockets -----------------------------------------------------------------------------------------------


def hand_over(rt: Runtime, *sockets: socket.socket) -> None:
    """Pass a socket by its number, as systemd does."""
    rt.service_manager = ServiceManager(descriptors=tuple(each.detach() for each in sockets))


def test_the_sockets_of_systemd_are_used(rt, caplog):
    four, six = socket.create_server(("127.0.0.1", 0)), socket.create_server(("::1", 0), family=socket.AF_INET6)
    ports = [each.getsockname()[1] for each in (four, six)]
    hand_over(rt, four, six)
    with caplog.at_level(logging.WARNING):
        sockets = server.open_for(rt)
    assert server.addresses(sockets) == f"127.0.0.1:{ports[0]}, [::1]:{ports[1]}"
    assert "systemd's socket instead of `listen`" in caplog.text, "links lead to where the configuration says"
    for each in sockets:
        assert not each.getblocking()
        each.close()


@pytest.mark.parametrize("listen", ["[::]:{0}", "127.0.0.1:{0}, [::1]:{0}"])
def test_every_address_of_listen_is_served(rt, listen):
    port = free_port()
    sockets = server.bind(rt.settings.model_copy(update={"listen": listen.format(port)}))
    for host in ("127.0.0.1", "::1"):
        socket.create_connection((host, port), timeout=5).close()
    for each in sockets:
        each.close()


def test_an_ipv4_client_of_a_socket_for_both_families_has_its_ipv4_address(rt):
    rt.settings = rt.settings.model_copy(update={"listen": f"[::]:{free_port()}"})

    async def story(serving: Server, key: str, port: int) -> None:
        async with Line(key, port) as line:
            line.ask("/healthz")
            assert (await line.answer())[0] == 200
            assert [connection.peer for connection in serving._connections()] == ["127.0.0.1"]

    serve(rt, story)


def test_a_name_that_means_an_address_of_the_list_is_refused(rt):
    settings = rt.settings.model_copy(update={"listen": f"localhost:{free_port()}, 127.0.0.1:{free_port()}"})
    for each in server.bind(settings):
        each.close()
    port = free_port()
    with pytest.raises(OperatorError, match=f"127.0.0.1:{port} is given twice"):
        server.bind(settings.model_copy(update={"listen": f"localhost:{port}, 127.0.0.1:{port}"}))


@pytest.mark.parametrize(
    "make",
    [
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
    ],
    ids=["datagrams", "one connection", "of this machine alone"],
)
def test_any_other_socket_is_refused_with_a_remedy(rt, make):
    hand_over(rt, make())
    with pytest.raises(OperatorError, match="does not listen for TCP") as refused:
        server.open_for(rt)
    assert "ListenStream=" in (refused.value.hint or "")
