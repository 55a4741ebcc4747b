from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.accounts import api_keys
from socialpub.runtime import Runtime
from socialpub.web.http.app import App, create_app
from tests.integration.mcp.agent import Agent
from tests.support.appliance import add_profile
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def appliance_options(three_networks: dict[str, ScriptedNetwork]) -> dict[str, Any]:
    return {"providers": three_networks}


@pytest.fixture
def app(rt: Runtime) -> App:
    return create_app(rt)


@pytest.fixture
def agent(rt: Runtime, app: App) -> Iterator[Agent]:
    with Agent(app, rt.write(api_keys.create, "agent")) as agent:
        yield agent


@pytest.fixture
def reader(rt: Runtime, app: App) -> Iterator[Agent]:
    """An agent whose key may only read."""
    with Agent(app, rt.write(api_keys.create, "reader", "read")) as agent:
        yield agent


@pytest.fixture
def accounts(rt: Runtime) -> dict[str, str]:
    """An account of X, and two of Pinterest."""
    return {
        "acme": add_profile(rt, name="Acme", username="AcmeCorp"),
        "shop": add_profile(rt, "pinterest", "shop", name="Shop", username="shop"),
        "home": add_profile(rt, "pinterest", "home", name="Home"),
    }
