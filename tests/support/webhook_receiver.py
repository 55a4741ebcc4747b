"""The receiver of webhooks: as a transport, verified with the official library on the clock of the test."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import standardwebhooks.webhooks as library

from socialpub.ops.webhooks import receivers
from socialpub.ops.webhooks.sender import WebhookSender
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock

HANGS = 0
"""An answer that never comes."""


class WebhookReceiver(httpx2.AsyncBaseTransport):
    """Accepts every event, or gives the `answers` in turn: a status, or `HANGS`."""

    def __init__(self) -> None:
        self.secret = ""
        self.answers: list[int] = []
        self.requests: list[httpx2.Request] = []
        self.tries: list[tuple[str, dict[str, Any]]] = []
        """The id and the body of each verified try."""
        self.taken: list[tuple[str, dict[str, Any]]] = []
        """Those that were accepted."""
        self.asked = threading.Event()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        body = b"".join([piece async for piece in request.stream])
        self.requests.append(request)
        event = library.Webhook(self.secret).verify(body, dict(request.headers))
        message = request.headers["webhook-id"], event
        self.tries.append(message)
        self.asked.set()
        status = self.answers.pop(0) if self.answers else 204
        if status == HANGS:
            await asyncio.Event().wait()
        if 200 <= status < 300:
            self.taken.append(message)
        return httpx2.Response(status, headers={"location": "http://elsewhere.test/"}, stream=_Unread())

    @property
    def bodies(self) -> list[str | None]:
        return [event["data"].get("postBody") for _, event in self.taken]


class _Unread(httpx2.AsyncByteStream):
    """A body that must not be read."""

    async def __aiter__(self) -> Any:
        raise AssertionError("the body of the response was read")
        yield b""


def follow_clock(monkeypatch: pytest.MonkeyPatch, clock: HandClock) -> None:
    """Let the library compare the time of each try with the clock of the test."""

    class Now(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return clock.now().astimezone(tz or UTC)

    monkeypatch.setattr(library, "datetime", Now)


def add_webhook(rt: Runtime, receiver: WebhookReceiver, url: str, *events: str) -> str:
    """Return the id."""
    webhook_id, receiver.secret = rt.write(receivers.add, *receivers.parse_url(url), events or receivers.DEFAULT_EVENTS)
    return str(webhook_id)


def send_due(sender: WebhookSender, rounds: int = 100) -> None:
    """Send until nothing is due."""
    for _ in range(rounds):
        if sender.run_once() != 0.0:
            return
    raise AssertionError("the webhook does not come to rest")
