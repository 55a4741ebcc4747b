"""The units under systemd itself: confined, watched, started again, and without a refused request."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.processes import until
from tests.endurance.units import installation, machine
from tests.endurance.units.installation import COMMAND, CONFIG, InstalledUnits
from tests.samples import media

LACKING = machine.lacking()
pytestmark = [pytest.mark.endurance, pytest.mark.skipif(LACKING is not None, reason=str(LACKING))]
DROP_IN = "/etc/systemd/system/{unit}.d/test.conf"


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledUnits]:
    with installation.on_a_new_machine(tmp_path_factory.mktemp("machine")) as installed:
        yield installed


def test_media_of_every_kind_are_examined_fitted_and_published(units: InstalledUnits, tmp_path: Path) -> None:
    """Each of their decoders is a child process that the confinement must let work: PyAV, Pillow, libmagic."""
    with closing(units.caller()) as caller:
        large = media.png(
            tmp_path / "large.png", 1600, 1200, noise=True
        ).read_bytes()  # more than X takes: it is fitted
        assert len(large) > 5 * 1024**2
        photo = caller.upload(large, "large.png", "image/png")
        film = caller.upload(media.video_mp4(tmp_path / "video.mp4", 2.0).read_bytes(), "video.mp4", "video/mp4")
        for text, artifact in (("With a photo", photo), ("With a video", film)):
            delivery = caller.delivery(caller.publish(text, units.profile, media=(artifact,)))
            assert delivery["status"] == "published", delivery
    assert units.x.texts() == ["With a photo", "With a video"]
    until(lambda: "decoder:" in units.machine.run(COMMAND, "doctor", code=None).stdout, "the worker reports")
    found = units.machine.run(COMMAND, "doctor", code=None).stdout
    assert "A decoder can read one file" in found, [line for line in found.splitlines() if "decoder" in line]
    for name in ("web", "worker"):
        assert "ERROR" not in units.machine.journal(f"socialpub-{name}")
        assert "WARNING" not in units.machine.journal(f"socialpub-{name}")


def test_a_service_sees_and_writes_nothing_but_its_own(units: InstalledUnits) -> None:
    for unit in ("socialpub-web", "socialpub-worker"):
        pid = units.machine.show(unit, "MainPID")
        status = dict(line.split(":\t") for line in units.machine.run("cat", f"/proc/{pid}/status").stdout.splitlines())
        assert status["Seccomp"] == "2"
        assert status["NoNewPrivs"] == "1"
        assert {status[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {"0" * 16}
        within = ("nsenter", f"--target={pid}", "--mount", "--")
        for path in ("/etc/written", "/usr/written", "/opt/socialpub/written", "/var/lib/written"):
            assert "Read-only" in units.machine.run(*within, "touch", path, code=1).stderr
        assert units.machine.run(*within, "ls", "/root", "/home", code=None).stdout.split() == ["/home:", "/root:"]
        units.machine.run(*within, "touch", "/var/lib/socialpub/run/written")
        units.machine.run(*within, "install", "-m", "755", "/bin/true", "/var/lib/socialpub/run/program")
        assert "denied" in units.machine.run(*within, "/var/lib/socialpub/run/program", code=None).stderr


def test_who_connects_while_the_web_server_is_stopped_has_it_started(units: InstalledUnits) -> None:
    units.machine.run("systemctl", "stop", "socialpub-web")
    with closing(units.caller()) as caller:
        assert caller.ask("GET", "/healthz").status_code == 200
    assert units.machine.show("socialpub-web", "ActiveState") == "active"


@pytest.mark.parametrize("unit", ["socialpub-web", "socialpub-worker"])
def test_a_service_that_was_killed_is_started_again_and_goes_on(units: InstalledUnits, unit: str) -> None:
    before = units.machine.show(unit, "MainPID")
    units.machine.run("kill", "-KILL", before)
    _started_anew(units, unit, before)
    units.publish(f"After the end of {unit}")


@pytest.mark.parametrize("unit", ["socialpub-web", "socialpub-worker"])
def test_a_service_that_hangs_is_ended_by_the_watchdog(units: InstalledUnits, unit: str) -> None:
    _drop_in(units, unit, "[Service]\nWatchdogSec=10\n")
    units.machine.run("systemctl", "restart", unit)
    before = units.machine.show(unit, "MainPID")
    units.machine.run("kill", "-STOP", before)
    _started_anew(units, unit, before)
    journal = units.machine.journal(unit)
    assert "Watchdog timeout" in journal
    assert "Fatal Python error: Aborted" in journal and "most recent call first" in journal, "it shows where it hung"
    units.publish(f"After {unit} hung")
    _drop_in(units, unit, "")
    units.machine.run("systemctl", "restart", unit)


def test_a_wrong_configuration_is_retried_until_it_is_fixed(units: InstalledUnits) -> None:
    """Longer than systemd's default limit of five starts."""
    units.configure("[backup]\nkeep = 0")
    units.machine.run("systemctl", "restart", "socialpub-worker", code=1)
    until(lambda: int(units.machine.show("socialpub-worker", "NRestarts")) > 6, "it is tried again and again")
    assert "backup.keep" in units.machine.journal("socialpub-worker")
    units.configure()
    until(lambda: units.machine.show("socialpub-worker", "ActiveState") == "active", "it works")
    units.publish("Fixed")


def test_secrets_come_as_credentials(units: InstalledUnits) -> None:
    units.machine.run("install", "-m", "600", "/dev/stdin", "/etc/socialpub/metrics.token", stdin="of-the-metrics\n")
    _drop_in(units, "socialpub-web", "[Service]\nLoadCredential=metrics.token:/etc/socialpub/metrics.token\n")
    units.configure('[metrics]\ntoken_file = "metrics.token"')
    units.machine.run("systemctl", "restart", "socialpub-web")
    with closing(units.caller()) as caller:
        assert caller.ask("GET", "/metrics").status_code == 401
        told = {"authorization": "Bearer of-the-metrics"}
        assert caller.ask("GET", "/metrics", headers=told).status_code == 200
    units.configure()
    _drop_in(units, "socialpub-web", "")
    units.machine.run("systemctl", "restart", "socialpub-web")


def test_the_timers_copy_is_made_confined_also_on_another_disk(units: InstalledUnits, tmp_path: Path) -> None:
    """Where the service may not write it says so, and the two lines that the unit shows allow it."""
    with closing(units.caller()) as caller:
        caller.upload(media.jpeg(tmp_path / "photo.jpg").read_bytes(), "photo.jpg", "image/jpeg")
    units.machine.run("systemctl", "start", "socialpub-backup")
    (copy,) = units.machine.run("bash", "-c", "ls -d /var/lib/socialpub/backups/20*").stdout.split()
    units.command("verify-backup", copy)
    assert units.machine.show("socialpub-backup.timer", "ActiveState") == "active"

    units.machine.run("install", "-d", "-o", "socialpub", "-m", "700", "/srv/copies")
    units.configure('[backup]\nfolder = "/srv/copies"\nafter = ["sh", "-c", "touch $HOME/after $XDG_CACHE_HOME/after"]')
    units.machine.run("systemctl", "start", "socialpub-backup", code=1)
    assert "Read-only file system" in units.machine.journal("socialpub-backup")
    _drop_in(units, "socialpub-backup", "[Service]\nReadWritePaths=/srv/copies\n")
    units.machine.run("systemctl", "start", "socialpub-backup")
    units.machine.run("bash", "-c", "ls -d /srv/copies/20*")
    units.machine.run("ls", "/var/lib/socialpub/after", "/var/cache/socialpub/after")
    units.configure()


def _started_anew(units: InstalledUnits, unit: str, before: str) -> None:
    until(
        lambda: (
            units.machine.show(unit, "ActiveState") == "active"
            and units.machine.show(unit, "MainPID") not in ("0", before)
        ),
        f"{unit} is started again",
    )


def _drop_in(units: InstalledUnits, unit: str, text: str) -> None:
    path = DROP_IN.format(unit=f"{unit}.service")
    units.machine.run("install", "-D", "-m", "644", "/dev/stdin", path, stdin=text)
    units.machine.run("systemctl", "daemon-reload")


def test_the_configuration_is_the_one_that_was_installed(units: InstalledUnits) -> None:
    assert units.command("config") == CONFIG
