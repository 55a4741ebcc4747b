"""`admin set-password`: from a pipe as by hand; whoever was signed in has to sign in again."""

import pytest

from socialpub.accounts import sign_in
from socialpub.core import commands
from socialpub.core.command_forms import ContainerCommands
from socialpub.runtime import Runtime
from tests.integration.cli.conftest import Terminal


def test_a_password_is_set_and_ends_every_session(terminal: Terminal, rt: Runtime) -> None:
    refused = terminal("admin", "set-password", stdin="too short\n")
    assert (refused.exit_code, sign_in.is_password_set(rt.reader)) == (1, False)
    assert "at least 10 characters" in refused.stderr

    rt.write(sign_in.begin_session, "127.0.0.1", "a browser")
    done = terminal("admin", "set-password", stdin="long enough for me\n")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "The password is set" in done.stderr
    assert "long enough" not in done.stderr
    assert sign_in.is_password(rt, "long enough for me")
    assert not sign_in.is_password(rt, "long enough for you")
    assert sign_in.list_sessions(rt, rt.reader) == []


def test_without_a_terminal_it_says_how_a_container_gives_one(
    terminal: Terminal, rt: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "discover", lambda _: ContainerCommands())
    refused = terminal("admin", "set-password", stdin="")
    assert (refused.exit_code, sign_in.is_password_set(rt.reader)) == (1, False)
    assert "podman exec -it appliance socialpub admin set-password" in refused.stderr
    refused = terminal("admin", "connect-profile", "x", "--paste", stdin="")
    assert "podman exec -it appliance socialpub admin connect-profile x --paste" in refused.stderr
