"""An account of a network without a consent page is connected from the terminal."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from socialpub.cli.admin import profiles
from socialpub.providers import registry
from socialpub.providers.auth import OtherServer
from tests.integration.cli.conftest import SANDBOX, Terminal
from tests.support.scripted_network import APP_PASSWORD, ScriptedSignInNetwork

CONNECT = ("admin", "connect-profile", "bluesky")


@pytest.fixture
def network(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> ScriptedSignInNetwork:
    network, build = ScriptedSignInNetwork(), registry.build
    monkeypatch.setattr(registry, "build", lambda *given: {**build(*given), "bluesky": network})
    terminal.config.write_text(f"{terminal.config.read_text()}\n[providers.bluesky]\nenabled = true\n")
    return network


@pytest.fixture
def password_file(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text(f"{APP_PASSWORD}\n")
    return str(file)


class Typed:
    """A terminal on which somebody types. It shows what it asks, and whether the answer is hidden."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: str) -> None:
        self.asked: list[tuple[str, bool]] = []
        self.answers = answers
        self.agrees = True
        monkeypatch.setattr(profiles, "ask", lambda label: self._answer(label, hidden=False))
        monkeypatch.setattr(profiles, "ask_hidden", lambda label: self._answer(label, hidden=True))
        monkeypatch.setattr(profiles, "ask_to_continue", self._continue)
        monkeypatch.setattr(profiles, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))

    def _continue(self, question: str) -> None:
        self.asked.append((question, False))
        if not self.agrees:
            raise click.Abort

    def _answer(self, label: str, *, hidden: bool) -> str:
        self.asked.append((label, hidden))
        return self.answers[label.split()[-1].lower()]


OTHER = OtherServer("The account demo.test is on the server pds.test, not on bsky.social.", server="pds.test")


def test_a_script_must_name_the_server_of_an_account_that_is_elsewhere(terminal, network, password_file):
    how = ("--handle", "demo.test", "--password-file", password_file)
    network.auth.answers = [OTHER]
    done = terminal.refusal(*CONNECT, *how)
    assert OTHER.message in done
    assert "Hint: If this is the right server, add --server pds.test." in done
    assert profiles_of(terminal) == []
    terminal.success(*CONNECT, *how, "--server", "pds.test")
    assert [one.get("server") for one in network.auth.given] == [None, "pds.test"]


@pytest.mark.parametrize("agrees", [True, False])
def test_the_terminal_names_the_server_of_an_account_that_is_elsewhere_and_asks(terminal, network, monkeypatch, agrees):
    typed = Typed(monkeypatch, handle="demo.test", password=APP_PASSWORD)
    typed.agrees = agrees
    network.auth.answers = [OTHER]
    done = terminal(*CONNECT)
    assert typed.asked[-1] == (f"{OTHER.message} Send it there?", False)
    assert len(profiles_of(terminal)) == agrees
    assert [one.get("server") for one in network.auth.given] == [None, "pds.test"][: 1 + agrees]
    assert (done.exit_code == 0) == agrees


def profiles_of(terminal: Terminal) -> Any:
    return json.loads(terminal("admin", "list-profiles", "--json").stdout)


def test_the_password_is_read_from_a_file(terminal, network, password_file):
    how = ("--handle", "demo.test", "--password-file", password_file, "--name", "News")
    done = terminal.success(*CONNECT, *how)
    (profile,) = profiles_of(terminal)
    assert done.stdout == f"{profile['id']}\n"
    assert (profile["name"], profile["provider"], profile["status"]) == ("News", "bluesky", "active")
    assert "The Bluesky account @demo.test is connected as “News”." in done.stderr
    assert APP_PASSWORD not in done.output


def test_the_password_is_read_from_a_pipe(terminal, network):
    terminal.success(*CONNECT, "--handle", "demo.test", "--password-file", "-", stdin=f"{APP_PASSWORD}\n")
    assert network.auth.given == [{"handle": "demo.test", "password": APP_PASSWORD}]


def test_the_terminal_asks_for_the_missing_values_and_hides_the_password(terminal, network, monkeypatch):
    typed = Typed(monkeypatch, handle="demo.test", password=APP_PASSWORD)
    done = terminal.success(*CONNECT)
    assert typed.asked == [("Handle", False), ("App password", True)]
    assert "Not the main password." in done.stderr
    assert network.auth.given == [{"handle": "demo.test", "password": APP_PASSWORD}]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Bluesky needs the value “Handle”.\nHint: Add --handle NAME, or use a terminal."),
        (
            ("--handle", "demo.test"),
            "Bluesky needs the value “App password”.\nHint: Add --password-file FILE, or use a terminal.",
        ),
        (("--handle", "demo.test", "--password-file", "-"), "The password file does not contain a password."),
        (("--handle", "other.test", "--password-file", "FILE"), "There is no account other.test."),
    ],
)
def test_a_missing_or_wrong_value_connects_nothing(terminal, network, password_file, options, said):
    given = [password_file if one == "FILE" else one for one in options]
    assert said in terminal.refusal(*CONNECT, *given, stdin="")
    assert profiles_of(terminal) == []


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xff\xfe\x00"])
def test_a_file_without_a_password_is_refused(terminal, network, tmp_path, content):
    file = tmp_path / "password"
    file.write_bytes(content)
    done = terminal.refusal(*CONNECT, "--handle", "demo.test", "--password-file", str(file))
    assert "The password file does not contain a password." in done
    assert network.auth.given == []


@pytest.mark.parametrize(
    ("provider", "option", "said"),
    [
        ("x", ("--handle", "demo"), "X asks for your consent on its own page, so --handle has no effect."),
        ("x", ("--password-file", "-"), "X asks for your consent on its own page, so --password-file has no effect."),
        ("bluesky", ("--paste",), "Bluesky has no consent page, so --paste has no effect."),
    ],
)
def test_an_option_of_the_other_kind_of_network_is_a_usage_error(terminal, network, provider, option, said):
    done = terminal("admin", "connect-profile", provider, *option)
    assert done.exit_code == 2
    assert said in done.stderr
    assert profiles_of(terminal) == []


def test_tokens_cannot_be_imported(terminal, network):
    done = terminal.refusal("admin", "import-profile", "bluesky", stdin='{"accessToken": "access-token"}')
    assert "They sign in with “Handle” and “App password”." in done
    assert re.search(r"Hint: Run `socialpub \S+ \S+ admin connect-profile bluesky`\.", done)


def test_disconnecting_names_the_app_password(terminal, network, password_file):
    done = terminal.success(*CONNECT, "--handle", "demo.test", "--password-file", password_file)
    ended = terminal.success("admin", "disconnect-profile", done.stdout.strip())
    assert "may still list the app password. You can remove the app password there." in ended.stderr


# --- the sandbox's Bluesky -------------------------------------------------------------------------------------------


@pytest.fixture
def bluesky(terminal: Terminal) -> Terminal:
    url = f"{SANDBOX}/bluesky"
    section = f'[providers.bluesky]\nenabled = true\nservice = "{url}"\nplc_url = "{url}/plc"\n'
    terminal.config.write_text(f"{terminal.config.read_text()}\n{section}")
    return terminal


def test_without_its_section_the_command_does_not_know_bluesky(terminal):
    done = terminal(*CONNECT, "--handle", "demo.test", "--password-file", "-", stdin=APP_PASSWORD)
    assert done.exit_code == 2
    assert "'bluesky' is not one of x, tiktok, pinterest." in done.stderr
