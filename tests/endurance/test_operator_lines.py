"""The operator's lines, typed on a machine with systemd as printed: remedies of the doctor, lines of the manual.

Each trouble breaks something, reads the doctor's remedy, types it without a change, and expects a healthy doctor.
"""

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.endurance.units import installation, machine
from tests.endurance.units.installation import COMMAND, CONFIG, InstalledUnits
from tests.support.readme import MANUAL, blocks, topic

LACKING = machine.lacking("sudo")
pytestmark = [pytest.mark.endurance, pytest.mark.skipif(LACKING is not None, reason=str(LACKING))]

DATA = "/var/lib/socialpub"
KEPT = "/root/kept-apart"
"""Where the owner keeps what is no part of a backup."""
SCHEDULED = "## Scheduled backups"
REPORT_SECONDS = 40
"""A worker that was started has reported by then."""


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledUnits]:
    with installation.on_a_new_machine(tmp_path_factory.mktemp("machine")) as installed:
        installed.type(written("sudo systemctl start socialpub-backup"))
        yield installed


# --- remedies of the doctor ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trouble:
    name: str
    subject: str
    """What the finding is about."""
    lines: str
    """What breaks it, for a shell."""

    def __str__(self) -> str:
        return self.name


TROUBLES = (
    Trouble("a stopped worker", "service", "systemctl stop socialpub-worker"),
    Trouble("a stopped web server", "service", "systemctl stop socialpub-web.socket socialpub-web"),
    Trouble("a worker that is not enabled", "service", "systemctl disable socialpub-worker"),
    Trouble("a database of root's", "data_dir", f"chown root: {DATA}/socialpub.db"),
    Trouble("a media folder that its owner cannot write", "data_dir", f"chmod u-w {DATA}/media"),
    Trouble("a data folder that others can read", "permissions", f"chmod 755 {DATA}"),
    Trouble("a secret.key of root's", "secret.key", f"chown root: {DATA}/secret.key"),
    Trouble("a secret.key that others can read", "permissions", f"chmod 644 {DATA}/secret.key"),
    Trouble("a configuration that others can read", "permissions", f"chmod 644 {CONFIG}"),
    Trouble("a configuration that the service cannot read", "configuration", f"chown root:root {CONFIG}"),
    Trouble("a configuration that was changed while it ran", "configuration", f"sed -i s/1000000/999999/ {CONFIG}"),
    Trouble("another port in the configuration", "listen", f"sed -i s/8000/8001/ {CONFIG}"),
    Trouble("the former port in the configuration", "listen", f"sed -i s/8001/8000/ {CONFIG}"),
    Trouble("publishing that was paused", "paused", f"{COMMAND} admin pause"),
)


@pytest.mark.parametrize("trouble", TROUBLES, ids=str)
def test_a_remedy_of_the_doctor_is_typed_and_all_is_well(units: InstalledUnits, trouble: Trouble) -> None:
    healthy(units)
    units.machine.run("bash", "-ec", trouble.lines)
    for line in remedies(units, trouble.subject):
        units.type(line)
    healthy(units, without=trouble.subject)


def test_a_damaged_database_is_replaced_by_the_newest_backup(units: InstalledUnits) -> None:
    """Only damage has data_dir moved away. What follows a restore has remedies as well."""
    published = units.publish("Before the damage")
    units.type(written("sudo systemctl start socialpub-backup"))
    units.machine.run("systemctl", "stop", *SERVICES)
    units.machine.run(
        "bash",
        "-ec",
        f"cd {DATA}; rm -f *-wal *-shm; dd if=/dev/urandom of=socialpub.db bs=4096 seek=1 count=9 conv=notrunc",
    )
    for line in remedies(units, "database"):
        units.type(line)
    assert units.status(published) == "settled"
    _decide_after_restore(units)
    units.machine.run("rm", "-r", f"{DATA}.damaged")


def _decide_after_restore(units: InstalledUnits) -> None:
    (resume,) = remedies(units, "paused")
    units.type(resume)
    (_, keep, _) = remedies(units, "keys")
    units.type(keep)
    healthy(units)


# --- lines of the manual ---------------------------------------------------------------------------------------------


def test_secret_key_is_exchanged_and_accounts_stay_connected(units: InstalledUnits) -> None:
    (lines,) = blocks(topic("security"), "### Another person may have seen it", "sh")
    units.type(lines)
    units.publish("With another key")
    healthy(units)


@pytest.mark.skipif(shutil.which("restic") is None, reason="restic is not installed")
def test_a_machine_is_lost_and_restored_from_restic(units: InstalledUnits) -> None:
    published = units.publish("Before the first loss")
    prepare, allow, back, _ = blocks(topic("backups"), SCHEDULED, "sh")
    units.type(allow)
    units.type(_nearby(prepare))
    units.configure(_nearby(_toml("restic")))
    units.type(written("sudo systemctl start socialpub-backup"))
    _lose_everything(units, f"{CONFIG} /etc/socialpub/restic.password")
    fetch, restore = _nearby(back).splitlines()
    units.type(fetch)
    _bring_back(units, restore.removeprefix("sudo socialpub restore "), published)


@pytest.mark.skipif(shutil.which("rclone") is None, reason="rclone is not installed")
def test_a_machine_is_lost_and_restored_from_a_cloud_by_rclone(units: InstalledUnits) -> None:
    published = units.publish("Before the second loss")
    _, allow, _, back = blocks(topic("backups"), SCHEDULED, "sh")
    units.type(allow)
    # A cloud that is a folder of this machine.
    cloud = f"{written('sudo --user=socialpub --set-home rclone config')} create cloud alias remote=/srv/copies/cloud"
    units.type(cloud)
    units.configure(_toml("rclone"))
    units.type(written("sudo systemctl start socialpub-backup"))
    _lose_everything(units, CONFIG)
    units.type(cloud)
    fetch, restore = back.splitlines()
    units.type(fetch)
    _bring_back(units, restore.removeprefix("sudo socialpub restore "), published)


def _toml(program: str) -> str:
    (block,) = (block for block in blocks(topic("backups"), SCHEDULED, "toml") if f'["{program}"' in block)
    return block


def _nearby(lines: str) -> str:
    """Replace the manual's repository on another machine by a folder of this one."""
    return lines.replace("sftp:me@nas:/backup", "/srv/copies/restic")


def _lose_everything(units: InstalledUnits, apart: str) -> None:
    """The machine is gone, but for what its owner keeps apart and what is on the other disk. Another is installed."""
    units.machine.run("bash", "-ec", f"rm -rf {KEPT} /tmp/back; mkdir {KEPT}; cp {DATA}/secret.key {apart} {KEPT}")
    units.machine.run("bash", "-ec", f"systemctl stop {' '.join(SERVICES)}; rm -r {DATA} /etc/socialpub")
    units.make_install()
    units.machine.run("bash", "-ec", f"cd {KEPT}; for one in config.toml restic.password; do if [ -e $one ]; then "
                      "install --group=socialpub --mode=640 $one /etc/socialpub; fi; done")  # fmt: skip


def _bring_back(units: InstalledUnits, backup: str, published: str) -> None:
    *_, lines = blocks(topic("backups"), "## The old server is lost", "sh")
    units.type(f"cd {KEPT}\n{lines.replace('restore FILE', f'restore {backup}')}")
    assert units.status(published) == "settled"
    _decide_after_restore(units)
    units.publish(f"After {backup}")


# --- what a person does ----------------------------------------------------------------------------------------------

SERVICES = ("socialpub-web.socket", "socialpub-web", "socialpub-worker")


def written(line: str) -> str:
    """Return a line that the manual contains."""
    assert any(f"`{line}`" in page.read_text() for page in MANUAL.glob("*.md"))
    return line


def findings(units: InstalledUnits) -> list[dict[str, Any]]:
    done = units.machine.run(COMMAND, "doctor", "--json", code=None)
    assert done.stdout, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def healthy(units: InstalledUnits, without: str | None = None) -> None:
    """Nothing must be fixed, and nothing is left to do about `without`, as soon as the services have reported."""
    for _ in range(REPORT_SECONDS):
        found = [one for one in findings(units) if one["level"] == "problem" or _asks_for(one, without)]
        if not found:
            return
        time.sleep(1)
    assert found == []


def remedies(units: InstalledUnits, subject: str) -> list[str]:
    """The lines that the doctor asks for, in their order: what it shows between backticks."""
    found = [
        line for one in findings(units) if _asks_for(one, subject) for line in re.findall(r"`(.+?)`", one["remedy"])
    ]
    assert found, f"no line is typed for {subject}: {findings(units)}"
    return found


def _asks_for(finding: dict[str, Any], subject: str | None) -> bool:
    return finding["subject"] == subject and finding["level"] != "ok" and "remedy" in finding
