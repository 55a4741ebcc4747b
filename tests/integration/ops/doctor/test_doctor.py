"""Every finding of the doctor, shown the broken thing (contract section 7)."""

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from socialpub.core import commands
from socialpub.core.clock import stamp
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.loader import load as load_settings
from socialpub.core.settings.networks import PinterestSection, TikTokSection, XSection
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db import upgrade
from socialpub.db.process_lock import ProcessLock
from socialpub.media.decoder import client
from socialpub.ops import health
from socialpub.ops.doctor import configuration, services
from socialpub.ops.health import Level
from socialpub.providers.responses import HttpResponse, NoAnswer, NotSent
from socialpub.publishing.delivery import resume
from socialpub.runtime import Runtime, build
from tests.support.appliance import accept, add_profile, open_appliance, settings_in
from tests.support.decoding import child
from tests.support.doctor import HERE, NETWORKS, AnsweringHttp, goes_on, inside, outside, problems, shows, the
from tests.support.hand_clock import HandClock

# --- before anything is opened ----------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path, clock: HandClock) -> Settings:
    """The settings of an appliance that was opened before."""
    open_appliance(tmp_path, clock).close()
    settings = settings_in(tmp_path, providers=NETWORKS)
    settings.data_dir.chmod(0o700)
    return settings


def test_an_appliance_in_order_has_no_problem(settings: Settings) -> None:
    found = outside(settings)
    assert problems(found) == []
    assert {finding.subject for finding in found} == {
        "version", "configuration", "data_dir", "secret.key", "libmagic", "decoding", "base_url"
    }  # fmt: skip
    assert "127.0.0.1" in the(found, "base_url", Level.NOTE).message
    assert goes_on(settings)


def test_looking_changes_nothing(settings: Settings) -> None:
    before = {path: path.stat().st_mtime_ns for path in settings.data_dir.rglob("*") if path.is_file()}
    outside(settings)
    assert {path: path.stat().st_mtime_ns for path in settings.data_dir.rglob("*") if path.is_file()} == before


def test_an_appliance_without_a_database_is_left_without_one(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, providers=NETWORKS)
    found = outside(settings)
    assert problems(found) == []
    assert "yet" in the(found, "database", Level.NOTE).message
    assert "cannot be checked" in the(found, "the rest", Level.NOTE).message
    assert not goes_on(settings)
    assert [path.name for path in settings.data_dir.iterdir()] == ["secret.key"]


def test_a_folder_that_others_can_look_into_is_a_note(settings: Settings) -> None:
    settings.data_dir.chmod(0o755)
    found = outside(settings)
    assert the(found, "permissions", Level.NOTE).remedy == f"Run `chmod 700 {settings.data_dir}`."
    assert problems(found) == []


def test_a_secret_key_that_others_can_read_is_reported(settings: Settings) -> None:
    settings.secret_key_file.chmod(0o644)
    assert the(outside(settings), "permissions").remedy == f"Run `chmod 600 {settings.secret_key_file}`."
    assert goes_on(settings)


def test_a_configuration_with_a_secret_that_others_can_read_is_reported(tmp_path: Path, settings: Settings) -> None:
    file = tmp_path / "config.toml"
    file.write_text('data_dir = "data"\n[providers.x]\nclient_id = "a"\nclient_secret = "very-secret"\n')
    file.chmod(0o644)
    finding = the(outside(load_settings(file, {})), "permissions")
    assert finding.remedy == f"Run `chmod o-rwx {file}`."
    assert "very-secret" not in str(finding)
    file.chmod(0o640)
    assert problems(outside(load_settings(file, {}))) == []


def make_newer(settings: Settings) -> None:
    with closing(sqlite3.connect(settings.database_file)) as database, database:
        database.execute("INSERT INTO schema_migration (name, applied) VALUES ('0999_future', '2030-01-01')")


@pytest.mark.parametrize(
    ("change", "subject", "words"),
    [
        (lambda settings: settings.data_dir.rename(settings.data_dir.with_name("away")), "data_dir", "does not exist"),
        (lambda settings: settings.secret_key_file.unlink(), "secret.key", "is missing"),
        (lambda settings: settings.secret_key_file.write_text("b" * 43), "secret.key", "another secret.key"),
        (make_newer, "database", "does not know the migrations 0999_future"),
    ],
)
def test_what_keeps_the_rest_from_being_checked_is_reported(
    settings: Settings, change: Callable[[Settings], object], subject: str, words: str
) -> None:
    change(settings)
    found = outside(settings)
    assert words in the(found, subject).message
    assert "cannot be checked until the problems are fixed" in the(found, "the rest", Level.NOTE).message
    assert not goes_on(settings)


@pytest.mark.parametrize("how", ["garbage", "a page"])
def test_a_damaged_database_is_reported(settings: Settings, how: str) -> None:
    content = bytearray(settings.database_file.read_bytes())
    if how == "garbage":
        content = bytearray(b"no database " * 1000)
    for page in range(4096 * 30, len(content), 4096):
        content[page : page + 64] = b"\xff" * 64
    settings.database_file.write_bytes(content)
    finding = the(outside(settings), "database")
    assert "is damaged" in finding.message
    assert "restore" in str(finding.remedy)
    assert not goes_on(settings)


def test_a_database_of_an_older_version_is_left_as_it_is(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    migrations = settings.data_dir.parent / "migrations"
    shutil.copytree(upgrade.MIGRATIONS, migrations)
    (migrations / "0002_next.py").touch()
    monkeypatch.setattr(upgrade, "MIGRATIONS", migrations)
    found = outside(settings)
    assert "0002_next" in the(found, "database", Level.NOTE).message
    assert problems(found) == []
    assert not goes_on(settings)


def test_file_types_that_cannot_be_recognized_are_reported(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> str:
        raise ImportError("failed to find libmagic")

    assert re.search(r"libmagic 5\.\d\d \(.+\)", the(outside(settings), "libmagic", Level.OK).message)
    monkeypatch.setattr("socialpub.media.decoder.inspect.describe_libmagic", fails)
    assert "libmagic" in the(outside(settings), "libmagic").message


@pytest.mark.decoder_child
@pytest.mark.parametrize(
    ("before", "kind"),
    [("import av; av.open = None", "video"), ("from PIL import Image; Image.open = None", "image"), ("1 / 0", "image")],
)
def test_a_decoder_that_fails_is_reported(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, before: str, kind: str
) -> None:
    assert "can be decoded" in the(outside(settings), "decoding", Level.OK).message
    monkeypatch.setattr(client, "_COMMAND", child(before))
    assert f"A valid {kind} cannot be decoded" in the(outside(settings), "decoding").message


@pytest.mark.parametrize(
    ("base_url", "level"),
    [
        ("http://127.0.0.1:8000", Level.NOTE),
        ("http://[::1]:8000", Level.NOTE),
        ("https://localhost", Level.NOTE),
        ("http://192.168.1.5:8000", Level.PROBLEM),
        ("https://posts.example/socialpub", Level.OK),
    ],
)
def test_base_url_is_https_or_stays_on_this_machine(settings: Settings, base_url: str, level: Level) -> None:
    assert the(outside(settings.model_copy(update={"base_url": base_url})), "base_url", level)


def test_no_network_at_all_is_reported(settings: Settings) -> None:
    finding = the(outside(settings.model_copy(update={"providers": ProvidersSection()})), "credentials")
    assert "No network is configured" in finding.message
    assert goes_on(settings)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"x": XSection.model_validate({"client_secret": "very-secret"})}, "client_id is empty"),
        ({"tiktok": TikTokSection(client_key="app")}, "client_secret is empty"),
        ({"pinterest": PinterestSection(client_id="app")}, "client_secret is empty"),
        ({"x": XSection(client_id="a native app, which has no secret")}, None),
    ],
)
def test_half_of_a_pair_of_credentials_is_reported(
    settings: Settings, section: dict[str, Any], message: str | None
) -> None:
    found = outside(settings.model_copy(update={"providers": ProvidersSection(**section)}))
    if message is None:
        assert problems(found) == []
    else:
        finding = the(found, "credentials")
        assert message in finding.message
        assert "very-secret" not in str(finding)


# --- inside ----------------------------------------------------------------------------------------------------------


def test_an_appliance_that_works_has_no_problem(rt: Runtime, http: AnsweringHttp) -> None:
    add_profile(rt)
    found = inside(rt)
    assert problems(found) == []
    assert {finding.subject for finding in found} == {
        "housekeeping",
        "database",
        "disk",
        "clock",
        "web",
        "worker",
        "backup",
        "notify",
        "profile",
        "network",
        "redirect address",
    }
    assert http.asked == [f"{HERE}/healthz", "https://api.x.com", "https://open.tiktokapis.com"], (
        "the one without an app is left alone"
    )


def test_a_database_that_another_program_locks_is_reported(rt: Runtime) -> None:
    rt.db.write(lambda tx: tx.execute_sql("PRAGMA busy_timeout = 10").fetchall())
    rt.db.pragma("busy_timeout", 10)
    with closing(sqlite3.connect(rt.db.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "locked" in the(inside(rt), "database").message
        other.execute("ROLLBACK")
    assert problems(inside(rt)) == []


def test_a_clock_that_went_back_is_reported(rt: Runtime, clock: HandClock) -> None:
    accept(rt, add_profile(rt))
    clock.jump(-600)
    assert stamp(clock.now()) in the(inside(rt), "clock").message


def test_a_clock_that_was_never_set_is_reported(tmp_path: Path, rt: Runtime, clock: HandClock) -> None:
    clock.jump(-20 * 365 * 86400)
    assert "2006" in the(inside(rt), "clock").message


def test_a_clock_that_a_network_contradicts_is_reported(rt: Runtime, http: AnsweringHttp) -> None:
    http.answers["https://api.x.com"] = HttpResponse(404, {"date": "Mon, 12 Oct 2026 09:01:00 GMT"})
    http.answers["https://open.tiktokapis.com"] = HttpResponse(404, {"date": "nonsense"})
    assert problems(inside(rt)) == []
    http.answers["https://api.x.com"] = HttpResponse(404, {"date": "Mon, 12 Oct 2026 09:03:00 GMT"})
    assert "The clock of X shows 2026-10-12T09:03" in the(inside(rt), "clock").message


def test_a_second_worker_is_reported(rt: Runtime) -> None:
    with closing(ProcessLock(rt.process.folder, "worker-1")):
        assert problems(inside(rt)) == []
        with closing(ProcessLock(rt.process.folder, "worker-2")):
            assert "worker-1, worker-2" in the(inside(rt), "worker").message


def test_a_worker_that_is_gone_and_its_overdue_deliveries_are_reported(rt: Runtime, clock: HandClock) -> None:
    accept(rt, add_profile(rt))
    clock.forward(121)
    first, second = [finding for finding in inside(rt) if finding.level is Level.PROBLEM]
    assert "not reported for 2 minutes" in first.message
    assert "1 delivery is overdue" in second.message
    rt.write(resume.pause)
    found = inside(rt)
    assert "not reported" in the(found, "worker").message, "paused, nothing is overdue"
    assert the(found, "paused", Level.NOTE).remedy == "To continue, run `socialpub admin resume`."


def test_a_backup_that_was_not_resumed_is_noted(rt: Runtime) -> None:
    rt.write(resume.pause)
    rt.db.write(lambda tx: tx.execute_sql("INSERT INTO appliance VALUES ('restored_from', ?)", (tx.stamp,)).rowcount)
    assert "backup of 2026-10-12" in the(inside(rt), "paused", Level.NOTE).message


def test_a_profile_that_must_be_connected_again_is_reported(rt: Runtime) -> None:
    add_profile(rt, status="reauthRequired", reason="X refuses the refresh token.")
    add_profile(rt, account_id="gone", status="disconnected")
    finding = the(inside(rt), "profile")
    assert finding.message == "x profile (X) must be connected again: X refuses the refresh token."
    assert finding.remedy == "Run `socialpub admin connect-profile x`."


def test_missing_credentials_of_a_network_in_use_are_reported(rt: Runtime) -> None:
    networks = ProvidersSection(x=XSection(client_id="public"), pinterest=PinterestSection(client_id="half"))
    rt.settings = rt.settings.model_copy(update={"providers": networks})
    add_profile(rt, "x")
    add_profile(rt, "pinterest")
    assert problems(inside(rt)) == [], "that half of a pair is missing is seen from outside already"
    add_profile(rt, "tiktok")
    finding = the(inside(rt), "credentials")
    assert "client_key and client_secret" in finding.message
    assert finding.remedy == "Copy client_key and client_secret from the app's page into [providers.tiktok]."


def test_a_network_that_cannot_be_reached_is_reported(rt: Runtime, http: AnsweringHttp) -> None:
    http.answers["https://api.x.com"] = NotSent("api.x.com could not be reached: no such host.")
    http.answers["https://open.tiktokapis.com"] = NoAnswer("It did not answer in time.")
    found = inside(rt)
    assert problems(found) == [], "the network is not in use yet"
    add_profile(rt)
    found = inside(rt)
    assert "could not be reached" in the(found, "network").message
    assert "did not return a usable response" in the(found, "network", Level.NOTE).message


def test_a_sandbox_that_does_not_run_is_reported_with_its_command(rt: Runtime, http: AnsweringHttp) -> None:
    x = XSection.model_validate({"client_id": "app", "api_url": "http://127.0.0.1:8100/x"})
    rt.settings = rt.settings.model_copy(update={"providers": NETWORKS.model_copy(update={"x": x})})
    http.answers["http://127.0.0.1:8100/x"] = NotSent("127.0.0.1:8100 could not be reached.")
    add_profile(rt)
    assert str(the(inside(rt), "network").remedy).endswith("start the sandbox: `socialpub sandbox`")


# --- the machine -----------------------------------------------------------------------------------------------------


def test_a_schema_that_somebody_changed_is_a_problem_before_it_is_needed(rt: Runtime) -> None:
    with closing(sqlite3.connect(rt.settings.database_file)) as database:
        database.execute("CREATE INDEX mine ON post (id)")
        assert "in 'mine': `restore` refuses" in the(outside(rt.settings), "backup").message
        database.execute("DROP INDEX mine")
    assert problems(outside(rt.settings)) == []


def as_service(rt: Runtime, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of a systemd service."""
    monkeypatch.setattr(commands, "manager", lambda: "systemctl")
    rt.settings._file = rt.settings.data_dir.parent / "config.toml"
    return rt.settings._file


@pytest.mark.parametrize(
    ("state", "level", "words", "remedy"),
    [
        ({"ActiveState": "active"}, Level.OK, "is active", None),
        (
            {"ActiveState": "failed", "Result": "watchdog"},
            Level.PROBLEM,
            "last result: watchdog",
            "systemctl restart",
        ),
        (
            {"ActiveState": "inactive", "Result": "success"},
            Level.PROBLEM,
            "is inactive",
            "systemctl restart",
        ),
        (
            {"ActiveState": "active", "NRestarts": "7"},
            Level.NOTE,
            "7 times since",
            "`sudo journalctl --unit=socialpub-worker",
        ),
        ({"ActiveState": "active", "UnitFileState": "disabled"}, Level.NOTE, "with the machine", "systemctl enable"),
    ],
)
def test_what_systemd_says_of_the_services_is_reported(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch, state: dict[str, str], level: Level, words: str, remedy: str | None
) -> None:
    file = as_service(rt, monkeypatch)
    runs = {"LoadState": "loaded", "ExecStart": f"{{ path=/opt/socialpub --config {file} worker ; }}"}
    asked = {"socialpub-worker.service": runs | state}
    monkeypatch.setattr(services, "ask_systemd", lambda service: asked.get(service, {}))
    found = [finding for finding in inside(rt) if finding.subject == "service" and finding.level is level]
    assert len(found) == 1
    assert words in found[0].message
    assert (remedy or "") in (found[0].remedy or "")
    asked["socialpub-worker.service"]["ExecStart"] = "{ path=/opt/socialpub --config /other/config.toml worker ; }"
    assert "service" not in {finding.subject for finding in inside(rt)}, "it runs another installation"


def test_a_socket_elsewhere_than_the_configuration_says_is_reported(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = as_service(rt, monkeypatch)
    socket = {"ActiveState": "active", "Listen": f"{rt.settings.listen} (Stream)"}
    asked = {
        "socialpub-web.service": {"LoadState": "loaded", "ActiveState": "active", "ExecStart": f"--config {file} web"},
        "socialpub-web.socket": socket,
    }
    monkeypatch.setattr(services, "ask_systemd", lambda unit: asked.get(unit, {}))
    assert "listen" not in {finding.subject for finding in inside(rt)}
    socket["Listen"] = "0.0.0.0:9000 (Stream) [::1]:9000 (Stream)"
    found = the(inside(rt), "listen")
    assert found.level is Level.PROBLEM
    assert "at 0.0.0.0:9000 and [::1]:9000, but `listen` is 127.0.0.1:8000" in found.message
    assert "`sudo socialpub config --unit socket | sudo tee " in (found.remedy or "")
    socket["ActiveState"] = "inactive"
    assert "listen" not in {finding.subject for finding in inside(rt)}, "then the web server opens its own"


# --- the way to the web server ---------------------------------------------------------------------------------------


def at(rt: Runtime, base_url: str, listen: str = "127.0.0.1:8000") -> Runtime:
    rt.settings = rt.settings.model_copy(update={"base_url": base_url, "listen": listen})
    return rt


def test_a_web_server_that_does_not_run_is_reported(rt: Runtime, http: AnsweringHttp) -> None:
    http.answers[f"{HERE}/healthz"] = NotSent("refused")
    finding = the(inside(rt), "web")
    assert "nothing answers at 127.0.0.1:8000" in finding.message
    assert "socialpub serve" in str(finding.remedy)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HttpResponse(404), "HTTP 404"),
        (HttpResponse(200, {}, b"<html>welcome to nginx</html>"), "HTTP 200"),
        (HttpResponse(200, {}, b'{"status": "ok"}'), "another program answers"),
        (shows("somebody-else"), "another socialpub"),
        (NoAnswer("It did not answer in time."), "did not answer in time"),
    ],
)
def test_an_address_that_leads_elsewhere_is_reported(
    rt: Runtime, http: AnsweringHttp, answer: HttpResponse | Exception, words: str
) -> None:
    http.answers["https://posts.example/healthz"] = answer
    finding = the(inside(at(rt, "https://posts.example")), "web")
    assert words in finding.message
    assert "correct base_url" in str(finding.remedy)
    http.answers["https://posts.example/healthz"] = shows(rt.instance_id)
    assert problems(inside(rt)) == []


def test_an_address_that_only_this_machine_cannot_reach_is_a_note(rt: Runtime, http: AnsweringHttp) -> None:
    http.answers["https://posts.example/healthz"] = NotSent("posts.example could not be reached.")
    finding = the(inside(at(rt, "https://posts.example")), "web", Level.NOTE)
    assert rt.instance_id in str(finding.remedy)


def test_two_ports_of_this_machine_are_reported_unless_a_proxy_joins_them(rt: Runtime, http: AnsweringHttp) -> None:
    http.answers["http://localhost:9000/healthz"] = NotSent("refused")
    finding = the(inside(at(rt, "http://localhost:9000")), "web")
    assert finding.message == (
        "Nothing answers at http://localhost:9000, but the web server is running at 127.0.0.1:8000."
    )
    http.answers["http://localhost:9000/healthz"] = shows(rt.instance_id)
    assert problems(inside(rt)) == []


# --- the configuration in use ----------------------------------------------------------------------------------------


def test_a_process_that_runs_with_an_older_configuration_is_reported(rt: Runtime) -> None:
    with closing(build(rt.settings, clock=rt.clock, http=rt.http, role="web")) as web:
        configuration.publish_configuration(web)
        assert problems(inside(rt)) == []
        networks = rt.settings.providers.model_copy(
            update={"x": XSection.model_validate({"client_id": "new", "client_secret": "very-secret"})}
        )
        rt.settings = rt.settings.model_copy(update={"providers": networks})
        finding = the(inside(rt), "configuration")
        assert "The web server" in finding.message
        assert "providers.x.client_id" in finding.message and "providers.x.client_secret" in finding.message
        assert "Stop `socialpub serve` and start it again." in str(finding.remedy)
        lying = b"".join(path.read_bytes() for path in rt.settings.run_dir.rglob("*.lock"))
        assert b"very-secret" not in lying and b'"new"' not in lying
    assert problems(inside(rt)) == [], "it has ended"


def test_a_proxy_variable_that_cannot_be_used_is_named_here_and_at_the_worker(
    rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hush-word@proxy.test:1080")
    rt.write(health.record_heartbeat)
    finding = the(inside(rt), "proxy variable")
    assert "ALL_PROXY" in finding.message and "SOCKS" in finding.message and "hush" not in finding.sentences
    monkeypatch.delenv("ALL_PROXY")
    assert "the worker" in the(inside(rt), "proxy variable").message
    rt.write(health.record_heartbeat)
    assert "proxy variable" not in problems(inside(rt))
