from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bluesky.servers import BlueskyServer, RealServer, StandIn, node
from tests.bluesky.stories import FollowedClock, Story
from tests.support.hand_clock import START


@pytest.fixture
def clock() -> FollowedClock:
    return FollowedClock()


@pytest.fixture(scope="session")
def running_server() -> Iterator[RealServer]:
    """Bluesky's own server. It needs seconds to start, so all stories of a run share it."""
    if node() is None:
        pytest.skip("Bluesky's server is not installed: make bluesky")
    server = RealServer(START)
    yield server
    server.close()


@pytest.fixture
def real_server(running_server: RealServer, clock: FollowedClock) -> Iterator[RealServer]:
    running_server.begin_story(clock.now())
    clock.followers.append(running_server.set_clock)
    yield running_server
    running_server.begin_story(clock.now())


@pytest.fixture
def stand_in(clock: FollowedClock) -> Iterator[StandIn]:
    server = StandIn(clock)
    yield server
    server.close()


@pytest.fixture(params=["stand_in", pytest.param("real_server", marks=pytest.mark.bluesky)])
def server(request: pytest.FixtureRequest) -> BlueskyServer:
    """Every story runs against both."""
    found: BlueskyServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def story(tmp_path: Path, clock: FollowedClock, server: BlueskyServer) -> Iterator[Story]:
    story = Story(tmp_path, clock, server)
    yield story
    story.close()
