"""Root and another user's data folder: nothing of root's is left there."""

import os
import pwd
import sys
from pathlib import Path

import click
import pytest

from socialpub.cli import main
from socialpub.cli.command_lines import typed_here
from tests.integration.cli.conftest import Terminal

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

USER = next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)


@pytest.fixture
def terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Whose appliance is a service's."""
    data = terminal.folder / "data"
    for path in (data, *data.rglob("*")):
        os.chown(path, USER.pw_uid, USER.pw_gid)
    monkeypatch.setattr(sys, "argv", ["/opt/socialpub/.venv/bin/socialpub", "admin", "create-key", "my laptop"])
    return terminal


@pytest.mark.parametrize(
    "command", [("admin", "create-key", "my laptop"), ("serve",), ("web",), ("worker",), ("backup", "/tmp/never.tar")]
)
def test_root_is_told_the_command_that_does_it_as_the_owner(terminal: Terminal, command: tuple[str, ...]) -> None:
    before = sorted((terminal.folder / "data").rglob("*"))
    refused = terminal(*command)
    assert refused.exit_code == 1
    assert f"belongs to {USER.pw_name}" in refused.stderr
    assert (
        f"sudo -u {USER.pw_name} /opt/socialpub/.venv/bin/socialpub --config {terminal.config} "
        "admin create-key 'my laptop'" in refused.stderr
    )
    assert sorted((terminal.folder / "data").rglob("*")) == before


def test_a_folder_that_root_would_make_in_another_users_is_refused_too(terminal: Terminal) -> None:
    terminal.config.write_text('data_dir = "data/new/folder"\n')
    refused = terminal("restore", "/nowhere/copy.tar")
    assert refused.exit_code == 1
    assert f"{terminal.folder / 'data'} belongs to {USER.pw_name}" in refused.stderr


def test_the_doctor_says_what_it_could_not_look_at(terminal: Terminal) -> None:
    data = terminal.folder / "data"
    for uid, gid in ((0, 0), (USER.pw_uid, USER.pw_gid)):
        for path in (data, *data.rglob("*")):
            os.chown(path, uid, gid)
        if uid == 0:
            assert terminal("admin", "list-keys").exit_code == 0
    found = terminal("doctor", "--problems")
    assert found.exit_code == 1
    assert f"✗ user: {data} belongs to {USER.pw_name}" in found.stdout
    assert "sudo -u" in found.stdout


def test_what_belongs_to_root_is_roots(terminal: Terminal) -> None:
    data = terminal.folder / "data"
    for path in (data, *data.rglob("*")):
        os.chown(path, 0, 0)
    assert terminal("admin", "list-keys").exit_code == 0


def test_a_command_typed_in_a_home_that_the_services_user_may_not_enter_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `sudo socialpub` is: most homes are closed to other users."""
    tmp_path.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOCIALPUB_CONFIG", raising=False)
    context = click.Context(main)
    context.params["config"] = Path("/etc/passwd")
    os.seteuid(USER.pw_uid)
    try:
        with context:
            assert typed_here("Run socialpub doctor.") == "Run socialpub --config /etc/passwd doctor."
            context.params["config"] = tmp_path / "config.toml"
            assert typed_here("Run socialpub doctor.") == "Run socialpub doctor."
    finally:
        os.seteuid(0)
