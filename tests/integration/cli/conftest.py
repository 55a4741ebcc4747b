"""A terminal beside a fresh appliance, whose X is the sandbox."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
from socialpub.core.settings import template
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.sandbox import create_app
from tests.stand_ins import World
from tests.support.hand_clock import HandClock
from tests.support.sandbox_transport import SandboxTransport

SANDBOX = "http://sandbox.test"
NETWORKS = f"""
[providers.x]
client_id = "app"
client_secret = "app-secret"
api_url = "{SANDBOX}/x"
authorize_url = "{SANDBOX}/x/i/oauth2/authorize"

[providers.tiktok]
api_url = "{SANDBOX}/tiktok"

[providers.pinterest]
client_id = "app"
client_secret = "app-secret"
api_url = "{SANDBOX}/pinterest/v5"
"""


class Terminal:
    """`terminal("admin", "list-keys")` runs a command in a folder that `init` created."""

    def __init__(self, folder: Path, clock: HandClock, world: World) -> None:
        self.folder = folder
        self.clock = clock
        self.world = world
        template.create(folder)
        self.config = folder / "config.toml"
        self.config.write_text(f"{self.config.read_text()}\n{NETWORKS}")
        self.parts: dict[str, Any] = {}
        """More of what a command is built with."""
        self.mounts: dict[str, Any] = {}
        """What answers at other addresses than the sandbox's."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(
            main, ["--config", str(self.config), *arguments], input=stdin, obj=self._context(), catch_exceptions=False
        )

    def success(self, *arguments: str, stdin: str | None = None) -> Result:
        done = self(*arguments, stdin=stdin)
        assert done.exit_code == 0, done.output
        return done

    def refusal(self, *arguments: str, stdin: str | None = None) -> str:
        """Return the message of a command that fails without a result."""
        done = self(*arguments, stdin=stdin)
        assert (done.exit_code, done.stdout) == (1, ""), done.output
        return done.stderr

    def elsewhere(self, name: str = "other") -> "Terminal":
        """Return another appliance with the same networks and no secret.key."""
        other = Terminal(self.folder.parent / name, self.clock, self.world)
        (other.folder / "data" / "secret.key").unlink()
        return other

    def open(self, role: str = "test") -> Any:
        """Open the runtime of the same appliance."""
        context = self._context()
        context.config = self.config
        return context.open(role)

    def grant(self, username: str = "demo", network: str = "x", **how: Any) -> str:
        """Return tokens for a sandbox account, as JSON for `import-profile`."""
        return json.dumps(self.world.networks[network].grant(username, **how))  # type: ignore[attr-defined]

    def connect(self, username: str = "demo", network: str = "x") -> str:
        """Return the id of a new profile."""
        return self("admin", "import-profile", network, stdin=self.grant(username, network)).stdout.strip()

    def _context(self) -> CommandContext:
        http = Http(mounts={SANDBOX: SandboxTransport(create_app(self.world)), **self.mounts})
        return CommandContext(parts={"clock": self.clock, "http": http, **self.parts})


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
