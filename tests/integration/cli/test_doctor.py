"""`doctor` at the terminal: marks, exit codes, silence for cron."""

import json

import httpx2
import pytest

from socialpub.ops import health
from tests.integration.cli.conftest import Terminal


@pytest.fixture(autouse=True)
def web(terminal: Terminal) -> None:
    """Answer at base_url with the appliance that the first command opens."""

    def answer(_: httpx2.Request) -> httpx2.Response:
        with terminal.open() as rt:
            return httpx2.Response(200, json={"status": "ok", "instance": rt.instance_id})

    terminal.mounts["http://127.0.0.1:8000"] = httpx2.MockTransport(answer)


def beat(terminal: Terminal) -> None:
    with terminal.open() as rt:
        rt.write(health.record_heartbeat)


def test_when_all_is_well_it_ends_with_0_and_has_nothing_for_cron(terminal):
    terminal.connect()
    beat(terminal)
    shown = terminal.success("doctor")
    assert "✓ worker: " in shown.stdout
    assert "· base_url: " in shown.stdout
    assert shown.stderr == ""
    silent = terminal("doctor", "--problems")
    assert (silent.exit_code, silent.stdout, silent.stderr) == (0, "", "")


def test_what_must_be_fixed_ends_with_1_and_says_how(terminal):
    terminal.connect()
    shown = terminal("doctor")
    assert shown.exit_code == 1
    assert "✗ worker: The worker has never run.\n    Start `socialpub --config " in shown.stdout
    assert "1 problem must be fixed." in shown.stderr
    short = terminal("doctor", "--problems")
    assert short.exit_code == 1
    assert short.stdout.startswith("✗ worker")
    assert len(short.stdout.splitlines()) == 3
    assert short.stdout.endswith("    Manual: http://127.0.0.1:8000/manual/troubleshooting#a-post-is-not-published\n")
    assert short.stderr == ""


def test_findings_come_as_json_too(terminal):
    terminal.connect()
    shown = terminal("doctor", "--json")
    assert shown.exit_code == 1
    found = json.loads(shown.stdout)
    assert {"level": "problem", "subject": "worker", "message": "The worker has never run."}.items() <= next(
        finding for finding in found if finding["level"] == "problem"
    ).items()
    assert {finding["level"] for finding in found} == {"ok", "note", "problem"}
    assert all(("manual" in finding) == (finding["level"] != "ok") for finding in found)
    assert [finding["subject"] for finding in json.loads(terminal("doctor", "--problems", "--json").stdout)] == [
        "worker"
    ]


def test_the_next_command_names_the_configuration_of_this_one(terminal):
    terminal.connect()
    config = f"--config {terminal.config}"
    shown = terminal("doctor")
    assert f"Start `socialpub {config} serve`." in shown.stdout
    (remedy,) = [one["remedy"] for one in json.loads(terminal("doctor", "--problems", "--json").stdout)]
    assert f"socialpub {config} serve" in remedy
    assert f"run `socialpub {config} admin resume`." in terminal("admin", "pause").stderr
    (terminal.folder / "data" / "secret.key").rename(terminal.folder / "kept.key")
    assert f"socialpub {config} init --new-secret" in " ".join(terminal("admin", "list-keys").stderr.split())
    (terminal.folder / "kept.key").rename(terminal.folder / "data" / "secret.key")
