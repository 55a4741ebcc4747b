"""Installed as its owner would, by `make install`; upgraded, and removed again."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.endurance.machine import Machine, why_impossible

ROOT = Path(__file__).parents[2]
HIDDEN = ("/root", "/home", "/tmp", str(ROOT))
"""What no service sees, and the checkout: nothing that is installed may lead there."""
WHY = why_impossible()
RUNNING = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(WHY is not None, reason=f"no machine to install on: {WHY}")]


@pytest.fixture(scope="module")
def new_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    try:
        machine = Machine(tmp_path_factory.mktemp("installing") / "machine")
    except OSError as error:
        pytest.skip(f"no machine to install on: {error}")
    yield machine
    machine.end()


@pytest.fixture(scope="module")
def printed(new_machine: Machine) -> str:
    """What the first `make install` prints."""
    return make(new_machine, "install")


@pytest.fixture
def machine(new_machine: Machine, printed: str) -> Iterator[Machine]:
    """A machine with socialpub. Installing takes half a minute, so each story leaves it as installed."""
    config = new_machine.root / "etc/socialpub/config.toml"
    before = config.read_text()
    new_machine.runs()
    new_machine.told_systemd()
    yield new_machine
    config.write_text(before)


def findings(machine: Machine) -> dict[str, str]:
    done = machine.try_to("socialpub", "doctor", "--json", hidden=HIDDEN)
    assert done.stdout, done.stderr
    return {finding["subject"]: finding["level"] for finding in json.loads(done.stdout)}


def make(machine: Machine, target: str) -> str:
    return machine.run("make", "-C", ROOT, target)


def refusal(machine: Machine, *words: str, **environ: str) -> str:
    """Return what `make install` says when it refuses."""
    done = machine.try_to("make", "-C", ROOT, "install", *words, **environ)
    assert done.returncode, done.stdout
    return done.stderr


def test_a_command_of_another_program_is_never_replaced(new_machine: Machine) -> None:
    command = new_machine.root / "usr/local/bin/socialpub"
    command.write_text("#!/bin/sh\n")
    assert "/usr/local/bin/socialpub belongs to another program. Remove it first." in refusal(new_machine)
    assert command.read_text() == "#!/bin/sh\n"
    command.unlink()


def test_make_install_makes_a_service_that_needs_nothing_else(new_machine: Machine, printed: str) -> None:
    machine = new_machine
    assert re.findall(r"^\d\. ", printed, re.MULTILINE) == ["1. ", "2. ", "3. "]
    assert machine.owner("/etc/socialpub") == "root:socialpub 750"
    assert machine.owner("/etc/socialpub/config.toml") == "root:socialpub 640"
    assert machine.owner("/var/lib/socialpub") == "socialpub:socialpub 700"
    assert machine.owner("/var/lib/socialpub/secret.key") == "socialpub:socialpub 600"
    assert machine.owner("/opt/socialpub/.venv/bin/socialpub") == "root:root 755"
    assert machine.told_systemd() == ["daemon-reload"], "it is its owner who starts it"
    assert machine.run("getent", "passwd", "socialpub").strip().endswith("/usr/sbin/nologin")

    found = findings(machine)
    assert {found[name] for name in ("configuration", "data_dir", "secret.key", "libmagic")} == {"ok"}
    empty = machine.try_to("socialpub", "admin", "list-keys", hidden=HIDDEN)
    assert "`sudo socialpub admin create-key NAME`" in empty.stderr
    machine.run("socialpub", "admin", "create-key", "first", hidden=HIDDEN)
    assert machine.run("find", "/var/lib/socialpub", "!", "-user", "socialpub") == ""
    assert machine.run("find", ROOT / "socialpub", ROOT / "systemd", "-name", "*.egg-info") == "", (
        "the checkout is as it was"
    )
    assert machine.run("socialpub", "config", "--example", hidden=HIDDEN).strip() == (
        (ROOT / "config.example.toml").read_text().strip()
    )


def test_the_command_runs_as_the_user_of_the_service_and_other_users_need_sudo(machine: Machine) -> None:
    ada = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
    assert "--config" in machine.run(*ada, "socialpub", "--help", hidden=HIDDEN)
    refused = machine.try_to(*ada, "socialpub", "doctor", hidden=HIDDEN)
    assert "Run `sudo socialpub doctor`." in refused.stdout
    calling = machine.try_to("socialpub", "status", hidden=HIDDEN)
    assert "client.toml" in calling.stderr and "/var/lib/socialpub" not in calling.stderr, "root calls as itself"


def test_a_second_run_upgrades_in_place_and_starts_again_what_ran(machine: Machine) -> None:
    config = machine.root / "etc/socialpub/config.toml"
    config.write_text(config.read_text() + "# mine\n")
    before = config.read_text(), (machine.root / "var/lib/socialpub/secret.key").read_bytes()

    machine.runs(*RUNNING)
    assert "To check the installation: sudo socialpub doctor" in make(machine, "install")
    stopped = ["stop socialpub-worker", "stop socialpub-web"]
    assert machine.told_systemd() == [*stopped, "daemon-reload", "restart socialpub-web socialpub-worker"], (
        "the socket stays open, and nothing else is touched"
    )
    assert (config.read_text(), (machine.root / "var/lib/socialpub/secret.key").read_bytes()) == before

    config.write_text(config.read_text().replace("127.0.0.1:8000", "0.0.0.0:9000"))
    make(machine, "install")
    assert machine.told_systemd()[-1] == "restart socialpub-web.socket socialpub-web socialpub-worker"
    unit = machine.root / "usr/local/lib/systemd/system/socialpub-web.socket"
    assert "\nListenStream=0.0.0.0:9000\n" in unit.read_text()


def test_an_upgrade_that_cannot_be_made_stops_nothing_and_changes_nothing_in_use(machine: Machine) -> None:
    environment = machine.root / "opt/socialpub/.venv"
    before = environment.stat().st_ino
    machine.runs(*RUNNING)

    assert "No matching distribution" in refusal(machine, PIP_FIND_LINKS="/nowhere")
    machine.run("mkdir", "/home/ada")
    machine.run("cp", "/usr/bin/python3", "/home/ada/python3")
    assert "services cannot see. Run: sudo make install PYTHON=/usr/bin/python3" in refusal(
        machine, "PYTHON=/home/ada/python3"
    )
    # As if the key had meant something to the version in use.
    (module,) = environment.glob("lib/python3*/site-packages/socialpub/__main__.py")
    code = module.read_text()
    module.write_text("")
    config = machine.root / "etc/socialpub/config.toml"
    config.write_text(config.read_text() + "[publishing]\nspeed = 3\n")
    refused = refusal(machine)
    assert "does not accept the configuration" in refused
    assert "publishing.speed" in refused
    module.write_text(code)

    assert environment.stat().st_ino == before
    assert {path.name for path in environment.parent.iterdir()} == {".venv"}
    assert machine.told_systemd() == []


def test_uninstalling_leaves_configuration_and_data_and_a_way_back(machine: Machine) -> None:
    key = (machine.root / "var/lib/socialpub/secret.key").read_bytes()
    make(machine, "uninstall")
    assert machine.told_systemd()[0].startswith("disable --now socialpub-")
    for gone in ("opt/socialpub", "usr/local/bin/socialpub", "usr/local/lib/systemd/system/socialpub-web.service"):
        assert not (machine.root / gone).exists()
    assert machine.owner("/etc/socialpub/config.toml") == "root:socialpub 640"
    again = make(machine, "install")
    assert "The service is not running. Start it: sudo systemctl enable --now socialpub-web" in again
    assert (machine.root / "var/lib/socialpub/secret.key").read_bytes() == key
    assert findings(machine)["data_dir"] == "ok"


def test_a_backup_of_another_machine_is_restored_by_the_lines_that_refusals_name(machine: Machine) -> None:
    """The new installation was started once: it has a secret.key and an empty database."""
    original = ("/opt/socialpub/.venv/bin/socialpub", "--config", "/srv/original/config.toml")
    machine.run("mount", "-t", "tmpfs", "none", "/srv")
    machine.run(original[0], "init", "/srv/original")
    machine.run(*original, "admin", "create-key", "of the original")
    machine.run(*original, "backup", "/srv/last.copy")
    machine.run("chown", "socialpub:", "/srv/last.copy")
    machine.run("sh", "-c", "rm /var/lib/socialpub/socialpub.db*")
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
