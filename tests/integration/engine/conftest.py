from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.runtime import Runtime
from tests.support.appliance import add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock, network: ScriptedNetwork) -> Iterator[Runtime]:
    rt = open_appliance(tmp_path, clock, providers={"x": network})
    yield rt
    rt.close()


@pytest.fixture
def profile(rt: Runtime) -> str:
    return add_profile(rt)
