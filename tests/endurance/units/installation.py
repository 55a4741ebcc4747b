"""socialpub as the first lines of its web unit install it, on a machine of its own."""

import re
import shutil
import sys
import sysconfig
from pathlib import Path

import httpx2

from socialpub.cli.sandbox import provider_lines
from tests.e2e.caller import Caller, SandboxControl
from tests.e2e.processes import until
from tests.endurance.units.machine import Machine

CHECKOUT = Path(__file__).parents[3]
PROGRAM = "/opt/socialpub/.venv/bin/socialpub"
CONFIG = "/etc/socialpub/config.toml"
URL = "http://127.0.0.1:8000"
SANDBOX_URL = "http://127.0.0.1:8100"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = "/opt/packages"
"""Where the machine sees what is installed here."""
BINDS = [(Path(sysconfig.get_path("purelib")), PACKAGES)]


def lacking() -> str | None:
    return None if python() else f"there is no Python {VERSION} outside of home folders, which services may not enter"


def python() -> Path | None:
    """A Python like this one that a service may use."""
    for found in (Path(sys.executable).resolve(), Path(f"/usr/bin/python{VERSION}")):
        if found.exists() and not found.is_relative_to("/root") and not found.is_relative_to("/home"):
            return found
    return None


def lay_out(machine: Machine) -> None:
    """The checkout in /opt/socialpub, with its environment in .venv."""
    checkout = machine.files / "opt" / "socialpub"
    venv = checkout / ".venv"
    packages = venv / "lib" / f"python{VERSION}" / "site-packages"
    for folder in (venv / "bin", packages):
        folder.mkdir(parents=True)
    (machine.files / PACKAGES.lstrip("/")).mkdir()
    used = python()
    assert used is not None
    (venv / "bin" / "python").symlink_to(used)
    (venv / "pyvenv.cfg").write_text(f"home = {used.parent}\ninclude-system-site-packages = false\n")
    (venv / "bin" / "socialpub").write_text(
        "#!/opt/socialpub/.venv/bin/python\nimport sys\nfrom socialpub.cli import main\nsys.exit(main())\n"
    )
    (venv / "bin" / "socialpub").chmod(0o755)
    (packages / "packages.pth").write_text(f"{PACKAGES}\n")
    shutil.copytree(CHECKOUT / "socialpub", packages / "socialpub")
    shutil.copytree(CHECKOUT / "systemd", checkout / "systemd")
    shutil.copy(CHECKOUT / "config.example.toml", checkout)


class InstalledUnits:
    """`key` opens the API; `profile` is an account on X."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.x = SandboxControl(SANDBOX_URL, "x")
        self.key = self.profile = ""

    def install(self) -> None:
        """Do what the first lines of the web unit say, word for word."""
        steps = re.findall(r"^#   (sudo\S* .*)", (CHECKOUT / "systemd" / "socialpub-web.service").read_text(), re.M)
        for step in steps:
            if step.startswith("sudoedit"):
                self.configure()
            else:
                step = re.sub(r"^sudo --user=(\w+)", r"runuser -u \1 --", step).removeprefix("sudo ")
                self.machine.run("bash", "-c", f"cd /opt/socialpub && {step}")

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
        done = self.machine.run(
            "runuser", "-u", "socialpub", "--", PROGRAM, "--config", CONFIG, *arguments, stdin=stdin
        )
        return done.stdout.strip()

    def caller(self) -> Caller:
        return Caller(URL, self.key)

    def close(self) -> None:
        self.x.close()

    def _answers(self, url: str) -> bool:
        try:
            return httpx2.get(url, trust_env=False).status_code == 200
        except httpx2.TransportError:
            return False
