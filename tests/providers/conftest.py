from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.clock import HandClock
from tests.house import open_house
from tests.street import Line, connect_x, line_to, providers_of_the_sandbox, sandbox


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def world(clock: HandClock) -> World:
    return sandbox(clock)


@pytest.fixture
def street(world: World) -> Iterator[tuple[Line, Http]]:
    line, http = line_to(world)
    yield line, http
    http.close()


@pytest.fixture
def line(street: tuple[Line, Http]) -> Line:
    return street[0]


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, street: tuple[Line, Http]) -> Iterator[Runtime]:
    rt = open_house(tmp_path, clock, http=street[1], networks=providers_of_the_sandbox())
    yield rt
    rt.close()


@pytest.fixture
def profile(rt: Runtime, world: World) -> str:
    return connect_x(rt, world)
