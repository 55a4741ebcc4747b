"""Installed as its owner would: by `make install`, and from a wheel in a home folder; upgraded, and removed again."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from socialpub.cli.install import environment
from tests.endurance.machine import Machine, why_impossible
from tests.support.wheel import build_wheel

ROOT = Path(__file__).parents[2]
HIDDEN = ("/root", "/home", "/tmp", str(ROOT))
"""What no service sees, and the checkout: nothing that is installed may lead there."""
HOME = Path("home/ada")
WHY = why_impossible()

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(WHY is not None, reason=f"no machine to install on: {WHY}")]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    try:
        machine = Machine(tmp_path / "machine")
    except OSError as error:
        pytest.skip(f"no machine to install on: {error}")
    yield machine
    machine.end()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def needs_a_python_that_a_service_can_run() -> None:
    if (
        environment.choose_interpreter().copied_from is not None
        and not (Path("/usr/bin") / environment.PYTHON_NAME).exists()
    ):
        pytest.skip(f"Python is in {sys.base_prefix}, and this machine has no other Python of its version")


def findings(machine: Machine) -> dict[str, str]:
    done = machine.try_to("socialpub", "doctor", "--json", hidden=HIDDEN)
    assert done.stdout, done.stderr
    return {finding["subject"]: finding["level"] for finding in json.loads(done.stdout)}


def make(machine: Machine, target: str) -> str:
    return machine.run("make", "-C", ROOT, target)


def test_make_install_makes_a_service_that_needs_nothing_else(machine: Machine) -> None:
    needs_a_python_that_a_service_can_run()
    make(machine, "install")
    assert machine.owner("/etc/socialpub") == "root:socialpub 750"
    assert machine.owner("/etc/socialpub/config.toml") == "root:socialpub 640"
    assert machine.owner("/var/lib/socialpub") == "socialpub:socialpub 700"
    assert machine.owner("/var/lib/socialpub/secret.key") == "socialpub:socialpub 600"
    assert machine.owner("/opt/socialpub/.venv/bin/socialpub") == "root:root 755"
    assert machine.told_systemd() == ["daemon-reload"], "it is its owner who starts it"
    assert machine.run("getent", "passwd", "socialpub").strip().endswith("/usr/sbin/nologin")

    found = findings(machine)
    assert {found[name] for name in ("configuration", "data_dir", "secret.key", "libmagic")} == {"ok"}
    machine.run("socialpub", "admin", "create-key", "first", hidden=HIDDEN)
    assert machine.run("find", "/var/lib/socialpub", "!", "-user", "socialpub") == ""
    ada = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
    assert "--config" in machine.run(*ada, "socialpub", "--help", hidden=HIDDEN)
    refused = machine.try_to(*ada, "socialpub", "doctor", hidden=HIDDEN)
    assert "Run `sudo socialpub doctor`." in refused.stdout


def test_a_second_run_upgrades_in_place_and_starts_again_what_ran(machine: Machine) -> None:
    needs_a_python_that_a_service_can_run()
    make(machine, "install")
    config = machine.root / "etc/socialpub/config.toml"
    config.write_text(config.read_text() + "# mine\n")
    before = config.read_text(), (machine.root / "var/lib/socialpub/secret.key").read_bytes()
    machine.told_systemd()

    machine.runs("socialpub-web.socket", "socialpub-web.service", "socialpub-worker.service")
    assert "Restart socialpub-web.socket, socialpub-web.service" in make(machine, "install")
    again = ["start socialpub-web.service", "start socialpub-worker.service"]
    stopped = ["stop socialpub-worker.service", "stop socialpub-web.service"]
    assert machine.told_systemd() == [*stopped, *again], "the socket stays open, and nothing else is touched"
    assert (config.read_text(), (machine.root / "var/lib/socialpub/secret.key").read_bytes()) == before

    config.write_text(config.read_text().replace("127.0.0.1:8000", "0.0.0.0:9000"))
    machine.run("socialpub", "install-service")
    told = machine.told_systemd()
    assert told.index("stop socialpub-web.service") < told.index("restart socialpub-web.socket")
    assert told.index("restart socialpub-web.socket") < told.index("start socialpub-web.service")


def test_what_a_version_adds_is_enabled_and_started_with_what_ran(machine: Machine) -> None:
    """As after an installation by hand of a version that had two services and no socket."""
    needs_a_python_that_a_service_can_run()
    (machine.root / "etc/systemd/system/socialpub-web.service").write_text("[Service]\n")
    machine.runs("socialpub-web.service", "socialpub-worker.service")
    done = machine.try_to("make", "-C", ROOT, "install")
    assert done.returncode == 0, done.stderr
    assert "/etc/systemd/system/socialpub-web.service overrides the unit of this version" in done.stderr
    assert machine.told_systemd() == [
        "daemon-reload",
        "enable socialpub-backup.timer socialpub-web.socket",
        "stop socialpub-worker.service",
        "stop socialpub-web.service",
        "start socialpub-backup.timer",
        "start socialpub-web.socket",
        "start socialpub-web.service",
        "start socialpub-worker.service",
    ]


def test_a_configuration_that_the_new_version_refuses_stops_nothing(machine: Machine) -> None:
    needs_a_python_that_a_service_can_run()
    make(machine, "install")
    link = machine.root / "opt/socialpub/.venv"
    before = link.readlink()
    # As if the key had meant something to the version in use.
    version = link.parent / before / "bin" / "socialpub"
    version.write_text("#!/bin/sh\nexit 0\n")
    config = machine.root / "etc/socialpub/config.toml"
    config.write_text(config.read_text() + "[publishing]\nspeed = 3\n")
    machine.told_systemd()
    machine.runs("socialpub-web.service", "socialpub-worker.service")
    refused = machine.try_to("make", "-C", ROOT, "install")
    assert refused.returncode
    assert "does not accept the configuration" in refused.stderr
    assert "publishing.speed" in refused.stderr
    assert link.readlink() == before
    assert machine.told_systemd() == []


def test_uninstalling_leaves_configuration_and_data_and_a_way_back(machine: Machine) -> None:
    needs_a_python_that_a_service_can_run()
    make(machine, "install")
    key = (machine.root / "var/lib/socialpub/secret.key").read_bytes()
    machine.told_systemd()
    machine.run("socialpub", "uninstall-service")
    assert machine.told_systemd()[0].startswith("disable --now socialpub-")
    for gone in ("opt/socialpub", "usr/local/bin/socialpub", "usr/local/lib/systemd/system/socialpub-web.service"):
        assert not (machine.root / gone).exists()
    assert machine.owner("/etc/socialpub/config.toml") == "root:socialpub 640"
    again = machine.try_to("make", "-C", ROOT, "install")
    assert "The service is not running. Start it: sudo systemctl enable --now socialpub-web.service" in again.stderr
    assert (machine.root / "var/lib/socialpub/secret.key").read_bytes() == key
    assert findings(machine)["data_dir"] == "ok"


def test_a_package_unpacked_is_made_a_service_by_its_own_command(machine: Machine) -> None:
    needs_a_python_that_a_service_can_run()
    machine.run("make", "-C", ROOT, "install", "DESTDIR=/var/package")
    assert machine.told_systemd() == []
    assert machine.try_to("getent", "passwd", "socialpub").returncode
    machine.run("cp", "-a", "/var/package/.", "/")
    machine.run("/opt/socialpub/.venv/bin/socialpub", "install-service")
    assert machine.owner("/etc/socialpub/config.toml") == "root:socialpub 640"
    assert machine.owner("/var/lib/socialpub") == "socialpub:socialpub 700"
    assert findings(machine)["secret.key"] == "ok"


def test_a_backup_of_another_machine_is_restored_by_the_lines_that_refusals_name(machine: Machine) -> None:
    """The new installation was started once: it has a secret.key and an empty database."""
    needs_a_python_that_a_service_can_run()
    make(machine, "install")
    original = ("/opt/socialpub/.venv/bin/socialpub", "--config", "/srv/original/config.toml")
    machine.run("mount", "-t", "tmpfs", "none", "/srv")
    machine.run(original[0], "init", "/srv/original")
    machine.run(*original, "admin", "create-key", "of the original")
    machine.run(*original, "backup", "/srv/last.copy")
    machine.run("chown", "socialpub:", "/srv/last.copy")
    machine.run("socialpub", "admin", "list-keys")

    def refused() -> str:
        """The line that the refusal names, with the file in it."""
        done = machine.try_to("socialpub", "restore", "/srv/last.copy")
        assert done.returncode == 1, done.stderr
        (line,) = re.findall("`sudo ([^`]+)`", done.stderr)
        return line.replace(" FILE ", " /srv/original/data/secret.key ")

    line = refused()
    assert line.startswith("install --owner=socialpub --mode=600 ")
    # As somebody does who copies it without looking at owners.
    machine.run("rm", "/var/lib/socialpub/secret.key")
    machine.run("cp", "/srv/original/data/secret.key", "/var/lib/socialpub/secret.key")
    own = refused()
    assert own == "chown socialpub: /var/lib/socialpub/secret.key"
    machine.run(*own.split())
    machine.run("socialpub", "restore", "/srv/last.copy")
    assert "of the original" in machine.run("socialpub", "admin", "list-keys")
    assert len([*(machine.root / "var/lib/socialpub").glob("socialpub.db.new-*")]) == 1
    machine.run("rm", "-r", "/var/lib/socialpub/socialpub.db", "/var/lib/socialpub/media")
    machine.run(*line.split())
    machine.run("socialpub", "restore", "/srv/last.copy")


# --- a wheel, in an environment of a tool -----------------------------------------------------------------------------


def test_a_wheel_in_a_home_folder_becomes_a_service_that_never_looks_there(machine: Machine, wheel: Path) -> None:
    needs_a_python_that_a_service_can_run()
    program = install_tool(machine, wheel, Path(sys.executable).resolve())
    said = machine.run(program, "install-service", "--dry-run")
    assert not (machine.root / "opt/socialpub").exists()
    assert machine.run(program, "install-service") == said
    machine.run("rm", "-r", "/home/ada")
    found = findings(machine)
    assert {found[name] for name in ("configuration", "data_dir", "secret.key", "libmagic")} == {"ok"}
    asked = machine.run("socialpub", "config", "--example", hidden=HIDDEN)
    assert asked.strip() == (ROOT / "config.example.toml").read_text().strip()


def test_a_python_in_a_home_folder_comes_along(machine: Machine, wheel: Path) -> None:
    system = Path("/usr/bin") / environment.PYTHON_NAME
    if not system.exists() or not Path("/usr/lib", environment.PYTHON_NAME, "os.py").exists():
        pytest.skip(f"there is no {system} to put into a home folder")
    home = machine.root / HOME / "python"
    (home / "bin").mkdir(parents=True)
    shutil.copy(machine.root / "usr/bin" / environment.PYTHON_NAME, home / "bin")
    machine.run("cp", "-a", f"/usr/lib/{environment.PYTHON_NAME}", f"/{HOME}/python/lib-as-it-was")
    (home / "lib").mkdir()
    (home / "lib-as-it-was").rename(home / "lib" / environment.PYTHON_NAME)
    program = install_tool(machine, wheel, Path("/") / HOME / "python/bin" / environment.PYTHON_NAME)
    for folder in ("usr/bin", "usr/local/bin"):
        (machine.root / folder / environment.PYTHON_NAME).unlink(missing_ok=True)
    assert f"with a copy of /{HOME}/python" in machine.run(program, "install-service")
    machine.run("rm", "-r", "/home/ada")
    machine.run("socialpub", "admin", "create-key", "first", hidden=HIDDEN)
    prefix = machine.run("/opt/socialpub/.venv/bin/python", "-c", "import sys; print(sys.base_prefix)").strip()
    assert Path(prefix).is_relative_to("/opt/socialpub/environments")


def install_tool(machine: Machine, wheel: Path, python: Path) -> Path:
    """What `uv tool install` leaves: an environment in a home, and a link to its command; nothing is fetched."""
    tool = Path("/") / HOME / ".local/share/uv/tools/socialpub"
    machine.run(python, "-m", "venv", "--without-pip", tool)
    site = machine.root / str(tool).lstrip("/") / "lib" / environment.PYTHON_NAME / "site-packages"
    environment.copy_packages(
        [package for package in environment.needed_packages() if package.name != "socialpub"], site
    )
    (machine.root / "home/wheel").mkdir()
    moved = shutil.copy(wheel, machine.root / "home/wheel")
    machine.run(
        sys.executable, "-m", "pip", "--python", tool / "bin/python", "install", "--quiet", "--no-index", "--no-deps",
        f"/home/wheel/{Path(moved).name}",
    )  # fmt: skip
    command = Path("/") / HOME / ".local/bin/socialpub"
    machine.run("mkdir", "-p", command.parent)
    machine.run("ln", "-s", tool / "bin/socialpub", command)
    machine.run("chmod", "700", f"/{HOME}")
    return command
