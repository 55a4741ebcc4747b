"""The commands that messages print: one spelling, and a restart for a service, a container and a terminal."""

import sys
from pathlib import Path

import pytest

from socialpub.core import commands

SCRIPT = Path(sys.executable).with_name("socialpub")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program of `make install`, or of the image, in a folder without a configuration."""
    monkeypatch.setattr(commands, "PREFIX", Path(sys.prefix))
    for name in ("SOCIALPUB_CONFIG", "container"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def exists(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    """Of the files that show the manager, only these exist."""
    asked = {"/run/systemd/system", "/run/.containerenv", "/.dockerenv"}
    real = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) in files if str(self) in asked else real(self))


def test_a_program_on_the_path_needs_only_its_name(monkeypatch, tmp_path):
    (tmp_path / "socialpub").symlink_to(SCRIPT)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commands.line("admin", "list-keys") == "socialpub admin list-keys"


def test_a_program_that_path_does_not_find_has_its_quoted_path(monkeypatch, tmp_path):
    (tmp_path / "socialpub").write_text("#!/bin/sh\n")
    (tmp_path / "socialpub").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))  # another program of this name
    assert commands.line("doctor") == f"{SCRIPT} doctor"
    monkeypatch.setattr(commands.sys, "executable", "/home/ada/my checkout/.venv/bin/python")
    assert commands.line("doctor") == "'/home/ada/my checkout/.venv/bin/socialpub' doctor"
    with commands.in_public():
        assert commands.line("doctor") == "socialpub doctor"


def test_the_config_of_this_process_is_repeated():
    commands.repeat_config(Path("my appliance/config.toml"))
    assert commands.line("doctor") == "socialpub --config 'my appliance/config.toml' doctor"
    assert commands.line("init", "DIR") == "socialpub init DIR", "it creates another one"
    assert "--config" in commands.line("init", "--new-secret")
    with commands.in_public():
        assert commands.line("doctor") == "socialpub doctor"


def test_the_service_adds_sudo_and_restarts_with_systemctl(installed, monkeypatch, tmp_path):
    exists(monkeypatch, "/run/systemd/system", "/.dockerenv")
    monkeypatch.setenv("SOCIALPUB_CONFIG", "/etc/socialpub/config.toml")
    assert commands.line("admin", "resume") == "sudo socialpub admin resume"
    assert commands.restart() == "Run `sudo systemctl restart socialpub-web socialpub-worker`"
    assert commands.restart("socialpub-worker") == "Run `sudo systemctl restart socialpub-worker`"
    assert commands.stop() == "Run `sudo systemctl stop socialpub-web.socket socialpub-web socialpub-worker`"
    assert commands.start() == "Run `sudo systemctl start socialpub-web.socket socialpub-web socialpub-worker`"
    assert commands.log("socialpub-web") == "`sudo journalctl --unit=socialpub-web --lines=50`"
    assert commands.system_line("chmod", "600", "/x") == "sudo chmod 600 /x"
    monkeypatch.setattr(sys, "argv", ["socialpub", "admin", "list-keys"])
    assert commands.this_line_as("socialpub", Path("/etc/socialpub/config.toml")) == "sudo socialpub admin list-keys"
    monkeypatch.delenv("SOCIALPUB_CONFIG")
    assert commands.is_service(), "the usual file"
    (tmp_path / "config.toml").touch()
    assert not commands.is_service(), "the installed program with another configuration"
    assert commands.line("doctor") == "socialpub doctor"


def test_another_configuration_beside_the_service_is_not_the_service(installed, monkeypatch):
    exists(monkeypatch, "/run/systemd/system")
    commands.repeat_config(Path("/srv/other.toml"))
    assert commands.line("doctor") == "socialpub --config /srv/other.toml doctor"
    assert commands.restart() == "Stop `socialpub --config /srv/other.toml serve` and start it again"


@pytest.mark.parametrize(("file", "engine"), [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")])
def test_a_container_is_restarted_by_its_engine(installed, monkeypatch, file, engine):
    exists(monkeypatch, file)
    monkeypatch.setenv("SOCIALPUB_CONFIG", "/data/config.toml")
    assert commands.line("doctor") == "socialpub doctor"
    assert commands.restart() == f"Run `{engine} restart appliance`"
    assert commands.log() == f"`{engine} logs appliance`"
    monkeypatch.setenv("container", "podman")
    assert commands.restart() == "Run `podman restart appliance`", "podman sets this in every container"


def test_a_checkout_is_a_terminal_wherever_it_runs(monkeypatch):
    exists(monkeypatch, "/run/systemd/system", "/.dockerenv")
    monkeypatch.setenv("SOCIALPUB_CONFIG", "/etc/socialpub/config.toml")
    assert commands.restart() == "Stop `socialpub serve` and start it again"
    assert commands.log() == "the output of `socialpub serve`"
    assert commands.system_line("chmod", "600", "/x") == "chmod 600 /x"
    assert commands.system_line("chown", "ada", "/x", root=True) == "sudo chown ada /x"


def test_root_runs_this_command_as_the_owner(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["socialpub", "--config", "c.toml", "backup", "my file"])
    assert commands.this_line_as("ada", Path("/a/c.toml")) == (
        f"sudo -u ada {SCRIPT} --config /a/c.toml backup 'my file'"
    )


def test_a_button_needs_no_command():
    assert commands.or_run("admin", "resume") == ", or run `socialpub admin resume`"
    with commands.in_dashboard():
        assert commands.or_run("admin", "resume") == ""
