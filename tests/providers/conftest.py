from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.providers import official
from tests.providers.grid import BASE_URL, PATIENCE, Environment, grid_appliance
from tests.simulation.fitted import FittedOnce
from tests.support.hand_clock import HandClock
from tests.support.media_reader import reader_of
from tests.support.sandbox_http import FaultTransport, connect_x, http_over, sandbox

GRID = "tests/providers/test_grid"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(GRID):
            item.add_marker(pytest.mark.grid)


@pytest.fixture
def world(clock: HandClock) -> Iterator[World]:
    world = sandbox(clock)
    world.record = True
    world.tiktok.verified_domains.append("social.example.org")
    yield world
    for request in world.requests:
        assert official.complaints(request) == []


class CurrentTransport(httpx2.AsyncBaseTransport):
    """A transport to the sandbox of the current test."""

    transport: FaultTransport

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self.transport.handle_async_request(request)


@pytest.fixture(scope="session")
def shared_http() -> Iterator[tuple[CurrentTransport, Http]]:
    current = CurrentTransport()
    http = http_over(current)
    yield current, http
    http.close()


@pytest.fixture
def transport(shared_http: tuple[CurrentTransport, Http], world: World) -> FaultTransport:
    shared_http[0].transport = FaultTransport(world)
    return shared_http[0].transport


@pytest.fixture
def give_up_after() -> timedelta:
    return PATIENCE


@pytest.fixture
def rt(
    tmp_path: Path,
    clock: HandClock,
    shared_http: tuple[CurrentTransport, Http],
    transport: FaultTransport,
    world: World,
    give_up_after: timedelta,
) -> Iterator[Runtime]:
    rt = grid_appliance(tmp_path, clock, shared_http[1], give_up_after)
    world.tiktok.fetch = reader_of(rt, BASE_URL)
    world.pinterest.forms_good_once = True
    yield rt
    rt.db.stop()
    rt.process.close()


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("samples")


@pytest.fixture(scope="session")
def fitted(samples: Path) -> FittedOnce:
    return FittedOnce(samples)


@pytest.fixture
def env(
    rt: Runtime,
    world: World,
    transport: FaultTransport,
    clock: HandClock,
    tmp_path: Path,
    samples: Path,
    fitted: FittedOnce,
) -> Iterator[Environment]:
    with fitted.in_use():
        yield Environment(rt, world, transport, clock, tmp_path, samples)


@pytest.fixture
def profile(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)
