"""What holds for every command: where output goes, how failures look, what is loaded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from socialpub.cli import main
from tests.integration.cli.conftest import Terminal


def test_init_makes_what_every_command_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOCIALPUB_CONFIG", raising=False)
    made = CliRunner().invoke(main, ["init"])
    assert made.exit_code == 0
    assert (tmp_path / "data" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert {Path(line).name for line in made.stdout.splitlines()} == {"config.toml", "data", "secret.key"}
    again = CliRunner().invoke(main, ["init"])
    assert again.exit_code == 1
    assert "overwrites nothing" in again.stderr


def test_a_wrong_configuration_is_one_message_with_every_mistake_and_no_secret(terminal: Terminal) -> None:
    terminal.config.write_text('listen = "nowhere"\nbase_ur = "x"\n[providers.x]\nclient_secret = 12345678\n')
    done = terminal("admin", "list-keys")
    assert done.exit_code == 1
    assert "3 mistakes" in done.stderr
    assert "base_url" in done.stderr
    assert "12345678" not in done.stderr
    assert done.stdout == ""


def test_a_database_of_another_secret_key_is_refused_saying_so(terminal: Terminal) -> None:
    assert terminal("admin", "list-keys").exit_code == 0
    (terminal.folder / "data" / "secret.key").write_text("A" * 43)
    done = terminal("admin", "list-keys")
    assert done.exit_code == 1
    assert "another secret.key" in done.stderr
    assert "Hint:" in done.stderr


def test_a_damaged_database_is_no_stack_trace(terminal: Terminal) -> None:
    (terminal.folder / "data" / "socialpub.db").write_bytes(b"this is no database" * 1000)
    done = terminal("admin", "list-keys")
    assert done.exit_code == 1
    assert "Error: The database cannot be used" in done.stderr


def test_a_missing_configuration_names_the_remedy(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--config", str(tmp_path / "none.toml"), "admin", "list-keys"])
    assert done.exit_code == 1
    assert "socialpub init" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["admin", "--help"], ["serve", "--help"], ["--version"]])
def test_help_and_version_need_no_configuration(arguments: list[str]) -> None:
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0
    assert shown.stdout
    assert "end-with-parent" not in shown.stdout


def test_unknown_commands_are_wrong_usage() -> None:
    assert CliRunner().invoke(main, ["publish"]).exit_code == 2
    assert CliRunner().invoke(main, ["admin", "publish"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (["serve", "--config", "F"], "socialpub --config FILE serve"),
        (["admin", "list-keys", "--config=F"], "socialpub --config FILE admin list-keys"),
        (["admin", "--config", "F", "list-keys"], "socialpub --config FILE admin"),
    ],
)
def test_config_behind_a_command_is_led_to_its_place(arguments: list[str], right: str) -> None:
    refused = CliRunner().invoke(main, arguments, prog_name="socialpub")
    assert refused.exit_code == 2
    assert f"--config stands before the command: {right}\n" in refused.stderr
    assert "Did you mean" not in refused.stderr


def loaded_by(module: str) -> set[str]:
    listing = f"import json, sys, {module}; print(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_the_help_loads_nothing_heavy() -> None:
    heavy = {"rich", "pydantic", "peewee", "httpx2", "starlette", "uvicorn", "huey", "cryptography", "PIL", "av"}
    assert not loaded_by("socialpub.cli") & heavy


def test_the_worker_loads_no_web_server() -> None:
    assert not loaded_by("socialpub.worker.process") & {"starlette", "uvicorn", "jinja2", "rich", "click"}


def test_the_web_server_loads_no_decoder() -> None:
    assert not loaded_by("socialpub.web.server") & {"PIL", "av", "twitter_text", "rich", "jinja2"}


def test_a_sandbox_that_cannot_listen_says_so(terminal: Terminal) -> None:
    assert terminal("sandbox", "--listen", "127.0.0.1").exit_code == 2
    assert terminal("sandbox", "--listen", "127.0.0.1:99999").exit_code == 2
    refused = terminal("sandbox", "--listen", "192.0.2.1:8100")
    assert refused.exit_code == 1
    assert "Hint:" in refused.stderr
