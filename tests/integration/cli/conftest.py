"""A terminal beside a fresh appliance, whose X is the sandbox."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from socialpub import scaffold
from socialpub.cli import main
from socialpub.cli.appliance import Appliance
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import World, create_app
from tests.clock import HandClock
from tests.transport import SandboxTransport

SANDBOX = "http://sandbox.test"


class Terminal:
    """`terminal("admin", "list-keys")` runs a command as its user would; the folder stands as `init` leaves it."""

    def __init__(self, folder: Path, clock: HandClock, world: World) -> None:
        self.folder = folder
        self.clock = clock
        self.world = world
        scaffold.create(folder)
        self.config = folder / "config.toml"
        x = '[providers.x]\nclient_id = "app"\nclient_secret = "app-secret"\n'
        self.config.write_text(f'{self.config.read_text()}\n{x}api_url = "{SANDBOX}/x"\n')

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(
            main, ["--config", str(self.config), *arguments], input=stdin, obj=self._appliance(), catch_exceptions=False
        )

    def open(self) -> Any:
        """The same appliance's parts, for what a test wants to see or do beside the terminal."""
        appliance = self._appliance()
        appliance.config = self.config
        return appliance.open("test")

    def grant(self, username: str = "demo", **how: Any) -> str:
        """Tokens for an account on the sandbox, as JSON for `import-profile`."""
        return json.dumps(self.world.x.grant(username, **how))

    def connect(self, username: str = "demo") -> str:
        """The id of a freshly connected profile."""
        return self("admin", "import-profile", "x", stdin=self.grant(username)).stdout.strip()

    def _appliance(self) -> Appliance:
        http = Http(mounts={SANDBOX: SandboxTransport(create_app(self.world))})
        return Appliance(parts={"clock": self.clock, "http": http})


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def terminal(tmp_path: Path, clock: HandClock) -> Iterator[Terminal]:
    root = logging.getLogger()
    before = root.handlers[:], root.level, logging.getLogger("socialpub").level
    world = World(clock)
    world.instant_faults = True
    yield Terminal(tmp_path / "home", clock, world)
    # The commands' log goes to a stream that ends with them.
    root.handlers[:], root.level = before[0], before[1]
    logging.getLogger("socialpub").setLevel(before[2])


@pytest.fixture
def rt(terminal: Terminal) -> Iterator[Runtime]:
    with terminal.open() as rt:
        yield rt
