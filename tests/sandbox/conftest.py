"""A sandbox world with a clock turned by hand, called without a socket or over one."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import create_app
from socialpub.sandbox.app import SandboxServer
from tests.sandbox.clients import BlueskyClient, PinterestClient, TikTokClient, XClient
from tests.stand_ins import World
from tests.support.hand_clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> World:
    made = World(clock)
    made.instant_faults = True
    return made


@pytest.fixture
def web(world: World) -> Iterator[TestClient]:
    with TestClient(create_app(world), follow_redirects=False) as client:
        yield client


@pytest.fixture
def x(world: World, web: TestClient) -> XClient:
    """The account `demo` with every scope."""
    return XClient(web, world)


@pytest.fixture
def tiktok(world: World, web: TestClient) -> TikTokClient:
    """The account `demo` with every scope."""
    return TikTokClient(web, world)


@pytest.fixture
def pinterest(world: World, web: TestClient) -> PinterestClient:
    """The account `demo` with every scope but those for secret boards."""
    return PinterestClient(web, world)


@pytest.fixture
def bluesky(world: World, web: TestClient) -> BlueskyClient:
    """The account `demo.test` with a session of its app password."""
    return BlueskyClient(web, world)


@pytest.fixture
def restart(tmp_path: Path, clock: HandClock) -> Iterator[Callable[[], World]]:
    """Start the sandbox again over the same journal, `journal.jsonl`."""
    with ExitStack() as stack:

        def begin() -> World:
            clock.forward(1)
            world = stack.enter_context(closing(World(clock, journal=tmp_path / "journal.jsonl")))
            world.tiktok.probes_video = False
            world.pinterest.probes_video = False
            world.pinterest.processing_ticks = 0
            return world

        yield begin


@pytest.fixture
def running(world: World) -> Iterator[tuple[SandboxServer, str]]:
    """The server of the world on a port, and its URL."""
    sock = socket.create_server(("127.0.0.1", 0))
    server = SandboxServer(world)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    yield server, f"http://127.0.0.1:{sock.getsockname()[1]}"
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


@pytest.fixture
def server(running: tuple[SandboxServer, str]) -> str:
    """The URL of the world on a port."""
    return running[1]
