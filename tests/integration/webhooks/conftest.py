from collections.abc import Iterator
from typing import Any

import pytest

from socialpub.ops.webhooks.sender import WebhookSender
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork
from tests.support.webhook_receiver import WebhookReceiver, add_webhook, follow_clock

URL = "http://receiver.test/hook?token=hidden-in-the-query"


@pytest.fixture
def receiver(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> WebhookReceiver:
    follow_clock(monkeypatch, clock)
    return WebhookReceiver()


@pytest.fixture
def other_receiver() -> WebhookReceiver:
    return WebhookReceiver()


@pytest.fixture
def appliance_options(
    network: ScriptedNetwork, receiver: WebhookReceiver, other_receiver: WebhookReceiver
) -> dict[str, Any]:
    mounts = {"http://receiver.test": receiver, "http://other.test": other_receiver}
    return {"providers": {"x": network}, "http": Http(mounts=mounts)}


@pytest.fixture
def webhook(rt: Runtime, receiver: WebhookReceiver) -> str:
    """The id of a webhook with the default events."""
    return add_webhook(rt, receiver, URL)


@pytest.fixture
def sender(rt: Runtime, webhook: str) -> Iterator[WebhookSender]:
    sender = WebhookSender(rt, webhook)
    yield sender
    sender.http.close()
