"""Whether messages to the owner arrive, from the terminal."""

import pytest

from socialpub.ops.notify import apprise_client
from tests.integration.cli.conftest import Terminal
from tests.support.postbox import Postbox

URLS = '\n[notify]\nurls = ["ntfy://127.0.0.1:1/topic-nobody-knows", "gotify://127.0.0.1:1/HiddenToken1234"]\n'


@pytest.fixture
def postbox(monkeypatch: pytest.MonkeyPatch) -> Postbox:
    box = Postbox()
    monkeypatch.setattr(apprise_client, "send", box.send)
    monkeypatch.setattr(apprise_client, "check", lambda urls: [None for _ in urls])
    return box


def test_each_service_is_sent_a_message_and_named_by_number_and_kind(terminal: Terminal, postbox: Postbox) -> None:
    terminal.config.write_text(terminal.config.read_text() + URLS)
    postbox.failing["gotify"] = "it does not know the topic, the chat or the token (404)"
    result = terminal("admin", "notify-test")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 ntfy: sent",
        "2 gotify: not sent, it does not know the topic, the chat or the token (404)",
    ]
    assert "1 service did not take the message" in result.stderr
    assert "Hidden" not in result.output
    assert "nobody-knows" not in result.output
    assert "This is a test" in postbox.last
    postbox.failing.clear()
    assert terminal("admin", "notify-test").exit_code == 0


def test_without_an_address_it_says_where_one_belongs(terminal: Terminal) -> None:
    result = terminal("admin", "notify-test")
    assert result.exit_code == 1
    assert "notify.urls is empty" in result.stderr
