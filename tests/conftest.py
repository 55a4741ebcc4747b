"""What every test may ask for: a clock that moves by hand, and the sandbox with a way to break the connection to it."""

from collections.abc import Iterator

import pytest

from socialpub.providers.http import Http
from socialpub.sandbox import World
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import FaultTransport, http_over, sandbox


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
