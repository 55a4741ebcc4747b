"""An upgrade of a service undone by the two lines of the manual, with real units: nothing is published twice."""

from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from socialpub.core import version
from tests.e2e.processes import until
from tests.endurance.units import machine
from tests.endurance.units.installation import COMMAND, ROOT, URL, InstalledUnits
from tests.support.readme import blocks, topic

LACKING = machine.lacking("sudo")
FORMER, NEXT = "0.9.0", version.VERSION
NEXT_MIGRATION = "9001_next"
SERVICES = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")
SOURCE = "Makefile pyproject.toml README.md LICENSE config.example.toml requirements.lock systemd socialpub"

pytestmark = [pytest.mark.endurance, pytest.mark.skipif(LACKING is not None, reason=str(LACKING))]


@pytest.fixture
def units(tmp_path: Path):
    with machine.own_network():
        box = machine.Machine(tmp_path)
        try:
            box.boot()
            with closing(InstalledUnits(box)) as installed:
                installed.start_sandbox()
                yield installed
        finally:
            box.close()


def checkout(units: InstalledUnits, name: str, change: str) -> Path:
    """Return a copy of this checkout on the machine, changed by lines for a shell."""
    folder = Path("/srv", name)
    units.type(f"mkdir -p {folder}; cd {ROOT}; cp -a {SOURCE} {folder}; cd {folder}/socialpub; {change}")
    return folder


def test_the_older_version_and_its_database_come_back_and_publish_nothing_twice(units: InstalledUnits) -> None:
    former = checkout(units, "former", f"sed -i 's/{NEXT}/{FORMER}/' core/version.py")
    migration = "def up(_migrator, db):\\n    db.execute_sql('CREATE TABLE extra (n INTEGER)')\\n"
    newer = checkout(units, "newer", f'printf "{migration}" > db/migrations/{NEXT_MIGRATION}.py')

    units.install(former)
    units.connect()
    units.command("admin", "create-key", "lasting")
    assert running_version() == FORMER
    with closing(units.caller()) as caller:
        before = caller.publish("Before the upgrade", units.profile)
        assert caller.delivery(before)["status"] == "published"
        units.make_install(newer)
        until(lambda: running_version() == NEXT, "the newer version answers")
        since = caller.publish("Since the upgrade", units.profile)
        assert caller.delivery(since)["status"] == "published"
        later = {"post": {"body": "Later", "scheduledAt": "2999-01-01T00:00:00Z"}, "profiles": [units.profile]}
        assert caller.ask("POST", "/api/v1/posts", json=later).status_code == 201
        fresh = units.command("admin", "create-key", "fresh")

        (name,) = units.type("ls /var/lib/socialpub/upgrades").split()
        found = units.machine.run(COMMAND, "doctor", code=None).stdout
        assert f"To go back, run `sudo socialpub restore /var/lib/socialpub/upgrades/{name}`" in found
        assert f"newer than version {FORMER}, " in found
        restore, install = blocks(topic("upgrading"), "## Roll back", "sh")[0].splitlines()
        said = units.machine.run("bash", "-ec", restore.replace("NAME", name)).stderr
        assert "2 posts were accepted since the backup and are not in it. 1 of them will not be published." in said
        assert "API keys created since the backup are gone: fresh." in said
        assert install.startswith("git checkout v1.0.0 && sudo make install && ")
        # sudo would remove the variables by which pip finds its packages here.
        units.type(install.replace("git checkout v1.0.0 && sudo make", f"make -C {former}"))
        until(lambda: running_version() == FORMER, "the former version answers")

        for unit in ("socialpub-web", "socialpub-worker"):
            assert units.machine.show(unit, "ActiveState") == "active"
        assert caller.ask("GET", f"/api/v1/posts/{before}").status_code == 200
        assert caller.ask("GET", f"/api/v1/posts/{since}").status_code == 404
        assert httpx2.get(f"{URL}/api/v1/posts", headers={"authorization": f"Bearer {fresh}"}).status_code == 401
        assert units.type("find /var/lib/socialpub ! -user socialpub") == ""
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
