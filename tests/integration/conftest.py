"""An appliance over a temporary folder. A directory or a file that needs another one overrides `appliance_options`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from socialpub.db import appliance_state
from socialpub.ops.backup import create
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World
from tests.support.appliance import add_profile, open_appliance
from tests.support.consent_browser import Browser
from tests.support.decoding import decode_here
from tests.support.hand_clock import HandClock
from tests.support.sandbox_http import providers_of_the_sandbox
from tests.support.scripted_network import ScriptedNetwork


@pytest.fixture
def network() -> ScriptedNetwork:
    """A simulated X."""
    return ScriptedNetwork()


@pytest.fixture
def three_networks() -> dict[str, ScriptedNetwork]:
    return {name: ScriptedNetwork() for name in ("x", "tiktok", "pinterest")}


@pytest.fixture
def sandbox_options(http: Http) -> dict[str, Any]:
    """The real adapters, and the sandbox for their networks."""
    return {"http": http, "networks": providers_of_the_sandbox()}


@pytest.fixture
def appliance_options(network: ScriptedNetwork) -> dict[str, Any]:
    """The arguments of `open_appliance` other than folder and clock."""
    return {"providers": {"x": network}}


@pytest.fixture
def appliance_folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def rt(appliance_folder: Path, clock: HandClock, appliance_options: dict[str, Any]) -> Iterator[Runtime]:
    rt = open_appliance(appliance_folder, clock, **appliance_options)
    yield rt
    rt.close()


@pytest.fixture
def profile(rt: Runtime) -> str:
    return add_profile(rt)


@pytest.fixture
def browser(world: World) -> Browser:
    return Browser(world)


@pytest.fixture
def well(rt: Runtime, tmp_path: Path) -> Callable[[], None]:
    """There is a copy, and the worker reports whenever this is called."""
    create.write_backup(rt, tmp_path / "copy")

    def report() -> None:
        rt.db.write(lambda tx: appliance_state.put(tx, appliance_state.HEARTBEAT, tx.stamp))

    report()
    return report


@pytest.fixture(autouse=True)
def _decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode files in this process, except in tests of the decoder's child."""
    if not request.path.name.startswith("test_decoder") and request.node.get_closest_marker("decoder_child") is None:
        decode_here(monkeypatch)
