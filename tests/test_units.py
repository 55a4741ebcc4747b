"""The systemd units start what exists, and keep a service that goes wrong from taking the machine with it."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from socialpub.cli.main import main
from socialpub.cli.setup import UNITS as UNITS_BY_NAME
from socialpub.core.settings.loader import Settings
from socialpub.db.database import BUSY_SECONDS
from socialpub.media.decoder import client
from socialpub.providers import registry
from socialpub.runtime import WORKERS

FOLDER = Path(__file__).parents[1] / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
LASTING = [unit for unit in UNITS if unit.stem != "socialpub-backup"]
MOST_EXPOSED = 1.5
"""On the scale of `systemd-analyze security`, from 0 to 10."""
MIB = 1024**2


def section(unit: Path, name: str) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # keys are case-sensitive
    parsed.read_string(unit.read_text())
    return parsed[name]


def service(unit: Path) -> configparser.SectionProxy:
    return section(unit, "Service")


def test_the_units_start_commands_that_exist() -> None:
    started = {}
    for unit in UNITS:
        command = service(unit)["ExecStart"]
        match = re.fullmatch(r"/opt/socialpub/\.venv/bin/socialpub --config /etc/socialpub/config\.toml (\w+)", command)
        assert match, unit.name
        started[unit.name] = match[1]
    assert started == {
        "socialpub-backup.service": "backup",
        "socialpub-web.service": "web",
        "socialpub-worker.service": "worker",
    }
    assert set(started.values()) <= set(main.commands)


def test_what_the_first_lines_name_exists() -> None:
    lines = (FOLDER / "socialpub-web.service").read_text().split("[Unit]")[0]
    named = re.search(r"config --unit web` \(or ([a-z, ]+)\)", lines.replace("\n# ", " "))
    assert named
    assert {"web", *re.findall(r"[a-z]{3,}", named[1])} == set(UNITS_BY_NAME)
    assert "make install" in lines


def test_the_command_of_the_machine_lets_root_call_as_itself() -> None:
    """These commands need the key and the files of their own user."""
    assert re.findall(r'"0 ([a-z-]+)"', (FOLDER / "socialpub").read_text()) == list(main.sections["Publish"])


def test_the_socket_is_where_the_configuration_says() -> None:
    listen = Settings().listen
    assert section(FOLDER / "socialpub-web.socket", "Socket")["ListenStream"] == listen
    unit = section(FOLDER / "socialpub-web.service", "Unit")
    assert "socialpub-web.socket" in unit["Requires"], "without it a start would open a socket of its own"
    assert "socialpub-web.socket" in unit["After"]


def test_all_services_are_confined_alike() -> None:
    def confinement(unit: Path) -> list[str]:
        text = unit.read_text()
        return text[text.index("NoNewPrivileges") :].split("\n[Install]")[0].strip().splitlines()

    web, worker, backup = (confinement(FOLDER / f"socialpub-{name}.service") for name in ("web", "worker", "backup"))
    assert web == worker
    assert set(backup) ^ set(web) == {
        "ReadWritePaths=/var/lib/socialpub",
        "ReadWritePaths=/var/lib/socialpub -/var/backups/socialpub",
        "SystemCallFilter=landlock_create_ruleset landlock_add_rule landlock_restrict_self seccomp",
    }


@pytest.mark.parametrize("unit", LASTING, ids=lambda unit: unit.stem)
def test_a_service_that_hangs_is_ended_and_one_that_fails_is_started_for_ever(unit: Path) -> None:
    values = service(unit)
    assert values["Type"] == "notify"
    assert 30 <= int(values["WatchdogSec"]) <= 300
    assert values["Restart"] == "always"
    assert section(unit, "Unit")["StartLimitIntervalSec"] == "0"


def test_a_slow_disk_is_no_reason_to_end_the_worker() -> None:
    """Between two reports, writes and reads may wait for another process."""
    watchdog = int(service(FOLDER / "socialpub-worker.service")["WatchdogSec"])
    # Each of a round's two writes may wait twice: for our lock and for SQLite's lock.
    assert watchdog > 4 * BUSY_SECONDS


@pytest.mark.parametrize("unit", LASTING, ids=lambda unit: unit.stem)
def test_a_unit_bounds_what_its_service_can_take_from_the_machine(unit: Path) -> None:
    values = service(unit)
    assert values["UMask"] == "0077"
    assert values["MemoryMax"].endswith("G")
    # One child of the largest kind, one ordinary one beside it, and the process itself.
    assert int(values["MemoryMax"][:-1]) * 1024 * MIB >= client.MEMORY_BYTES + 2 * 256 * MIB
    assert values["OOMPolicy"] == "continue"
    threads = 2 * WORKERS * len(registry.SPECIFIED) if unit.stem.endswith("worker") else 100
    assert threads < int(values["TasksMax"]) < 5000
    assert 2 * threads < int(values["LimitNOFILE"]) < 100_000


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_has_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    units = sorted(FOLDER.glob("socialpub-*"))
    for unit in units:
        text = re.sub(r"(?<=^ExecStart=)\S+", sys.executable, unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    files = [str(tmp_path / unit.name) for unit in units]
    done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
    # The output also includes the machine's own units.
    assert [line for line in done.stderr.splitlines() if "socialpub" in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_service_can_do_little_more_than_its_work(unit: Path) -> None:
    threshold = f"--threshold={MOST_EXPOSED * 10:.0f}"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", threshold, str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert exposure, done.stderr
    assert float(exposure[1]) <= MOST_EXPOSED
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_service_lets_its_decoders_give_up_what_they_may_do(name: str) -> None:
    """systemd includes none of these calls in @system-service."""
    text = (FOLDER / f"socialpub-{name}.service").read_text()
    allowed = set(" ".join(re.findall(r"^SystemCallFilter=([^~@].*)$", text, re.MULTILINE)).split())
    assert allowed >= {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self", "seccomp"}
