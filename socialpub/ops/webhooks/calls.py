"""One call of a webhook, signed as Standard Webhooks 1.0 requires (https://www.standardwebhooks.com).

Certificates and proxies are those of the calls to networks. Redirects are not followed, because a redirect would carry
the event to an address that the owner did not add.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import datetime

from socialpub.core.clock import new_id, stamp
from socialpub.core.errors import Conflict
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.tables import webhooks
from socialpub.ops.webhooks import receivers
from socialpub.ops.webhooks.receivers import WebhookTarget
from socialpub.providers.http import Http
from socialpub.providers.responses import ProviderError
from socialpub.runtime import Runtime

SECONDS = 10.0
"""The deadline of a call, from the DNS lookup to the head of the response."""
TEST_EVENT = "webhook.test"
GONE = 410


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """`status` is None without a response. `text` is the status, or the reason."""

    status: int | None
    text: str

    @property
    def accepted(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        return self.status == GONE


def call(http: Http, target: WebhookTarget, message_id: str, body: bytes, now: datetime) -> WebhookResponse:
    """Send one event. Blocks for at most `SECONDS`."""
    timestamp = int(now.timestamp())
    try:
        response = http.call(
            "POST",
            target.url.get_secret_value(),
            headers={
                "content-type": "application/json",
                "webhook-id": message_id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": sign(target.key, message_id, timestamp, body),
            },
            auth=target.auth,
            content=body,
            deadline_seconds=SECONDS,
            reads_body=False,
        )
    except ProviderError as error:
        return WebhookResponse(None, error.message.removesuffix("."))
    redirects = 300 <= response.status < 400
    return WebhookResponse(response.status, f"{response.status}{' (redirects are not followed)' if redirects else ''}")


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature: version 1, HMAC-SHA256."""
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()}"


def send_test(rt: Runtime, webhook_id: str) -> WebhookResponse:
    """Send a test event and record the response. Blocks. Raises NotFound, and Conflict after a restore."""
    row = receivers.get(rt.db, webhook_id)
    if appliance_state.restored_from(rt.db) is not None:
        raise Conflict("This installation was restored from a backup. It calls no webhook until publishing is resumed.")
    now = rt.now()
    body = {"type": TEST_EVENT, "timestamp": stamp(now), "data": {"webhookId": webhook_id}}
    http = rt.http.separate(lookups=1)
    try:
        target = receivers.open_target(rt, row)
        response = call(http, target, new_id(now), json.dumps(body, separators=(",", ":")).encode(), now)
    finally:
        http.close()
    rt.write(_record_test, webhook_id, response)
    return response


def _record_test(rt: Runtime, tx: Database, webhook_id: str, response: WebhookResponse) -> None:
    record = webhooks.note_gone if response.gone else webhooks.note_response
    record(tx, webhook_id, response.text)
