from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub import keys
from socialpub.app import App, create_app
from socialpub.runtime import Runtime
from tests.clock import HandClock
from tests.house import connect, open_house
from tests.integration.api.client import Client
from tests.scripted import Scripted


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    networks = {"x": Scripted(), "tiktok": Scripted(), "pinterest": Scripted()}
    rt = open_house(tmp_path, clock, providers=networks)
    yield rt
    rt.close()


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def client(rt: Runtime, app: App) -> Iterator[Client]:
    """Somebody with a key that may do everything."""
    with Client(app, rt.write(keys.create, "test")) as client:
        yield client


@pytest.fixture
def profile(rt: Runtime) -> str:
    return connect(rt)
