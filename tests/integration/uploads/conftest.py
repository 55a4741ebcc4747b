from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.app import create_app
from tests.integration.uploads.caller import Caller
from tests.support.appliance import add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    rt = open_appliance(tmp_path, clock, providers={"x": ScriptedNetwork()})
    yield rt
    rt.close()


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    """Somebody with a key that may write."""
    with Caller(create_app(rt), rt.write(api_keys.create, "test")) as caller:
        yield caller


@pytest.fixture
def profile(rt: Runtime) -> str:
    return add_profile(rt)
