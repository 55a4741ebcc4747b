"""A sandbox world with a clock turned by hand, called without a socket."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from socialpub.sandbox import World, create_app
from tests.sandbox.x_caller import Caller
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
def demo(world: World, web: TestClient) -> Caller:
    """The account `demo` with every scope."""
    return Caller(web, world, "demo")
