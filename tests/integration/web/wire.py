"""A listening server for tests, and connections to it."""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http import server
from socialpub.web.http.app import create_app
from socialpub.web.http.connections import ConnectionLimits, Limit
from socialpub.web.http.server import Server

HANG_SECONDS = 60.0
"""A limit that only a failure reaches."""

Story = Callable[[Server, str, int], Awaitable[None]]


def serve(rt: Runtime, story: Story, limits: ConnectionLimits | None = None) -> None:
    """Run `story(server, key, port)` against a listening server, then stop the server."""
    key = rt.write(api_keys.create, "test")
    serving = Server(create_app(rt), limits)
    sockets = server.bind(rt.settings)

    async def both() -> None:
        running = asyncio.create_task(serving.serve(sockets=sockets))
        while not serving.started:
            await asyncio.sleep(0)
        try:
            await story(serving, key, rt.settings.listen_ports[0])
            if serving._draining is None:
                serving.stop()
        except BaseException:
            serving.should_exit = True  # the loop cannot close while the server runs
            raise
        finally:
            async with asyncio.timeout(HANG_SECONDS):
                await running

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the loop of the server
        runner.run(both())


def on_server(
    limits: ConnectionLimits | None = None,
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run an async test against a listening server.

    The test can have the parameters `serving`, `key`, `port` and `line`, a connection with the key.
    """

    def decorate(story: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        wanted = inspect.signature(story).parameters.values()

        def test(rt: Runtime, **fixtures: Any) -> None:
            async def run(serving: Server, key: str, port: int) -> None:
                known = {"rt": rt, "serving": serving, "key": key, "port": port, **fixtures}
                async with contextlib.AsyncExitStack() as stack:
                    if any(one.name == "line" for one in wanted):
                        known["line"] = await stack.enter_async_context(Line(key, port))
                    await story(**{one.name: known[one.name] for one in wanted})

            serve(rt, run, limits)

        test.__name__, test.__doc__, test.__module__ = story.__name__, story.__doc__, story.__module__
        own = [one for one in wanted if one.name not in ("rt", "serving", "key", "port", "line")]
        rt = inspect.Parameter("rt", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([rt, *own])  # type: ignore[attr-defined]
        return test

    return decorate


class Line:
    def __init__(self, key: str, port: int, address: str = "127.0.0.1") -> None:
        self.key, self.port, self.address = key, port, address

    async def __aenter__(self) -> "Line":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.address, 0))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    def ask(self, path: str, length: int | None = 0, method: str = "GET", more: str = "") -> None:
        """Send a head. An empty `key` sends no key. `length` None declares chunks."""
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\n{more}"
        if self.key:
            head += f"authorization: Bearer {self.key}\r\n"
        if length:
            head += f"content-type: application/json\r\ncontent-length: {length}\r\n"
        elif length is None:
            head += "content-type: application/json\r\ntransfer-encoding: chunked\r\n"
        self.writer.write(head.encode() + b"\r\n")

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:-2])
        return int(head[0].split()[1]), headers, await self.reader.readexactly(int(headers["content-length"]))

    async def ended(self) -> bool:
        return await self.reader.read(1) == b""


def reached_limits(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.message in set(Limit)]


async def until(condition: object) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0)


def sweep(serving: Server, seconds: float) -> None:
    """Check the connections as if this time had passed."""
    serving.watch.check(serving._connections(), asyncio.get_running_loop().time() + seconds)
