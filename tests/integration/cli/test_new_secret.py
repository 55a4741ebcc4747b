"""A `secret.key` that is lost: the message says how to get it back, and the way to a new one works."""

import pytest
from pydantic import SecretStr

from socialpub.accounts import api_keys
from socialpub.db.tables import webhooks
from socialpub.ops.notify import send
from socialpub.ops.webhooks import receivers
from tests.integration.cli.conftest import Terminal
from tests.support.appliance import accept, state_of
from tests.support.drain import drain
from tests.support.select import select_value


@pytest.fixture
def profile(terminal: Terminal) -> str:
    return terminal.connect("ada")


def lose_key(terminal: Terminal) -> None:
    (terminal.folder / "data" / "secret.key").rename(terminal.folder / "lost.key")


@pytest.mark.parametrize("command", [("admin", "list-keys"), ("serve",), ("doctor",)])
def test_a_missing_key_is_to_be_brought_back_first(terminal, profile, command):
    lose_key(terminal)
    refused = terminal(*command)
    assert refused.exit_code == 1
    words = " ".join(refused.output.split())
    assert words.index("Restore the original file") < words.index("init --new-secret")


def test_a_new_key_costs_the_tokens_and_nothing_else(terminal, profile):
    key = terminal("admin", "create-key", "laptop").stdout.strip()
    with terminal.open() as rt:
        post = accept(rt, profile, body="Before the loss")
        rt.write(send.add_service, SecretStr("gotify://gotify.lan/HiddenToken"), "gotify://gotify.lan")
        rt.write(receivers.add, *receivers.parse_url("http://n8n.lan/HiddenPath"))
        former = rt.secrets.check_value
    lose_key(terminal)
    made = terminal.success("init", "--new-secret")
    assert "lost: “ada” (X)." in made.stderr
    assert "notification addresses are lost: gotify://gotify.lan. Add them again under System" in made.stderr
    assert "webhooks are lost: http://n8n.lan. Add them again" in made.stderr
    assert (terminal.folder / "data" / "secret.key").stat().st_mode & 0o777 == 0o600
    assert "reauthRequired" in terminal("admin", "list-profiles").stdout
    with terminal.open() as rt:
        drain(rt, terminal.clock, within=60)
        assert former != rt.secrets.check_value
        assert not state_of(rt, post).final, "it waits for its account"
        assert send.list_services(rt) == []
        assert webhooks.list_all(rt.db) == []
        assert select_value(rt.db, "SELECT count(*) FROM api_key") == 1 and api_keys.list_all(rt.db)[0].name == "laptop"
    assert key.startswith("spk_")
    assert terminal.connect("ada") == profile, "the same profile has new tokens"
    with terminal.open() as rt:
        drain(rt, terminal.clock)
        assert state_of(rt, post) == "published"


def test_it_is_not_made_while_socialpub_runs(terminal, profile):
    with terminal.open("worker") as rt:
        lose_key(terminal)
        refused = terminal.refusal("init", "--new-secret")
        assert f"run `socialpub --config {terminal.config} init --new-secret`" in refused
        assert not (terminal.folder / "data" / "secret.key").exists()
        assert select_value(rt.db, "SELECT count(*) FROM profile WHERE status = 'active'") == 1


def test_a_configuration_that_was_written_by_hand_gets_its_first_key_so(terminal):
    terminal.config.write_text('data_dir = "elsewhere"\n')
    assert " init --new-secret" in terminal("admin", "list-keys").stderr
    assert terminal("init", "--new-secret").exit_code == 0
    assert terminal("admin", "list-keys").exit_code == 0


def test_what_was_begun_and_not_finished_can_be_begun_again(terminal, profile, monkeypatch):
    lose_key(terminal)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr("socialpub.core.durable_files.create", full)
        assert "No space left" in terminal("init", "--new-secret").stderr
    assert terminal("init", "--new-secret").exit_code == 0
    assert terminal("admin", "list-profiles").exit_code == 0
