from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from tests.integration.api.client import Client
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork]) -> dict[str, Any]:
    return {"providers": three_networks}


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def client(rt: Runtime, app: App) -> Iterator[Client]:
    with Client(app, rt.write(api_keys.create, "test")) as client:
        yield client
