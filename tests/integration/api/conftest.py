from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.app import App, create_app
from tests.integration.api.client import Client
from tests.support.appliance import add_profile, open_appliance
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    networks = {"x": ScriptedNetwork(), "tiktok": ScriptedNetwork(), "pinterest": ScriptedNetwork()}
    rt = open_appliance(tmp_path, clock, providers=networks)
    yield rt
    rt.close()


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def client(rt: Runtime, app: App) -> Iterator[Client]:
    """Somebody with a key that may do everything."""
    with Client(app, rt.write(api_keys.create, "test")) as client:
        yield client


@pytest.fixture
def profile(rt: Runtime) -> str:
    return add_profile(rt)
