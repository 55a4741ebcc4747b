"""socialpub as `install-service` makes it a service, on a machine of its own."""

import re
import sys
from pathlib import Path

import httpx2

from socialpub.cli.sandbox import provider_lines
from tests.e2e.caller import Caller, SandboxControl
from tests.e2e.processes import until
from tests.endurance.units.machine import Machine

PROGRAM = str(Path(sys.executable).with_name("socialpub"))
"""This checkout's; root may use it in there. The services have one of their own."""
COMMAND = "/usr/local/bin/socialpub"
CONFIG = "/etc/socialpub/config.toml"
URL = "http://127.0.0.1:8000"
SANDBOX_URL = "http://127.0.0.1:8100"


class InstalledUnits:
    """`key` opens the API; `profile` is an account on X."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.x = SandboxControl(SANDBOX_URL, "x")
        self.key = self.profile = ""

    def install(self) -> None:
        """Do what `install-service` says, word for word."""
        said = self.machine.run(PROGRAM, "install-service").stderr
        self.configure()
        (start,) = re.findall(r"Start it: sudo (.*)", said)
        self.machine.run("bash", "-c", start)

    def configure(self, settings: str = "") -> None:
        text = (
            f'base_url = "{URL}"\nlisten = "127.0.0.1:8000"\ndata_dir = "/var/lib/socialpub"\n'
            f"[rate_limit]\nrequests_per_minute = 1000000\n{provider_lines(SANDBOX_URL)}\n{settings}\n"
        )
        self.machine.run("tee", CONFIG, stdin=text)

    def start_sandbox(self) -> None:
        self.machine.run(
            *("systemd-run", "--unit=sandbox", "--setenv=HOME=/root", PROGRAM, "sandbox"),
            *("--listen", SANDBOX_URL.removeprefix("http://"), "--journal", "/var/tmp/sandbox.jsonl"),
        )
        until(lambda: self._answers(f"{SANDBOX_URL}/_control/x"), "the sandbox is up")

    def connect(self) -> None:
        self.key = self.command("admin", "create-key", "test")
        self.profile = self.command("admin", "import-profile", "x", stdin=self.x.grant("ada"))

    def command(self, *arguments: str, stdin: str = "") -> str:
        """The machine's `socialpub`, by root."""
        return self.machine.run(COMMAND, *arguments, stdin=stdin).stdout.strip()

    def caller(self) -> Caller:
        return Caller(URL, self.key)

    def close(self) -> None:
        self.x.close()

    def _answers(self, url: str) -> bool:
        try:
            return httpx2.get(url, trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False
