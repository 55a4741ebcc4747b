"""socialpub as `make install` makes it a service, on a machine of its own."""

import re
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2

from socialpub.cli.sandbox import provider_lines
from tests.e2e.caller import Caller, SandboxControl
from tests.e2e.processes import until
from tests.endurance.units.machine import Machine, own_network

ROOT = Path(__file__).parents[3]
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

    def install(self, tree: Path = ROOT) -> None:
        """Do what `make install` says, word for word."""
        said = self.make_install(tree)
        self.configure()
        (start,) = re.findall(r"Start it: sudo (.*)", said)
        self.machine.run("bash", "-c", start)

    def make_install(self, tree: Path = ROOT) -> str:
        return self.machine.run("make", "-C", str(tree), "install").stdout

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

    def type(self, line: str) -> str:
        """A line of the manual or of a remedy, in root's shell."""
        return self.machine.run("bash", "-ec", line).stdout

    def publish(self, text: str) -> str:
        """Publish to X, and return the post's id."""
        with closing(self.caller()) as caller:
            post_id = caller.publish(text, self.profile)
            delivery = caller.delivery(post_id)
        assert delivery["status"] == "published", delivery
        assert self.x.texts().count(text) == 1
        return post_id

    def status(self, post_id: str) -> str:
        with closing(self.caller()) as caller:
            return str(caller.post(post_id)["status"])

    def caller(self) -> Caller:
        return Caller(URL, self.key)

    def close(self) -> None:
        self.x.close()

    def _answers(self, url: str) -> bool:
        try:
            return httpx2.get(url, trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False


@contextmanager
def on_a_new_machine(folder: Path) -> Iterator[InstalledUnits]:
    """Boot a machine that keeps what it needs in `folder`, and install the services there, with an account on X."""
    with own_network():
        box = Machine(folder)
        try:
            box.boot()
            with closing(InstalledUnits(box)) as installed:
                installed.start_sandbox()
                installed.install()
                installed.connect()
                yield installed
        finally:
            box.close()
