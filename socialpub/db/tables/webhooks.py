"""Statements about the table `webhook`: the addresses that get events, and how far each of them is."""

from typing import Any

from peewee import fn

from socialpub.db.connection import Database
from socialpub.db.models import WebhookRow
from socialpub.db.tables import log_entries

_WORKS = {"tries": 0, "next_at": None, "failing_since": None}
"""The columns of a webhook whose last call was accepted."""


def list_all(db: Database) -> list[WebhookRow]:
    """Return all webhooks, oldest first."""
    return list(WebhookRow.select().order_by(WebhookRow.added_at, WebhookRow.id).execute(db))


def find(db: Database, webhook_id: str) -> WebhookRow | None:
    return db.get(WebhookRow, webhook_id)


def list_enabled(db: Database) -> list[str]:
    """Return the ids of the webhooks that get events."""
    query = WebhookRow.select(WebhookRow.id).where(WebhookRow.disabled_at.is_null())
    return [webhook_id for (webhook_id,) in query.tuples().execute(db)]


def count(db: Database) -> int:
    return int(WebhookRow.select(fn.COUNT()).scalar(db))


def insert(tx: Database, **columns: Any) -> None:
    """Add a webhook that gets the entries written from now on."""
    beginning = {"added_at": tx.stamp, "sent_through": log_entries.newest_number(tx)}
    tx.insert(WebhookRow, {**beginning, **columns})


def delete(tx: Database, webhook_id: str) -> str | None:
    """Delete the webhook. Return its name, or None."""
    webhook = find(tx, webhook_id)
    tx.delete(WebhookRow, WebhookRow.id == webhook_id)
    return None if webhook is None else webhook.name


def lose_all(tx: Database) -> list[str]:
    """Delete all webhooks, because their `secret.key` is lost. Return their names."""
    return [name for row in list_all(tx) if (name := delete(tx, row.id)) is not None]


def begin_now(tx: Database) -> None:
    """Let every webhook begin with the entries written from now on."""
    WebhookRow.update(sent_through=log_entries.newest_number(tx), **_WORKS).execute(tx)


def oldest_position(db: Database) -> int | None:
    """Return the number of the last log entry that no webhook needs. None: no webhook needs any entry."""
    query = WebhookRow.select(fn.MIN(WebhookRow.sent_through)).where(WebhookRow.disabled_at.is_null())
    number: int | None = query.scalar(db)
    return number


# --- results of calls ------------------------------------------------------------------------------------------------


def note_read(tx: Database, webhook_id: str, through: int) -> None:
    """Record that the webhook needs no entry up to this number."""
    _advance(tx, webhook_id, through)


def note_left_out(tx: Database, webhook_id: str, through: int, count: int) -> None:
    """Record that this number of events became too old."""
    _advance(tx, webhook_id, through, left_out=WebhookRow.left_out + count, left_out_at=tx.stamp)


def note_accepted(tx: Database, webhook_id: str, through: int, response: str) -> None:
    answered = {"last_response": response, "last_response_at": tx.stamp}
    _advance(tx, webhook_id, through, accepted=WebhookRow.accepted + 1, **answered, **_WORKS)


def note_failed(tx: Database, webhook_id: str, response: str, next_at: str) -> None:
    counts = {"tries": WebhookRow.tries + 1, "failed": WebhookRow.failed + 1}
    since = fn.IFNULL(WebhookRow.failing_since, tx.stamp)
    note_response(tx, webhook_id, response, next_at=next_at, failing_since=since, **counts)


def note_gone(tx: Database, webhook_id: str, response: str) -> None:
    """Disable the webhook."""
    disabled_at = fn.IFNULL(WebhookRow.disabled_at, tx.stamp)
    note_response(tx, webhook_id, response, disabled_at=disabled_at, failed=WebhookRow.failed + 1)


def note_response(tx: Database, webhook_id: str, response: str, **columns: Any) -> None:
    _change(tx, webhook_id, last_response=response, last_response_at=tx.stamp, **columns)


def _advance(tx: Database, webhook_id: str, through: int, **columns: Any) -> None:
    _change(tx, webhook_id, sent_through=fn.MAX(WebhookRow.sent_through, through), **columns)


def _change(tx: Database, webhook_id: str, **columns: Any) -> None:
    WebhookRow.update(**columns).where(WebhookRow.id == webhook_id).execute(tx)
