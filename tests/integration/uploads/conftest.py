from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub import keys
from socialpub.app import create_app
from socialpub.runtime import Runtime
from tests.clock import HandClock
from tests.house import connect, open_house
from tests.integration.uploads.caller import Caller
from tests.scripted import Scripted


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def rt(tmp_path: Path, clock: HandClock) -> Iterator[Runtime]:
    rt = open_house(tmp_path, clock, providers={"x": Scripted()})
    yield rt
    rt.close()


@pytest.fixture
def caller(rt: Runtime) -> Iterator[Caller]:
    """Somebody with a key that may write."""
    with Caller(create_app(rt), rt.write(keys.create, "test")) as caller:
        yield caller


@pytest.fixture
def profile(rt: Runtime) -> str:
    return connect(rt)
