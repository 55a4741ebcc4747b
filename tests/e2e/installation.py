"""The installation of a story: a folder with a configuration, a sandbox on a port, and the appliance's own processes.

Nothing here reaches into the appliance: it is configured by its file, asked over HTTP, managed by its commands and
stopped by signals, as its owner would.
"""

import http.client
import json
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from socialpub.cli.sandbox import provider_lines
from socialpub.core.settings import template
from tests.e2e.caller import Caller, SandboxControl
from tests.e2e.processes import PROGRAM, STAND_INS, Process, until
from tests.support.ports import free_port

FAST_CLOCK = Path(__file__).parent / "fast_clock"
PACE = 20.0
PEOPLE = ("ada", "ben", "cleo", "dan")
PLENTY = 10**6
START_SECONDS = 120.0


class Installation:
    """`url` is the appliance's address; `x`, `tiktok`, … are what the sandbox saw. `profiles` are those of
    `PEOPLE` on X, in their order; `profile_on` has one on each network, of the first of them.

    The hours of all its processes pass `pace` times as fast, and a call to a network is given up after
    `deadline_seconds`; a web process that stops waits `idle_grace_seconds` for its idle connections
    (`fast_clock/sitecustomize.py`). With a pace of 0 everything is as the owner starts it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        pace: float = PACE,
        deadline_seconds: float = 10.0,
        idle_grace_seconds: float | None = None,
        settings: str = "",
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "config.toml"
        self.data = folder / "data"
        self.url = f"http://127.0.0.1:{free_port()}"
        self.sandbox_url = f"http://127.0.0.1:{free_port()}"
        self.x, self.tiktok, self.pinterest, self.bluesky = (
            SandboxControl(self.sandbox_url, name) for name in ("x", "tiktok", "pinterest", "bluesky")
        )
        self.networks: tuple[str, ...] = ("x", "tiktok", "pinterest")
        """Those with accounts. `add_bluesky` adds one."""
        self.within: Sequence[str] = ()
        """A command that becomes each of its processes, such as one that enters a namespace."""
        self.key = ""
        self.profiles: list[str] = []
        self.profile_on: dict[str, str] = {}
        # A variable of the surroundings must not turn this into another appliance.
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SOCIALPUB_")}
        if pace:
            path = os.pathsep.join(filter(None, (str(FAST_CLOCK), self.env.get("PYTHONPATH"))))
            self.env |= {"PYTHONPATH": path, "FAST_CLOCK_PACE": str(pace), "FAST_CLOCK_SINCE": str(time.time())}
            self.env |= {"FAST_CLOCK_SINCE_MONOTONIC": str(time.monotonic())}
            self.env |= {"FAST_CLOCK_DEADLINE_SECONDS": str(deadline_seconds)}
            # Ten minutes of looking at an account are half a minute even on the fast clock.
            self.env |= {"SOCIALPUB_PUBLISHING__RESEND_AFTER": "2m"}
            ahead = folder / "clock_ahead"
            ahead.write_bytes(struct.pack("d", 0.0))
            self.env |= {"FAST_CLOCK_AHEAD_FILE": str(ahead)}
            if idle_grace_seconds is not None:
                self.env |= {"FAST_CLOCK_IDLE_GRACE_SECONDS": str(idle_grace_seconds)}
        self._processes: list[Process] = []
        self._callers: list[Caller] = []
        self.configure(settings)

    def configure(self, settings: str = "") -> None:
        """Write the configuration; `settings` are sections of it."""
        self.config.write_text(
            f'base_url = "{self.url}"\nlisten = "{self.url.removeprefix("http://")}"\ndata_dir = "data"\n\n'
            f"[rate_limit]\nrequests_per_minute = 1000000\n\n{provider_lines(self.sandbox_url)}\n{settings}\n"
        )

    def create(self) -> None:
        """Make the data folder, and nothing else."""
        config = self.config.read_text()
        self.config.unlink()
        template.create(self.folder)
        self.config.write_text(config)

    def prepare(self) -> None:
        """Make the data folder, a key and the profiles, by the commands that an owner uses."""
        self.create()
        sandbox = self.sandbox()
        self.key = self.admin("create-key", "installation")
        self.profiles = [self.admin("import-profile", "x", stdin=self.x.grant(name)) for name in PEOPLE]
        self.profile_on = {"x": self.profiles[0]}
        for control in (self.tiktok, self.pinterest):
            granted = control.grant(PEOPLE[0])
            self.profile_on[control.network] = self.admin("import-profile", control.network, stdin=granted)
        assert sandbox.stop() == 0
        made = {"key": self.key, "profiles": self.profiles, "profile_on": self.profile_on}
        self._prepared.write_text(json.dumps(made))

    def remember_preparation(self) -> bool:
        """Take up what `prepare` made in this folder before, in any process. Return whether it did."""
        if not self._prepared.exists():
            return False
        made = json.loads(self._prepared.read_text())
        self.key, self.profiles, self.profile_on = made["key"], made["profiles"], made["profile_on"]
        return True

    @property
    def _prepared(self) -> Path:
        return self.folder / "prepared.json"

    def copy_from(self, other: "Installation") -> None:
        """Begin with what `other` prepared."""
        shutil.copytree(other.data, self.data, ignore=shutil.ignore_patterns("run", "queue.db*"))
        shutil.copy(other.journal, self.journal)
        self.key, self.profiles, self.profile_on = other.key, other.profiles, other.profile_on

    def add_bluesky(self) -> None:
        """Enable Bluesky, connect the first of the people there, and take a key that covers all networks. The sandbox
        runs, the appliance not yet."""
        three, all_networks = (provider_lines(self.sandbox_url, all_networks=more) for more in (False, True))
        with self.config.open("a") as config:
            config.write(all_networks.removeprefix(three))
        self.bluesky.tell("settings", limits=dict.fromkeys(("calls", "hour", "day"), PLENTY))
        self.bluesky.tell("settings", limits=dict.fromkeys(("sign_ins", "sign_ins_of_day"), PLENTY))
        self.networks = (*self.networks, "bluesky")
        self.key = self.admin("create-key", "all networks", "--provider", "all")
        self.profile_on["bluesky"] = self.sign_in_at_bluesky(PEOPLE[0])

    def sign_in_at_bluesky(self, username: str) -> str:
        """Connect an account with its app password, as its owner does. It is created if it does not exist."""
        handle = f"{username}.test"
        accounts = {account["username"]: account for account in self.bluesky.show()["accounts"]}
        account = accounts.get(handle) or self.bluesky.tell("accounts", username=username)
        (password,) = account["app_passwords"].values()
        return self.admin(
            "connect-profile", "bluesky", "--handle", handle, "--password-file", "-", stdin=f"{password}\n"
        )

    @property
    def board_id(self) -> str:
        """A board of the first of the people, on Pinterest."""
        shown = self.pinterest.show()
        (owner,) = (account["id"] for account in shown["accounts"] if account["username"] == PEOPLE[0])
        boards = (board for board in shown["boards"] if board["owner_id"] == owner)
        return str(next(boards)["id"])

    def control(self, network: str) -> SandboxControl:
        controls = (self.x, self.tiktok, self.pinterest, self.bluesky)
        return next(control for control in controls if control.network == network)

    def share_clock(self, other: "Installation") -> None:
        """The processes of both agree about the time."""
        self.env |= {name: value for name, value in other.env.items() if name.startswith("FAST_CLOCK_")}

    def now(self) -> datetime:
        """The time by the fast clock of its processes."""
        since, pace = float(self.env["FAST_CLOCK_SINCE"]), float(self.env["FAST_CLOCK_PACE"])
        return datetime.fromtimestamp(since + (time.time() - since) * pace + self._ahead_seconds(), UTC)

    def forward(self, seconds: float) -> None:
        """Time passes for all its processes."""
        ahead = struct.pack("d", self._ahead_seconds() + seconds)
        with Path(self.env["FAST_CLOCK_AHEAD_FILE"]).open("r+b", buffering=0) as file:
            file.write(ahead)

    def _ahead_seconds(self) -> float:
        return float(struct.unpack("d", Path(self.env["FAST_CLOCK_AHEAD_FILE"]).read_bytes())[0])

    @property
    def journal(self) -> Path:
        return self.folder / "sandbox.jsonl"

    # --- processes ---------------------------------------------------------------------------------------------------

    def sandbox(self) -> Process:
        listen = self.sandbox_url.removeprefix("http://")
        arguments = ("sandbox", "--listen", listen, "--journal", str(self.journal))
        process = self._begin("sandbox", *arguments, program=STAND_INS)
        self._wait_for(process, lambda: _answers(self.x.show))
        # What a network allows in a while is not what these stories are about, and X's own refusal of a text that it
        # has already would hide a second call.
        self.x.tell("settings", limits={"POST /2/tweets": PLENTY}, duplicate_window_seconds=0)
        endpoints = ("creator_info", "video_init", "inbox_init", "content_init", "status_fetch")
        self.tiktok.tell(
            "settings",
            limits=dict.fromkeys(endpoints, PLENTY),
            posts_per_day=PLENTY,
            pending_shares_per_day=PLENTY,
            moderation_seconds=0,
            public_urls_only=False,
            all_urls_verified=True,
        )
        self.pinterest.tell("settings", limits={"org_read": PLENTY, "org_write": PLENTY})
        return process

    def start(self, role: str) -> Process:
        """`serve`, `web` or `worker`, up and working."""
        process = self.begin(role)
        self.wait_until_up(process, role)
        return process

    def begin(
        self, role: str, within: Sequence[str] = (), terminal: int | None = None, handed: Sequence[int] = ()
    ) -> Process:
        """The same without waiting for it. `within` is a command that becomes the process, `handed` are descriptors."""
        config = ("--config", str(self.config))
        return self._begin(role, *config, role, within=within, terminal=terminal, handed=handed)

    def wait_until_up(self, process: Process, role: str) -> None:
        if role in ("web", "serve"):
            self._wait_for(process, lambda: _answers(self._ask_health))
        if role in ("worker", "serve"):
            self._wait_for(process, lambda: "the worker is up" in process.output)

    def admin(self, *arguments: str, stdin: str = "") -> str:
        """A command of `socialpub admin`; what it printed."""
        return self.run("admin", *arguments, stdin=stdin).stdout.strip()

    def run(self, *arguments: str, stdin: str = "", code: int = 0) -> "subprocess.CompletedProcess[str]":
        """A command that ends; it must end with `code`."""
        done = subprocess.run(
            [*self.within, *PROGRAM, "--config", str(self.config), *arguments],
            input=stdin,
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done

    def caller(self) -> Caller:
        """A caller with the installation's key; the same one until `fresh_caller`."""
        return self._callers[-1] if self._callers else self.fresh_caller()

    def fresh_caller(self) -> Caller:
        self._callers.append(Caller(self.url, self.key))
        return self._callers[-1]

    def close(self) -> None:
        for process in self._processes:
            process.end()
        for caller in self._callers:
            caller.close()
        for control in (self.x, self.tiktok, self.pinterest, self.bluesky):
            control.close()

    def _begin(self, name: str, *arguments: str, **how: Any) -> Process:
        log = self.folder / f"{name}.log"
        within = (*self.within, *how.pop("within", ()))
        process = Process(*arguments, log=log, env=self.env, within=within, **how)
        self._processes.append(process)
        return process

    def _ask_health(self) -> None:
        # By a connection that is not kept: a stop waits for idle ones. A new httpx2 reads all certificates, every time.
        with closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)) as connection:
            connection.request("GET", "/healthz")
            connection.getresponse().read()

    def _wait_for(self, process: Process, up: Callable[[], object]) -> None:
        until(lambda: up() or not process.running, f"{process.log.stem} is up", START_SECONDS)
        assert process.running, f"{process.log.stem} ended at its start:\n{process.output}"


def _answers(ask: Callable[[], object]) -> bool:
    """Whether somebody listens there."""
    try:
        ask()
    except (httpx2.ConnectError, ConnectionRefusedError):
        return False
    return True
