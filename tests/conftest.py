"""What every test may ask for: a clock that moves by hand, and the sandbox with a way to break the connection to it."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from socialpub.providers.http import Http
from socialpub.sandbox import World
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import FaultTransport, http_over, sandbox

# The same examples every time, and none fails because the machine was busy meanwhile.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> World:
    return sandbox(clock)


@pytest.fixture
def transport(world: World) -> FaultTransport:
    return FaultTransport(world)


@pytest.fixture
def http(transport: FaultTransport) -> Iterator[Http]:
    http = http_over(transport)
    yield http
    http.close()
