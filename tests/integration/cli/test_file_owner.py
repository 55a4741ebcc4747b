"""Root and another user's data folder: nothing of root's is left there."""

import os
import pwd
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Terminal

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

USER = next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)


@pytest.fixture
def terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """An appliance that belongs to a service."""
    data = terminal.folder / "data"
    for path in (data, *data.rglob("*")):
        os.chown(path, USER.pw_uid, USER.pw_gid)
    monkeypatch.setattr(sys, "argv", ["socialpub", "admin", "create-key", "my laptop"])
    return terminal


@pytest.mark.parametrize(
    "command", [("admin", "create-key", "my laptop"), ("serve",), ("web",), ("worker",), ("backup", "/tmp/never.tar")]
)
def test_root_gets_the_command_that_runs_as_the_owner(terminal, command):
    before = sorted((terminal.folder / "data").rglob("*"))
    refused = terminal.refusal(*command)
    assert f"is owned by {USER.pw_name}" in refused
    program = Path(sys.executable).with_name("socialpub")
    assert f"sudo -u {USER.pw_name} {program} --config {terminal.config} admin create-key 'my laptop'" in refused
    assert sorted((terminal.folder / "data").rglob("*")) == before


def test_a_folder_that_root_would_make_in_another_users_is_refused_too(terminal):
    terminal.config.write_text('data_dir = "data/new/folder"\n')
    assert f"{terminal.folder / 'data'} is owned by {USER.pw_name}" in terminal.refusal("restore", "/nowhere/copy.tar")


def test_the_doctor_says_what_it_could_not_look_at(terminal):
    data = terminal.folder / "data"
    for uid, gid in ((0, 0), (USER.pw_uid, USER.pw_gid)):
        for path in (data, *data.rglob("*")):
            os.chown(path, uid, gid)
        if uid == 0:
            assert terminal("admin", "list-keys").exit_code == 0
    found = terminal("doctor", "--problems")
    assert found.exit_code == 1
    assert f"✗ user: {data} is owned by {USER.pw_name}" in found.stdout
    assert "sudo -u" in found.stdout
