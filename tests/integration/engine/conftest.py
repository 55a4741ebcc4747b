from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.runtime import Runtime
from tests.clock import HandClock
from tests.house import connect, open_house
from tests.scripted import Scripted


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def network() -> Scripted:
    return Scripted()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, network: Scripted) -> Iterator[Runtime]:
    rt = open_house(tmp_path, clock, providers={"x": network})
    yield rt
    rt.close()


@pytest.fixture
def profile(rt: Runtime) -> str:
    return connect(rt)
