"""Starting: two at once, on another's data, with a mistake in the configuration, at an address that is taken."""

import base64
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from socialpub.core.settings import template
from tests.e2e.installation import START_SECONDS, Installation
from tests.e2e.processes import Process, until
from tests.support.ports import free_port

IN_ENDURANCE = {role: pytest.param(role, marks=pytest.mark.endurance) for role in ("serve", "web", "worker")}
"""Of the roles of a test, every run plays the first. `make endurance` plays these as well."""


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Right after `init`: there is no database yet."""
    installation = Installation(tmp_path / "appliance", pace=0)
    config = installation.config.read_text()
    installation.config.unlink()
    template.create(installation.folder)
    installation.config.write_text(config)
    yield installation
    installation.close()


def ended(installation: Installation, process: Process) -> str:
    """The output of a process that could not start; it explains itself once, and ends with 1."""
    assert process.wait(START_SECONDS) == 1, process.output
    assert "Traceback" not in process.output
    assert process.output.count("Error:") == 1
    return process.output


@pytest.mark.parametrize("times", [0, *(pytest.param(n, marks=pytest.mark.endurance) for n in (1, 2))])
def test_two_that_start_at_once_on_a_new_folder_both_come_up(installation, times):
    web, worker = installation.begin("web"), installation.begin("worker")
    installation.wait_until_up(web, "web")
    installation.wait_until_up(worker, "worker")
    with closing(sqlite3.connect(installation.data / "socialpub.db")) as database:
        names = [row[0] for row in database.execute("SELECT name FROM schema_migration")]
    assert names and len(names) == len(set(names))


def test_only_the_owner_can_read_the_files_of_a_command(installation):
    """Under a shell that lets everybody read and write. What existed before keeps its mode."""
    folder, generous = installation.folder, ("sh", "-c", 'umask 000; exec "$@"', "sh")
    before = {folder, *folder.rglob("*")}
    shared = installation.data / "media"
    shared.mkdir(mode=0o755)
    before.add(shared)
    before_modes = {path: path.stat().st_mode for path in before}
    sandbox = Process(
        *("sandbox", "--listen", installation.sandbox_url.removeprefix("http://")),
        *("--journal", str(installation.journal)),
        log=folder / "sandbox.log", env=installation.env, within=generous,
    )  # fmt: skip
    serve = installation.begin("serve", within=generous)
    try:
        installation.wait_until_up(serve, "serve")
        until(lambda: "Press Ctrl-C" in sandbox.output, "the sandbox is up")
        installation.x.grant("ada")
        for number, arguments in enumerate(
            (
                ("init", str(folder / "deep" / "other")),
                ("--config", str(installation.config), "admin", "create-key", "laptop"),
                ("--config", str(installation.config), "backup", str(folder / "copy"), "--with-secret"),
                ("--config", str(folder / "deep" / "other" / "config.toml"), "doctor", "--json"),
            )
        ):
            command = Process(*arguments, log=folder / f"command{number}.log", env=installation.env, within=generous)
            assert command.wait() in (0, 1), command.output
    finally:
        serve.stop()
        sandbox.stop()
    written = {path for path in folder.rglob("*") if path not in before and path.suffix != ".log"}
    assert {installation.journal, folder / "copy", installation.data / "queue.db"} <= written
    assert [str(path) for path in sorted(written) if path.stat().st_mode & 0o077] == []
    assert {path: path.stat().st_mode for path in before} == before_modes


@pytest.mark.parametrize("role", ["worker", IN_ENDURANCE["web"]])
def test_a_database_of_another_key_is_refused(installation, role):
    installation.admin("list-keys")
    (installation.data / "secret.key").write_bytes(base64.urlsafe_b64encode(secrets.token_bytes(32)))
    output = ended(installation, installation.begin(role))
    assert "another secret.key" in output and "Hint:" in output


@pytest.mark.parametrize("role", ["serve", IN_ENDURANCE["web"]])
def test_a_second_serve_on_the_same_data_says_so_and_leaves_the_first_alone(installation, role):
    first = installation.start("serve")
    (worker,) = first.children()
    address = installation.url.removeprefix("http://")
    # At another address, where nothing else would stop it.
    installation.env["SOCIALPUB_LISTEN"] = f"127.0.0.1:{free_port()}"
    output = ended(installation, installation.begin(role))
    assert f"already running with {installation.data} (process {first.pid}, at {address})" in output
    assert first.children() == [worker]
    until(lambda: installation.caller().ask("GET", "/readyz").status_code == 200, "the first is well")
