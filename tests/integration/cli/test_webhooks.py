"""`admin add-webhook`, `list-webhooks`, `remove-webhook` and `test-webhook` (contract 10.6.1)."""

import base64
import json
import re

import pytest

from socialpub.db.tables import audit_log, webhooks
from socialpub.ops import audit_text
from tests.integration.cli.conftest import Terminal
from tests.support.webhook_receiver import WebhookReceiver, follow_clock

URL = "http://ada:pass-word@n8n.test:5678/hidden/path?token=hidden-query"
SECRETS = re.compile("pass-word|hidden|ada|whsec")


@pytest.fixture
def receiver(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> WebhookReceiver:
    follow_clock(monkeypatch, terminal.clock)
    receiver = WebhookReceiver()
    terminal.mounts["http://n8n.test:5678"] = receiver
    return receiver


def add(terminal: Terminal, receiver: WebhookReceiver, *options: str) -> str:
    """Return the id."""
    webhook_id, receiver.secret = terminal.success("admin", "add-webhook", URL, *options).stdout.splitlines()
    return webhook_id


def test_the_id_and_the_secret_are_printed_once_and_the_database_does_not_show_them(terminal, receiver):
    webhook_id = add(terminal, receiver)
    prefix, _, encoded = receiver.secret.partition("_")
    assert (prefix, len(base64.b64decode(encoded, validate=True))) == ("whsec", 32)
    for file in (terminal.folder / "data").glob("socialpub.db*"):
        assert not re.search(rb"pass-word|hidden|whsec|" + re.escape(encoded).encode(), file.read_bytes())
    listed = terminal.success("admin", "list-webhooks", "--json")
    [shown] = json.loads(listed.stdout)
    assert shown == {
        "id": webhook_id,
        "address": "http://n8n.test:5678",
        "events": ["delivery.published", "delivery.failed", "delivery.canceled"],
        "addedAt": shown["addedAt"],
        "lagSeconds": 0,
        "accepted": 0,
        "failedTries": 0,
        "leftOut": 0,
    }
    with terminal.open() as rt:
        entries = audit_log.load_page(rt.db, ["webhook"]).entries
    assert [audit_text.describe(entry) for entry in entries] == [
        "Added the webhook http://n8n.test:5678: delivery.published, delivery.failed, delivery.canceled."
    ]


def test_a_test_event_is_signed_and_its_response_is_listed(terminal, receiver):
    webhook_id = add(terminal, receiver, "--event", "delivery.pending")
    assert terminal.success("admin", "test-webhook", webhook_id).stdout == "204\n"
    [(message_id, event)] = receiver.taken
    assert (event["type"], event["data"]) == ("webhook.test", {"webhookId": webhook_id})
    assert message_id != webhook_id
    assert "204" in terminal.success("admin", "list-webhooks").stdout


@pytest.mark.parametrize(("status", "shown"), [(302, "302 (redirects are not followed)"), (410, "410"), (500, "500")])
def test_a_refused_test_event_ends_with_1(terminal, receiver, status, shown):
    webhook_id = add(terminal, receiver)
    receiver.answers = [status]
    done = terminal("admin", "test-webhook", webhook_id)
    assert (done.exit_code, done.stdout) == (1, f"{shown}\n")
    [listed] = json.loads(terminal("admin", "list-webhooks", "--json").stdout)
    assert listed["lastResponse"] == shown
    assert ("disabledAt" in listed) == (status == 410), "the remedy is in `doctor`"


def test_no_output_shows_a_secret_of_the_url(terminal, receiver):
    added = terminal.success("admin", "add-webhook", "-", stdin=f"{URL}\n")
    webhook_id, receiver.secret = added.stdout.splitlines()
    assert not SECRETS.search(added.stderr)
    receiver.answers = [410]
    outputs = [
        terminal("admin", *words).output
        for words in (("test-webhook", webhook_id), ("list-webhooks",), ("list-webhooks", "--json"))
    ]
    outputs += [terminal("doctor").output, terminal("admin", "remove-webhook", webhook_id).output]
    assert not SECRETS.search(" ".join(outputs))
    assert "answered 410" in outputs[3]
    with terminal.open() as rt:
        assert webhooks.list_all(rt.db) == []


def test_a_wrong_url_is_refused_without_quoting_it(terminal):
    refused = terminal("admin", "add-webhook", "ftp://n8n.test/hidden")
    assert refused.exit_code == 2
    assert "Invalid value for URL: it must begin with http:// or https:// and a host." in refused.stderr
    assert "hidden" not in refused.output
