from collections.abc import Iterator

import pytest

from tests.bluesky.servers import RealServer, node
from tests.support.hand_clock import START, HandClock


@pytest.fixture(scope="session")
def running_server() -> Iterator[RealServer]:
    """Bluesky's own server. It needs seconds to start, so all stories of a run share it."""
    if node() is None:
        pytest.skip("Bluesky's server is not installed: make bluesky")
    server = RealServer(START)
    yield server
    server.close()


@pytest.fixture
def real_server(running_server: RealServer, clock: HandClock) -> Iterator[RealServer]:
    running_server.begin_story(clock.now())
    yield running_server
    running_server.begin_story(clock.now())
