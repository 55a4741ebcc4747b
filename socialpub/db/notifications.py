"""Messages to the owner, and how far each service has been sent them: `notification`, `notification_service`.

A service is known by a digest of its address, which stands in no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from socialpub.db.transaction import Reader, Tx, placeholders


@dataclass(frozen=True, slots=True)
class Notification:
    id: int
    at: str
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class ServiceState:
    """How sending to one service goes. Instants are stamps."""

    id: str
    name: str
    """Its place in the list and what its address begins with."""
    sent_through: int
    """Messages up to this one have been sent to it."""
    sent_at: str | None
    failing_since: str | None
    tries: int
    """How often the next message was tried in vain."""
    next_at: str | None
    """When that is tried again."""
    failure: str | None
    """Why the last try failed, in words."""
    sent: int
    """Messages that it took, ever."""
    failed: int
    """Tries that failed, ever."""
    waiting: int
    """Messages that it has not been sent yet."""


_NEWEST = """SELECT max(ifnull((SELECT max(id) FROM notification), 0),
    ifnull((SELECT max(sent_through) FROM notification_service), 0))"""
"""Old messages go, and no id is used again: the place of a service among them stays right."""


def add(tx: Tx, title: str, body: str) -> None:
    """One more message, for all services."""
    tx.insert("notification", id=1 + _newest(tx), at=tx.stamp, title=title, body=body)


def _newest(tx: Tx) -> int:
    return int(tx.reader.value(_NEWEST))


def count_since(reader: Reader, at: str) -> int:
    return int(reader.value("SELECT count(*) FROM notification WHERE at >= ?", (at,)))


def waiting(reader: Reader, sent_through: int) -> list[Notification]:
    """What a service has not been sent, oldest first."""
    rows = reader.all("SELECT id, at, title, body FROM notification WHERE id > ? ORDER BY id", (sent_through,))
    return [Notification(*row) for row in rows]


def forget_before(tx: Tx, at: str) -> None:
    """Forget messages of before; what was not sent of them is not sent any more."""
    tx.execute("DELETE FROM notification WHERE at < ?", (at,))


def services(store: Reader | Tx) -> list[ServiceState]:
    rows = store.all(
        """SELECT id, name, sent_through, sent_at, failing_since, tries, next_at, failure, sent, failed,
            (SELECT count(*) FROM notification n WHERE n.id > s.sent_through)
            FROM notification_service s ORDER BY name"""
    )
    return [ServiceState(*row) for row in rows]


def set_services(tx: Tx, names: Mapping[str, str]) -> None:
    """These are the services now, by id. A new one is sent what comes from now on."""
    ids, newest = tuple(names), _newest(tx)
    tx.execute(f"DELETE FROM notification_service WHERE id NOT IN ({placeholders(ids)})", ids)
    for id, name in names.items():
        tx.execute(
            """INSERT INTO notification_service (id, name, sent_through) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET name = excluded.name""",
            (id, name, newest),
        )


def note_sent(tx: Tx, service: str, through: int, count: int) -> None:
    """It took so many messages, up to this one."""
    tx.execute(
        """UPDATE notification_service SET sent_through = max(sent_through, ?), sent_at = ?, sent = sent + ?,
            failing_since = NULL, tries = 0, next_at = NULL, failure = NULL WHERE id = ?""",
        (through, tx.stamp, count, service),
    )


def note_reached(tx: Tx, service: str) -> None:
    """It took a message that was a test: what waits is tried at once."""
    tx.execute("UPDATE notification_service SET next_at = NULL WHERE id = ?", (service,))


def note_failed(tx: Tx, service: str, failure: str, next_at: str) -> None:
    tx.execute(
        """UPDATE notification_service SET failing_since = ifnull(failing_since, ?), tries = tries + 1, next_at = ?,
            failure = ?, failed = failed + 1 WHERE id = ?""",
        (tx.stamp, next_at, failure, service),
    )
