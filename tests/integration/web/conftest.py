from typing import Any

import pytest

from socialpub.web.http import server
from tests.integration.web.wire import HANG_SECONDS
from tests.support.ports import free_port
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def appliance_options(network: ScriptedNetwork) -> dict[str, Any]:
    return {"providers": {"x": network}, "listen": f"127.0.0.1:{free_port()}"}


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stop wait only for requests."""
    monkeypatch.setattr(server, "ADMIT_SECONDS", 0.02)
    monkeypatch.setattr(server, "IDLE_GRACE_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(server, "BUSY_GRACE_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(server, "_POLL_SECONDS", 0.005)
