"""The systemd units start what exists, and keep a service that goes wrong from taking the machine with it."""

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from socialpub.cli import main
from socialpub.core.settings.sections import PublishingSection
from socialpub.media import decoder_client
from socialpub.providers import registry

UNITS = sorted((Path(__file__).parents[1] / "systemd").glob("*.service"))
MIB = 1024**2


def service(unit: Path) -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # keys are case-sensitive
    parsed.read_string(unit.read_text())
    return parsed["Service"]


def test_the_units_start_commands_that_exist() -> None:
    started = {}
    for unit in UNITS:
        match = re.fullmatch(r"\S+/socialpub --config \S+ (\w+)", service(unit)["ExecStart"])
        assert match, unit.name
        started[unit.name] = match[1]
    assert started == {"socialpub-web.service": "web", "socialpub-worker.service": "worker"}
    assert set(started.values()) <= set(main.commands)


def test_the_first_lines_lead_to_a_service_that_can_start() -> None:
    (unit,) = (unit for unit in UNITS if unit.stem.endswith("web"))
    steps = re.findall(r"^#   sudo(?: --user=socialpub|edit)? ?(.*)", unit.read_text(), re.MULTILINE)
    (makes_key,) = (step for step in steps if "socialpub --config" in step)
    program, _, arguments = makes_key.partition(" ")
    assert service(unit)["ExecStart"].split()[:3] == [program, *arguments.split()[:2]]
    assert arguments.split()[2:] == ["init", "--new-secret"], "a service whose secret.key is missing does not start"
    assert any(step.startswith("install -d") and service(unit)["WorkingDirectory"] in step for step in steps)
    assert steps.index(makes_key) < next(at for at, step in enumerate(steps) if step.startswith("systemctl enable"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_bounds_what_its_service_can_take_from_the_machine(unit: Path) -> None:
    values = service(unit)
    assert values["UMask"] == "0077"
    assert values["MemoryMax"].endswith("G")
    # One child of the largest kind, one ordinary one beside it, and the process itself.
    assert int(values["MemoryMax"][:-1]) * 1024 * MIB >= decoder_client.MEMORY_BYTES + 2 * 256 * MIB
    assert values["OOMPolicy"] == "continue"
    (most,) = (rule.le for rule in PublishingSection.model_fields["workers"].metadata if hasattr(rule, "le"))
    threads = 2 * most * len(registry.PROVIDERS) if unit.stem.endswith("worker") else 100
    assert threads < int(values["TasksMax"]) < 5000
    assert 2 * threads < int(values["LimitNOFILE"]) < 100_000


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_has_nothing_to_say_about_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = re.sub(r"(?<=^ExecStart=)\S+", sys.executable, unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    files = [str(tmp_path / unit.name) for unit in UNITS]
    done = subprocess.run(["systemd-analyze", "verify", *files], capture_output=True, text=True, check=False)
    # It speaks of the machine's own units, too.
    assert [line for line in done.stderr.splitlines() if "socialpub" in line] == []
