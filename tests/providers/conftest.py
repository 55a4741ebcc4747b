from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import httpx2
import pytest

from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from socialpub.web.app import create_app
from tests.providers import official
from tests.providers.grid import BASE_URL, Stage, house_in
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import HOST, Line, connect_x, sandbox

GRID = "tests/providers/test_grid"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if report.when == "call" and report.nodeid.startswith(GRID)
    ]
    if reports:
        terminalreporter.write_line(f"provider grid: {len(reports)} cells")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> Iterator[World]:
    """All three networks. What was asked of them in a test must be as their own documents describe it."""
    world = sandbox(clock)
    world.record = True
    world.tiktok.verified_domains.append("social.example.org")
    yield world
    for request in world.requests:
        assert official.complaints(request) == []


class Switchboard(httpx2.AsyncBaseTransport):
    """Leads to the sandbox of the test that is running."""

    line: Line

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self.line.handle_async_request(request)


@pytest.fixture(scope="session")
def telephone() -> Iterator[tuple[Switchboard, Http]]:
    """One client for all tests: making one takes as long as some of them."""
    switchboard = Switchboard()
    http = Http(mounts={HOST: switchboard})
    yield switchboard, http
    http.close()


@pytest.fixture
def line(telephone: tuple[Switchboard, Http], world: World) -> Line:
    telephone[0].line = Line(world)
    return telephone[0].line


@pytest.fixture
def rt(
    tmp_path: Path, clock: HandClock, telephone: tuple[Switchboard, Http], line: Line, world: World
) -> Iterator[Runtime]:
    rt = house_in(tmp_path, clock, telephone[1])
    world.tiktok.fetch = reader_of(rt)
    yield rt
    rt.db.close()
    rt.process.close()


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture
def stage(rt: Runtime, world: World, line: Line, clock: HandClock, tmp_path: Path, shelf: Path) -> Stage:
    return Stage(rt, world, line, clock, tmp_path, shelf)


@pytest.fixture
def profile(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)


def reader_of(rt: Runtime) -> Callable[[str], bytes]:
    """The way from the internet to the appliance's own door: what a network fetches by a signed address."""
    app = create_app(rt)

    def read(url: str) -> bytes:
        assert url.startswith(f"{BASE_URL}/")

        async def get() -> bytes:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
                answer = await client.get(url)
                answer.raise_for_status()
                return bytes(answer.content)

        return anyio.run(get)

    return read
