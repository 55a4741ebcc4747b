"""Statements about notifications: the tables `notification`, `notification_service`, `notify_address`, `told_cause`.

The id of a service in the configuration is a digest of its URL. The id of a service that the owner added is the id of
its row in `notify_address`, with the sealed URL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from peewee import fn

from socialpub.db.connection import Database
from socialpub.db.models import NotificationRow, NotificationServiceRow, NotifyAddressRow, ToldCauseRow

ADDRESS_PLACE = "notify_address", "url"
"""Table and column of a sealed URL."""

# --- messages --------------------------------------------------------------------------------------------------------


def add(tx: Database, title: str, body: str) -> None:
    """Add a message for all services."""
    tx.insert(NotificationRow, {"id": 1 + _newest(tx), "at": tx.stamp, "title": title, "body": body})


def _newest(tx: Database) -> int:
    """Return the last id, including ids of deleted messages, so every id is used once."""
    last = tx.scalar(NotificationRow.select(fn.MAX(NotificationRow.id)))
    sent = tx.scalar(NotificationServiceRow.select(fn.MAX(NotificationServiceRow.sent_through)))
    return max(last or 0, sent or 0)


def count_since(reader: Database, at: str) -> int:
    return int(reader.scalar(NotificationRow.select(fn.COUNT()).where(NotificationRow.at >= at)))


def waiting(reader: Database, sent_through: int) -> list[NotificationRow]:
    """Return the messages after the last sent message, oldest first."""
    return reader.rows(NotificationRow.select().where(NotificationRow.id > sent_through).order_by(NotificationRow.id))


# --- services --------------------------------------------------------------------------------------------------------

_WORKS = {"failing_since": None, "tries": 0, "next_at": None, "failure": None}
"""The columns of a service without a failure."""


def forget_sending(tx: Database) -> None:
    """Delete all messages and failures."""
    tx.run(NotificationServiceRow.update(sent_through=_newest(tx), **_WORKS))
    tx.delete(NotificationRow)


def services(reader: Database) -> list[NotificationServiceRow]:
    """Return the services, each with the number of `waiting` messages."""
    service = NotificationServiceRow
    waiting = NotificationRow.select(fn.COUNT()).where(NotificationRow.id > service.sent_through)
    return reader.rows(service.select(service, waiting.alias("waiting")).order_by(service.name))


def set_services(tx: Database, names: Mapping[str, str]) -> None:
    """Store the services by id. A new service receives messages from now on."""
    tx.delete(NotificationServiceRow, NotificationServiceRow.id.not_in(list(names)))
    for id, name in names.items():
        _insert_if_new(tx, id, name)
        tx.update(NotificationServiceRow, id, name=name)


def _insert_if_new(tx: Database, id: str, name: str) -> None:
    tx.run(NotificationServiceRow.insert(id=id, name=name, sent_through=_newest(tx)).on_conflict_ignore())


def note_sent(tx: Database, service_id: str, through: int, count: int) -> None:
    """Record that the service accepted `count` messages, up to the message `through`."""
    service = NotificationServiceRow
    sent_through = fn.MAX(service.sent_through, through)
    _change(tx, service_id, sent_through=sent_through, sent_at=tx.stamp, sent=service.sent + count, **_WORKS)


def note_failed(tx: Database, service_id: str, failure: str, next_at: str) -> None:
    service = NotificationServiceRow
    counts = {"tries": service.tries + 1, "failed": service.failed + 1}
    _change(tx, service_id, next_at=next_at, failure=failure, failing_since=_since(tx), **counts)


def _change(tx: Database, service_id: str, **columns: Any) -> None:
    NotificationServiceRow.update(**columns).where(NotificationServiceRow.id == service_id).execute(tx)


def _since(tx: Database) -> object:
    return fn.IFNULL(NotificationServiceRow.failing_since, tx.stamp)


def note_tested(tx: Database, service_id: str, name: str, failure: str | None) -> None:
    """Record the result of a test message, even for a new service. After a success, waiting messages are sent at
    once."""
    others = NotificationServiceRow.select(NotificationServiceRow.name).where(NotificationServiceRow.id != service_id)
    taken = {row[0] for row in tx.tuples(others)}
    numbered = next(one for number in count(1) if (one := name if number == 1 else f"{name} ({number})") not in taken)
    _insert_if_new(tx, service_id, numbered)
    if failure is None:
        tx.update(NotificationServiceRow, service_id, sent_at=tx.stamp, **_WORKS)
    else:
        _change(tx, service_id, failing_since=_since(tx), failure=failure)


# --- addresses that the owner added ----------------------------------------------------------------------------------


def addresses(reader: Database) -> list[NotifyAddressRow]:
    return reader.rows(NotifyAddressRow.select().order_by(NotifyAddressRow.added_at, NotifyAddressRow.id))


def delete_address(tx: Database, address_id: str) -> str | None:
    """Delete the address and its service. Return its name, or None."""
    found = tx.get(NotifyAddressRow, address_id)
    tx.delete(NotifyAddressRow, NotifyAddressRow.id == address_id)
    tx.delete(NotificationServiceRow, NotificationServiceRow.id == address_id)
    return None if found is None else found.name


def lose_addresses(tx: Database) -> list[str]:
    """Delete all addresses, because their `secret.key` is lost. Return their names."""
    return [name for row in addresses(tx) if (name := delete_address(tx, row.id)) is not None]


# --- alerts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentAlert:
    """A row of `told_cause` as a value for decisions (`ops/notify/schedule.py`). Instants are stamps."""

    key: str
    subject: str
    kind: str
    sentence: str
    passes: bool
    since: str
    told_at: str | None = None
    ended_at: str | None = None
    returns: int = 0
    held_back: bool = False


def sent_alerts(reader: Database) -> dict[str, SentAlert]:
    """Return every alert by its key."""
    rows = reader.tuples(ToldCauseRow.select().order_by(ToldCauseRow.since, ToldCauseRow.key))
    return {row[0]: SentAlert(*row) for row in rows}


def put_alerts(tx: Database, alerts: Iterable[SentAlert]) -> None:
    """Store these alerts as they are now."""
    for alert in alerts:
        tx.run(ToldCauseRow.insert(**asdict(alert)).on_conflict_replace())
