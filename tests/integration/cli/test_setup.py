"""`config` and `serve --init`: which file counts, what comes with socialpub, and what a first start makes."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from socialpub.cli import setup as config_command
from socialpub.cli.context import CommandContext
from socialpub.cli.main import main
from socialpub.cli.setup import create_if_missing
from socialpub.core.errors import OperatorError
from socialpub.core.settings import loader, template

# --- config ----------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["config", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_example_is_the_file_at_the_top_of_the_checkout():
    shown = run("--example")
    assert shown == (ROOT / "config.example.toml").read_text()
    assert tomllib.loads(shown)["base_url"]


@pytest.mark.parametrize("role", ["web", "worker", "backup"])
def test_a_unit_starts_the_program_that_printed_it(role):
    shown, there = run("--unit", role), (ROOT / "systemd" / f"socialpub-{role}.service").read_text()
    (program,) = re.findall(r"^ExecStart=(\S+)", shown, re.MULTILINE)
    assert program == str(Path(sys.executable).with_name("socialpub"))
    assert shown == there.replace("/opt/socialpub/.venv/bin/socialpub", program)


def test_every_unit_can_be_printed(terminal):
    shown = {name: terminal("config", "--unit", name).stdout for name in config_command.UNITS}
    assert set(config_command.UNITS.values()) == {path.name for path in (ROOT / "systemd").glob("socialpub-*")}
    assert shown["socket"].count("ListenStream=127.0.0.1:8000\n") == 1
    terminal.config.write_text(terminal.config.read_text().replace("127.0.0.1:8000", "[::]:9000"))
    assert "\nListenStream=[::]:9000\n" in terminal("config", "--unit", "socket").stdout
    assert "OnCalendar=" in shown["timer"]


def test_a_program_in_a_home_folder_is_no_service(monkeypatch):
    monkeypatch.setattr(config_command.sys, "executable", "/nowhere/python")
    monkeypatch.setattr(config_command.shutil, "which", lambda _: "/home/ada/.local/bin/socialpub")
    done = CliRunner().invoke(main, ["config", "--unit", "web"])
    assert "ExecStart=/home/ada/.local/bin/socialpub --config" in done.stdout
    assert "`sudo make install` in a checkout" in done.stderr


def test_without_an_option_it_says_which_file_counts(terminal):
    assert terminal("config").stdout == f"{terminal.config}\n"
    terminal.config.write_text("listne = 1\n")
    wrong = terminal.refusal("config")
    assert "listen" in wrong and "socialpub config --example" in wrong


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="this is no checkout")
@pytest.mark.parametrize("folder", ["", "my-appliance/", "a/b/"])
def test_what_init_makes_in_a_checkout_is_ignored_by_git(folder):
    made = [f"{folder}config.toml", f"{folder}data/secret.key", f"{folder}data/socialpub.db"]
    done = subprocess.run(["git", "check-ignore", *made], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == made


# --- serve --init ----------------------------------------------------------------------------------------------------


def start(config: Path) -> None:
    with click.Context(click.Command("serve")):
        create_if_missing(CommandContext(config=config))


def test_an_empty_volume_gets_a_configuration_and_a_key_once(tmp_path, capsys):
    config = tmp_path / "config.toml"
    start(config)
    key = loader.load(config, {}).secret_key_file
    first = key.read_bytes()
    assert "Keep secret.key safe" in capsys.readouterr().err
    config.write_text(config.read_text() + "# mine\n")
    start(config)
    assert config.read_text().endswith("# mine\n")
    assert key.read_bytes() == first
    assert capsys.readouterr().err == ""


def test_a_lost_configuration_makes_no_second_key_beside_the_data(tmp_path):
    config = tmp_path / "config.toml"
    start(config)
    config.unlink()
    with pytest.raises(template.AlreadyThere):
        start(config)


def test_a_volume_of_another_user_is_reported_with_the_needed_user(tmp_path, monkeypatch):
    def refused(folder: Path) -> None:
        raise OperatorError(f"{folder}/data cannot be written: Permission denied.", "Choose another folder.")

    monkeypatch.setattr(template, "create", refused)
    with pytest.raises(OperatorError) as told:
        start(tmp_path / "config.toml")
    assert f"to user {os.getuid()}" in (told.value.hint or "")
