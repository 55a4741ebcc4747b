"""The webhook receiver of the manual accepts what Standard Webhooks' own library signs, and nothing else."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import HTTPServer
from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from tests.integration.callers.conftest import example

SECRET = "whsec_" + "c2VjcmV0" * 5 + "c2U="
LAST_LINE = 'HTTPServer(("127.0.0.1", 9000), Receiver).serve_forever()\n'
EVENT = {"type": "delivery.published", "data": {"releaseUrl": "https://x.example/1", "last": True}}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The program of the manual on a free port."""
    monkeypatch.setenv("WEBHOOK_SECRET", SECRET)
    program = example("Webhooks", "python")
    assert program.endswith(LAST_LINE)
    names: dict[str, Any] = {"__name__": "receiver"}
    exec(compile(program.removesuffix(LAST_LINE), "receiver.py", "exec"), names)
    names["Receiver"].log_message = lambda *_: None
    with HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def send(address: str, *, secret: str = SECRET, at: datetime | None = None, body: str = json.dumps(EVENT)) -> int:
    at = at or datetime.now(UTC)
    signature = Webhook(secret).sign("msg_1", at, json.dumps(EVENT))
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}
    return httpx2.post(address, content=body, headers=headers, trust_env=False, verify=False).status_code


def test_the_receiver_accepts_a_signed_event_and_prints_it(receiver, capsys):
    assert send(receiver) == 204
    assert capsys.readouterr().out == "delivery.published https://x.example/1\n"


def test_the_receiver_refuses_what_is_forged_or_old(receiver, capsys):
    assert send(receiver, secret="whsec_" + "Zm9yZ2Vk" * 5) == 401
    assert send(receiver, body=json.dumps({**EVENT, "type": "delivery.failed"})) == 401
    assert send(receiver, at=datetime.now(UTC) - timedelta(minutes=6)) == 401
    assert capsys.readouterr().out == ""
