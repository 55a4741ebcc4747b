"""The addresses that get events: add, remove and list them, and how far each of them is.

A URL may contain a password, or a token in its path or its query. Lists, pages and log lines show its scheme and host.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import httpx2
from pydantic import SecretStr

from socialpub.core import units
from socialpub.core.clock import new_id, parse
from socialpub.core.errors import Conflict, InvalidRequest, NotFound
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import Database
from socialpub.db.models import WebhookRow
from socialpub.db.tables import audit_log, log_entries, webhooks
from socialpub.db.tables.audit_log import AuditAction
from socialpub.ops.health import Finding, note, ok
from socialpub.runtime import Runtime

EVENTS = ("delivery.published", "delivery.failed", "delivery.canceled", "delivery.pending")
DEFAULT_EVENTS = EVENTS[:3]
MAX_ADDRESSES = 20
"""Each address has its own thread."""
MAX_URL_CHARACTERS = 2048
SECRET_BYTES = 32
LATE = timedelta(hours=1)
LEFT_OUT_SHOWN = timedelta(days=7)
_SECRET_PREFIX = "whsec_"  # noqa: S105  the prefix of all secrets
_TABLE = "webhook"


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """What a call needs. `url` is without the user name and the password."""

    id: str
    url: SecretStr
    key: bytes = field(repr=False)
    auth: tuple[str, str] | None = field(repr=False, default=None)


def parse_url(text: str) -> tuple[SecretStr, str]:
    """Return the URL and its name. Raises InvalidRequest at `url`."""
    text = text.strip()
    try:
        url = httpx2.URL(text)
        name = f"{url.scheme}://{url.netloc.decode('ascii')}"
    except (httpx2.InvalidURL, UnicodeError):
        raise InvalidRequest.at("url", message="is not a URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest.at("url", message="must begin with http:// or https:// and a host")
    if "%" in url.host or (url.port is not None and not 0 < url.port < 65536):
        raise InvalidRequest.at("url", message="must have a valid host and port")
    if len(text) > MAX_URL_CHARACTERS:
        raise InvalidRequest.at("url", message=f"may have at most {MAX_URL_CHARACTERS} characters")
    return SecretStr(text), name


def add(
    rt: Runtime, tx: Database, url: SecretStr, name: str, events: Sequence[str] = DEFAULT_EVENTS
) -> tuple[str, str]:
    """Store an address that `parse_url` accepted. Return its id and its secret. Raises Conflict."""
    if webhooks.count(tx) >= MAX_ADDRESSES:
        raise Conflict(f"There are already {MAX_ADDRESSES} webhooks. Remove a webhook, then add the new webhook.")
    webhook_id, events = new_id(tx.now), [event for event in EVENTS if event in events]
    secret = _SECRET_PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()
    webhooks.insert(
        tx,
        id=webhook_id,
        name=name,
        url=rt.secrets.seal(url.get_secret_value(), _TABLE, webhook_id, "url"),
        secret=rt.secrets.seal(secret, _TABLE, webhook_id, "secret"),
        events=events,
    )
    audit_log.record(tx, AuditAction.WEBHOOK_ADDED, webhook_id, name, events=events)
    return webhook_id, secret


def remove(rt: Runtime, tx: Database, webhook_id: str) -> str:
    """Remove an address. Return its name. Raises NotFound."""
    name = webhooks.delete(tx, webhook_id)
    if name is None:
        raise _unknown()
    audit_log.record(tx, AuditAction.WEBHOOK_REMOVED, webhook_id, name)
    return name


def get(db: Database, webhook_id: str) -> WebhookRow:
    """Raises NotFound."""
    webhook = webhooks.find(db, webhook_id)
    if webhook is None:
        raise _unknown()
    return webhook


def _unknown() -> NotFound:
    return NotFound("No webhook has this id.")


def open_target(rt: Runtime, row: WebhookRow) -> WebhookTarget:
    """Decrypt the URL and the secret. Raises OperatorError."""
    url = httpx2.URL(rt.secrets.open(bytes(row.url), _TABLE, row.id, "url"))
    secret = rt.secrets.open(bytes(row.secret), _TABLE, row.id, "secret")
    auth = (url.username, url.password) if url.userinfo else None
    key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX))
    return WebhookTarget(row.id, SecretStr(str(url.copy_with(userinfo=b""))), key, auth)


def log_types(row: WebhookRow) -> list[str]:
    """Return the types of the log entries that the webhook gets."""
    return [event.removeprefix("delivery.") for event in row.events]


# --- health ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WebhookHealth:
    row: WebhookRow
    lag_seconds: float
    """The age of the oldest event that waits. 0: no event waits."""
    waiting_since: str | None
    """The instant of this event."""

    @property
    def is_late(self) -> bool:
        return self.lag_seconds >= LATE.total_seconds()


def list_health(db: Database, now: datetime) -> list[WebhookHealth]:
    """Return all webhooks, oldest first. After a restore, no event waits until publishing is resumed."""
    restored = appliance_state.restored_from(db) is not None
    return [_read_health(db, now, row, waits=not (restored or row.disabled_at)) for row in webhooks.list_all(db)]


def _read_health(db: Database, now: datetime, row: WebhookRow, *, waits: bool) -> WebhookHealth:
    events = log_entries.list_after(db, row.sent_through, log_types(row), 1) if waits else []
    if not events:
        return WebhookHealth(row, 0.0, None)
    at = events[0][1]
    return WebhookHealth(row, max(clock_jumps.age_seconds(db, now, at), 0.0), at)


def check(db: Database, now: datetime) -> Iterator[Finding]:
    """Yield what is not an alert: events that were left out, and webhooks that work."""
    for webhook in list_health(db, now):
        row = webhook.row
        if row.left_out_at is not None and now - parse(row.left_out_at) < LEFT_OUT_SHOWN:
            were = units.count(row.left_out, "event was", "events were")
            yield note(
                "webhook",
                f"{were} not sent to the webhook {row.name} ({row.id}) within 7 days and left out, the last at "
                f"{row.left_out_at}.",
                "Read these events with GET /api/v1/publish/logs.",
            )
        if not (webhook.is_late or row.disabled_at):
            answer = (
                f"last response: {row.last_response}, at {row.last_response_at}" if row.last_response else "no call yet"
            )
            yield ok("webhook", f"The webhook {row.name} ({row.id}) is not late ({answer}).")
