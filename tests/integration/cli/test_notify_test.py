"""Whether messages to the owner arrive, from the terminal."""

import json
from contextlib import ExitStack

import pytest

from socialpub.core import commands
from socialpub.db.tables import notifications
from socialpub.ops.doctor import machine
from socialpub.ops.notify import send
from tests.integration.cli.conftest import Terminal
from tests.support.postbox import Postbox

URLS = '\n[notify]\nurls = ["ntfy://127.0.0.1:1/topic-nobody-knows", "gotify://127.0.0.1:1/HiddenToken1234"]\n'


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(send, "send_message", box.send)
    monkeypatch.setattr(send, "check_addresses", lambda urls: [None for _ in urls])
    return box


def test_each_service_is_sent_a_message_and_named_by_scheme_and_host(terminal: Terminal, postbox: Postbox) -> None:
    terminal.config.write_text(terminal.config.read_text() + URLS)
    postbox.failing["gotify"] = "it does not know the topic, the chat or the token (404)"
    result = terminal("admin", "notify-test")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ntfy://127.0.0.1: sent",
        "gotify://127.0.0.1: not sent, it does not know the topic, the chat or the token (404)",
    ]
    assert "1 service did not accept the message" in result.stderr
    assert "Hidden" not in result.output
    assert "nobody-knows" not in result.output
    assert "This is a test" in postbox.last
    postbox.failing.clear()
    assert terminal("admin", "notify-test").exit_code == 0


def test_without_an_address_it_says_where_one_belongs(terminal: Terminal) -> None:
    result = terminal("admin", "notify-test")
    assert result.exit_code == 1
    assert "notify.urls is empty" in result.stderr


def test_an_address_that_the_running_processes_do_not_know_is_reported(terminal: Terminal, postbox: Postbox) -> None:
    with ExitStack() as running:
        for role in ("web", "worker"):
            machine.publish_configuration(running.enter_context(terminal.open(role)))
        terminal.config.write_text(terminal.config.read_text() + URLS)
        result = terminal("admin", "notify-test")
        assert result.exit_code == 0
        assert result.stderr == (
            "The web server and the worker run with other addresses in [notify] urls. They send nothing to an address "
            f"that it does not list. {commands.here().restart()}.\n"
        )
    with terminal.open("worker") as worker:
        machine.publish_configuration(worker)
        assert terminal("admin", "notify-test").stderr == ""


def test_an_address_that_took_a_test_message_is_no_finding(terminal: Terminal, postbox: Postbox) -> None:
    terminal.config.write_text(terminal.config.read_text() + URLS)
    terminal("admin", "list-keys")
    assert findings_of(terminal) == {"ntfy://127.0.0.1": "note", "gotify://127.0.0.1": "note"}
    postbox.failing["gotify"] = "nothing listens at its address"
    terminal("admin", "notify-test")
    assert findings_of(terminal) == {"ntfy://127.0.0.1": "ok", "gotify://127.0.0.1": "problem"}


def test_addresses_of_one_host_are_told_apart_in_every_list(terminal: Terminal, postbox: Postbox) -> None:
    urls = '\n[notify]\nurls = ["ntfy://127.0.0.1/one", "ntfy://127.0.0.1/two"]\n'
    terminal.config.write_text(terminal.config.read_text() + urls)
    assert terminal("admin", "notify-test").stdout.splitlines() == [
        "ntfy://127.0.0.1: sent",
        "ntfy://127.0.0.1 (2): sent",
    ]
    terminal.config.write_text(terminal.config.read_text().replace("/one", "/three"))
    terminal("admin", "notify-test")
    with terminal.open() as rt:
        names = [one.name for one in notifications.services(rt.reader)]
    assert len(names) == len(set(names)) == 3, "metrics have a line for each"


def findings_of(terminal: Terminal) -> dict[str, str]:
    """The level of the finding about each address."""
    found = json.loads(terminal("doctor", "--json").stdout)
    return {one["message"].split()[0]: one["level"] for one in found if one["subject"] == "notify"}
