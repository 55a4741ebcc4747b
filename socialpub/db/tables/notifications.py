"""Statements about notifications: the tables `notification`, `notification_service`, `notify_address`, `alert`.

The id of a service in the configuration is a digest of its URL. The id of a service that the owner added is the id of
its row in `notify_address`, with the sealed URL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from peewee import fn

from socialpub.db.connection import Database
from socialpub.db.models import AlertRow, NotificationRow, NotificationServiceRow, NotifyAddressRow

ADDRESS_PLACE = "notify_address", "url"
"""Table and column of a sealed URL."""

# --- messages --------------------------------------------------------------------------------------------------------


def add(tx: Database, title: str, body: str) -> None:
    """Add a message for all services."""
    tx.insert(NotificationRow, {"id": 1 + _newest(tx), "at": tx.stamp, "title": title, "body": body})


def _newest(tx: Database) -> int:
    """Return the last id, including ids of deleted messages, so every id is used once."""
    last = NotificationRow.select(fn.MAX(NotificationRow.id)).scalar(tx)
    sent = NotificationServiceRow.select(fn.MAX(NotificationServiceRow.sent_through)).scalar(tx)
    return max(last or 0, sent or 0)


def count_since(db: Database, at: str) -> int:
    return int(NotificationRow.select(fn.COUNT()).where(NotificationRow.at >= at).scalar(db))


def oldest_waiting(db: Database, sent_through: int) -> NotificationRow:
    """Return the message after the last sent message."""
    query = NotificationRow.select().where(NotificationRow.id > sent_through).order_by(NotificationRow.id).limit(1)
    rows: list[NotificationRow] = list(query.execute(db))
    return rows[0]


# --- services --------------------------------------------------------------------------------------------------------

_WORKS = {"failing_since": None, "next_at": None, "failure": None}
"""The columns of a service without a failure."""


def forget_sending(tx: Database) -> None:
    """Delete all messages and failures."""
    NotificationServiceRow.update(sent_through=_newest(tx), **_WORKS).execute(tx)
    tx.delete(NotificationRow)


def services(db: Database) -> list[NotificationServiceRow]:
    """Return the services, each with the number of `waiting` messages."""
    service = NotificationServiceRow
    waiting = NotificationRow.select(fn.COUNT()).where(NotificationRow.id > service.sent_through)
    return list(service.select(service, waiting.alias("waiting")).order_by(service.name).execute(db))


def set_services(tx: Database, names: Mapping[str, str]) -> None:
    """Store the services by id. A new service receives messages from now on."""
    tx.delete(NotificationServiceRow, NotificationServiceRow.id.not_in(list(names)))
    for id, name in names.items():
        if tx.get(NotificationServiceRow, id) is None:
            tx.insert(NotificationServiceRow, {"id": id, "name": name, "sent_through": _newest(tx)})
        tx.update(NotificationServiceRow, id, name=name)


def note_sent(tx: Database, service_id: str, through: int) -> None:
    """Record that the service accepted the message `through`."""
    service = NotificationServiceRow
    sent_through = fn.MAX(service.sent_through, through)
    _change(tx, service_id, sent_through=sent_through, sent_at=tx.stamp, sent=service.sent + 1, **_WORKS)


def note_try(tx: Database, service_id: str, next_at: str) -> None:
    """Record when the service is tried again if the result of this try is not recorded."""
    _change(tx, service_id, next_at=next_at)


def note_failed(tx: Database, service_id: str, failure: str) -> None:
    failed = NotificationServiceRow.failed + 1
    _change(tx, service_id, failure=failure, failing_since=_since(tx), failed=failed)


def _change(tx: Database, service_id: str, **columns: Any) -> None:
    NotificationServiceRow.update(**columns).where(NotificationServiceRow.id == service_id).execute(tx)


def _since(tx: Database) -> object:
    return fn.IFNULL(NotificationServiceRow.failing_since, tx.stamp)


def note_tested(tx: Database, service_id: str, failure: str | None) -> None:
    """Record the result of a test message. After a success, waiting messages are sent at once."""
    if failure is None:
        _change(tx, service_id, sent_at=tx.stamp, **_WORKS)
    else:
        _change(tx, service_id, failing_since=_since(tx), failure=failure)


# --- addresses that the owner added ----------------------------------------------------------------------------------


def addresses(db: Database) -> list[NotifyAddressRow]:
    return list(NotifyAddressRow.select().order_by(NotifyAddressRow.added_at, NotifyAddressRow.id).execute(db))


def delete_address(tx: Database, address_id: str) -> str | None:
    """Delete the address and its service. Return its name, or None."""
    address = tx.get(NotifyAddressRow, address_id)
    tx.delete(NotifyAddressRow, NotifyAddressRow.id == address_id)
    tx.delete(NotificationServiceRow, NotificationServiceRow.id == address_id)
    return None if address is None else address.name


def lose_addresses(tx: Database) -> list[str]:
    """Delete all addresses, because their `secret.key` is lost. Return their names."""
    return [name for row in addresses(tx) if (name := delete_address(tx, row.id)) is not None]


# --- alerts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentAlert:
    """A row of `alert` as a value for decisions (`ops/notify/notifier.py`). Instants are stamps."""

    key: str
    kind: str
    sentence: str
    is_event: bool
    since: str
    sent_at: str | None = None
    ended_at: str | None = None


def sent_alerts(db: Database) -> dict[str, SentAlert]:
    """Return every alert by its key."""
    rows = AlertRow.select().order_by(AlertRow.since, AlertRow.key).tuples().execute(db)
    return {row[0]: SentAlert(*row) for row in rows}


def replace_alerts(tx: Database, alerts: Iterable[SentAlert]) -> None:
    """Store these alerts instead of the present ones."""
    tx.delete(AlertRow)
    for alert in alerts:
        tx.insert(AlertRow, asdict(alert))
