"""An upgrade of a service undone by `go-back`: with a note-taker for systemd, and once with real units."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from socialpub.core import version
from tests.e2e.processes import until
from tests.endurance.former_version import (
    APPLIED,
    FORMER,
    MAKE_FORMER,
    MAKE_NEXT,
    MISSING_KEY,
    MISSING_UNIT,
    NEXT_MIGRATION,
)
from tests.endurance.machine import Machine, why_impossible
from tests.endurance.test_installing import HIDDEN, make, needs_a_python_that_a_service_can_run
from tests.endurance.units import machine as booted
from tests.endurance.units.installation import COMMAND, PROGRAM, URL, InstalledUnits

WHY, LACKING = why_impossible(), booted.lacking()
RUNNING = ("socialpub-web.socket", "socialpub-web.service", "socialpub-worker.service", MISSING_UNIT)
PRESENT = version.current()

pytestmark = pytest.mark.endurance
on_a_machine = pytest.mark.skipif(WHY is not None, reason=f"no machine to install on: {WHY}")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    try:
        machine = Machine(tmp_path / "machine")
    except OSError as error:
        pytest.skip(f"no machine to install on: {error}")
    needs_a_python_that_a_service_can_run()
    yield machine
    machine.end()


@pytest.fixture
def upgraded(machine: Machine) -> Machine:
    """The former version ran here and was upgraded, and a key was made since."""
    make(machine, "install")
    machine.run(sys.executable, "-c", MAKE_FORMER)
    machine.run("socialpub", "admin", "create-key", "lasting")
    make(machine, "install")
    machine.run(sys.executable, "-c", MAKE_NEXT)
    machine.run("socialpub", "admin", "create-key", "fresh")
    assert NEXT_MIGRATION in migrations_in(machine)
    machine.told_systemd()
    machine.runs(*RUNNING)
    return machine


def migrations_in(machine: Machine) -> list[str]:
    return machine.run(sys.executable, "-c", APPLIED).split()


@on_a_machine
def test_going_back_starts_the_former_version_with_its_database_and_its_units(upgraded: Machine) -> None:
    (copy,) = (upgraded.root / "var/lib/socialpub/upgrades").glob("*.db")
    assert copy.name.endswith(f"@{FORMER}-to-{PRESENT}.db")
    assert f"To go back to {FORMER}: `sudo socialpub go-back`" in upgraded.try_to("socialpub", "doctor").stdout
    planned = upgraded.run("socialpub", "go-back", "--dry-run")
    asked = upgraded.try_to("socialpub", "go-back")
    assert (asked.returncode, "--yes" in asked.stderr) == (1, True)
    assert (upgraded.told_systemd(), NEXT_MIGRATION in migrations_in(upgraded)) == ([], True), "nothing was changed yet"

    done = upgraded.try_to("socialpub", "go-back", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout == planned
    assert (upgraded.root / "opt/socialpub/.venv").readlink() == Path("environments", FORMER)
    assert NEXT_MIGRATION not in migrations_in(upgraded)
    told = upgraded.told_systemd()
    stopped = [f"stop {unit}" for unit in (MISSING_UNIT, *RUNNING[:3])]
    assert told[:4] == stopped, "neither the timer nor a request starts the present version again"
    assert told[4] == f"disable --now {MISSING_UNIT}"
    assert told[-3:] == [f"start {unit}" for unit in reversed(RUNNING[:3])]
    assert not (upgraded.root / "usr/local/lib/systemd/system" / MISSING_UNIT).exists()
    assert f"socialpub {FORMER} is in use again" in done.stderr
    assert "API keys created since then are gone: fresh." in done.stderr
    assert "admin resume" in done.stderr
    assert upgraded.run("find", "/var/lib/socialpub", "!", "-user", "socialpub") == ""
    assert upgraded.run("socialpub", "--version") == f"socialpub {FORMER}\n"
    keys = upgraded.run("socialpub", "admin", "list-keys")
    assert "lasting" in keys and "fresh" not in keys

    refused = upgraded.try_to(f"/opt/socialpub/environments/{PRESENT}/bin/socialpub", "go-back", "--yes")
    assert "contains no earlier version" in refused.stderr, "back is not forward"
    make(upgraded, "install")
    assert upgraded.run("socialpub", "--version") == f"socialpub {PRESENT}\n", "forward again"


@on_a_machine
def test_an_obstacle_is_named_and_the_present_version_keeps_running(upgraded: Machine) -> None:
    config = upgraded.root / "etc/socialpub/config.toml"
    before = config.read_text()
    config.write_text(f"{before}\n[rate_limit]\n{MISSING_KEY} = 20\n")
    refused = upgraded.try_to("socialpub", "go-back", "--yes")
    assert refused.returncode == 1
    assert f"Version {FORMER} does not accept the configuration, so nothing was changed." in refused.stderr
    assert f"rate_limit.{MISSING_KEY}" in refused.stderr
    assert upgraded.told_systemd() == []

    config.write_text(before)
    (copy,) = (upgraded.root / "var/lib/socialpub/upgrades").glob("*.db")
    copy.write_bytes(copy.read_bytes()[:-4096])
    refused = upgraded.try_to("socialpub", "go-back", "--yes")
    assert refused.returncode == 1
    assert "Nothing was changed, and the current version is running as before" in refused.stderr
    assert upgraded.told_systemd()[-4:] == [f"start {unit}" for unit in (*reversed(RUNNING[:3]), MISSING_UNIT)]
    assert NEXT_MIGRATION in migrations_in(upgraded)

    copy.unlink()
    refused = upgraded.try_to("socialpub", "go-back", "--yes")
    assert refused.returncode == 1
    assert f"{FORMER} does not know the current database ({NEXT_MIGRATION}). " in refused.stderr
    assert upgraded.told_systemd() == []


@on_a_machine
def test_a_former_version_that_knows_the_database_keeps_every_post(upgraded: Machine) -> None:
    former = upgraded.root / "opt/socialpub/environments" / FORMER
    (migrations,) = former.glob("lib/python3*/site-packages/socialpub/db/migrations")
    (migrations / f"{NEXT_MIGRATION}.py").touch()
    make(upgraded, "install")
    assert former.exists(), "the last other version stays, however often the present one is installed"
    done = upgraded.try_to("socialpub", "go-back", "--yes")
    assert done.returncode == 0, done.stderr
    assert f"{FORMER} works with the current database. Every post stays." in done.stderr
    assert "fresh" in upgraded.run("socialpub", "admin", "list-keys")


@on_a_machine
def test_without_a_former_version_or_rights_it_says_so(machine: Machine) -> None:
    make(machine, "install")
    make(machine, "install")
    refused = machine.try_to("socialpub", "go-back")
    assert "/opt/socialpub/environments contains no earlier version" in refused.stderr
    ada = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups")
    assert "Run the command with sudo" in machine.try_to(*ada, "socialpub", "go-back", hidden=HIDDEN).stderr


@pytest.mark.skipif(LACKING is not None, reason=str(LACKING))
def test_real_units_go_back_and_publish_nothing_twice(tmp_path: Path) -> None:
    with booted.own_network():
        box = booted.Machine(tmp_path)
        try:
            box.boot()
            with closing(InstalledUnits(box)) as units:
                units.start_sandbox()
                units.install(MAKE_FORMER)
                _upgrade_and_go_back(units)
        finally:
            box.close()


def _upgrade_and_go_back(units: InstalledUnits) -> None:
    units.connect()
    assert running_version() == FORMER
    with closing(units.caller()) as caller:
        before = caller.publish("Before the upgrade", units.profile)
        assert caller.delivery(before)["status"] == "published"
        services = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")
        units.machine.run("systemctl", "stop", *services)
        units.machine.run(PROGRAM, "install-service")
        units.machine.run(sys.executable, "-c", MAKE_NEXT)
        units.machine.run("systemctl", "start", *services)
        assert running_version() == units.machine.run(PROGRAM, "--version").stdout.split()[1]
        since = caller.publish("Since the upgrade", units.profile)
        assert caller.delivery(since)["status"] == "published"
        later = {"post": {"body": "Later", "scheduledAt": "2999-01-01T00:00:00Z"}, "profiles": [units.profile]}
        assert caller.ask("POST", "/api/v1/posts", json=later).status_code == 201

        said = units.machine.run(COMMAND, "go-back", "--yes").stderr
        assert "2 posts were accepted since then and are not in this database. 1 of them will not be published" in said
        until(lambda: running_version() == FORMER, "the former version answers")
        for unit in ("socialpub-web", "socialpub-worker"):
            assert units.machine.show(unit, "ActiveState") == "active"
        assert caller.ask("GET", f"/api/v1/posts/{before}").status_code == 200
        assert caller.ask("GET", f"/api/v1/posts/{since}").status_code == 404
        units.command("admin", "resume")
        again = caller.publish("With the former version again", units.profile)
        assert caller.delivery(again)["status"] == "published"
    assert units.x.texts() == ["Before the upgrade", "Since the upgrade", "With the former version again"]


def running_version() -> str:
    """What the web server says of itself; empty while it does not answer."""
    try:
        told = httpx2.get(f"{URL}/metrics", trust_env=False, timeout=10).text
    except httpx2.TransportError:
        return ""
    return told.partition('socialpub_build_info{version="')[2].partition('"')[0]
