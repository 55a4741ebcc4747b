"""Messages to the owner, the addresses that the owner added, and how far each service has been sent the messages:
`notification`, `notify_address`, `notification_service`.

A service of the configuration is known by a digest of its address. A service that the owner added has the id of its
row, in which the address is sealed.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass
from itertools import count

from socialpub.db.connection import Reader, Row, Tx, placeholders

ADDRESS_PLACE = "notify_address", "url"
"""Table and column of a sealed address."""


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
    """Scheme and host of its address."""
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
    return int(tx.value(_NEWEST))


def count_since(reader: Reader, at: str) -> int:
    return int(reader.value("SELECT count(*) FROM notification WHERE at >= ?", (at,)))


def waiting(reader: Reader, sent_through: int) -> list[Notification]:
    """What a service has not been sent, oldest first."""
    rows = reader.all("SELECT id, at, title, body FROM notification WHERE id > ? ORDER BY id", (sent_through,))
    return [Notification(*row) for row in rows]


def forget_before(tx: Tx, at: str) -> None:
    """Forget messages of before; what was not sent of them is not sent any more."""
    tx.execute("DELETE FROM notification WHERE at < ?", (at,))


def forget_sending(tx: Tx) -> None:
    """Forget every message, and how it went to send them."""
    tx.execute(
        """UPDATE notification_service SET sent_through = ?, failing_since = NULL, tries = 0, next_at = NULL,
            failure = NULL""",
        (_newest(tx),),
    )
    tx.execute("DELETE FROM notification")


def services(store: Reader) -> list[ServiceState]:
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


def note_reached(tx: Tx, service: str, name: str) -> None:
    """Record that the service took a test message. What waits for it is tried at once. A service that no process has
    used yet is known from now on."""
    taken = {one.name for one in services(tx) if one.id != service}
    tx.execute(
        """INSERT INTO notification_service (id, name, sent_through, sent_at) VALUES (?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET sent_at = excluded.sent_at, failing_since = NULL, tries = 0, next_at = NULL,
                failure = NULL""",
        (service, _numbered(name, taken), _newest(tx), tx.stamp),
    )


def note_test_failed(tx: Tx, service: str, name: str, failure: str) -> None:
    """Record that the service refused a test message. What waits for it keeps its time."""
    taken = {one.name for one in services(tx) if one.id != service}
    tx.execute(
        """INSERT INTO notification_service (id, name, sent_through, failing_since, failure) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (id) DO UPDATE SET failing_since = ifnull(failing_since, excluded.failing_since),
                failure = excluded.failure""",
        (service, _numbered(name, taken), _newest(tx), tx.stamp, failure),
    )


def _numbered(name: str, taken: Set[str]) -> str:
    """Return the name, with a number if another service has it."""
    return next(one for number in count(1) if (one := name if number == 1 else f"{name} ({number})") not in taken)


def note_failed(tx: Tx, service: str, failure: str, next_at: str) -> None:
    tx.execute(
        """UPDATE notification_service SET failing_since = ifnull(failing_since, ?), tries = tries + 1, next_at = ?,
            failure = ?, failed = failed + 1 WHERE id = ?""",
        (tx.stamp, next_at, failure, service),
    )


# --- addresses that the owner added ----------------------------------------------------------------------------------


def addresses(store: Reader) -> list[Row]:
    """Return id, name and sealed url of each, oldest first."""
    return store.all("SELECT id, name, url FROM notify_address ORDER BY added_at, id")


def insert_address(tx: Tx, address_id: str, name: str, sealed: bytes) -> None:
    tx.insert("notify_address", id=address_id, name=name, url=sealed, added_at=tx.stamp)


def delete_address(tx: Tx, address_id: str) -> str | None:
    """Remove the address and what is known of its service. Return its name, or None when there is none."""
    row = tx.one("DELETE FROM notify_address WHERE id = ? RETURNING name", (address_id,))
    tx.execute("DELETE FROM notification_service WHERE id = ?", (address_id,))
    return None if row is None else str(row.name)


def lose_addresses(tx: Tx) -> list[str]:
    """Remove every address, because its `secret.key` is lost. Return their names. A database of a version before 0021
    has none."""
    if tx.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'notify_address'") is None:
        return []
    return [name for row in addresses(tx) if (name := delete_address(tx, row.id)) is not None]


@dataclass(frozen=True, slots=True)
class SentAlert:
    """A cause as the owner knows it. Instants are stamps."""

    key: str
    subject: str
    kind: str
    sentence: str
    passes: bool
    since: str
    """When it was found, this time."""
    told_at: str | None = None
    """When the owner was last told that it is there; None when they do not know of this time yet."""
    ended_at: str | None = None
    """Since when it has not been found."""
    returns: int = 0
    """How often it came back, within a day each: it is told later each time."""
    held_back: bool = False
    """The daily limit kept it from being told."""


_ALERT_COLUMNS = "key, subject, kind, sentence, passes, since, told_at, ended_at, returns, held_back"


def sent_alerts(store: Reader) -> dict[str, SentAlert]:
    """All of them by their keys."""
    rows = store.all(f"SELECT {_ALERT_COLUMNS} FROM told_cause ORDER BY since, key")
    return {row.key: _alert(row) for row in rows}


def put_alerts(tx: Tx, causes: Iterable[SentAlert]) -> None:
    """Write these down as they are now."""
    for cause in causes:
        values = asdict(cause)
        tx.execute(
            f"""INSERT INTO told_cause ({_ALERT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (key) DO UPDATE SET sentence = excluded.sentence, since = excluded.since,
                    told_at = excluded.told_at, ended_at = excluded.ended_at, returns = excluded.returns,
                    held_back = excluded.held_back""",
            tuple(int(value) if isinstance(value, bool) else value for value in values.values()),
        )


def has_alerts(tx: Tx) -> bool:
    """Return whether this database knows notifications: one of a version before 0017 does not."""
    return tx.one("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'told_cause'") is not None


def forget_all_alerts(tx: Tx) -> None:
    tx.execute("DELETE FROM told_cause")


def forget_alerts(tx: Tx, keys: Iterable[str]) -> None:
    for key in keys:
        tx.execute("DELETE FROM told_cause WHERE key = ?", (key,))


def _alert(row: Row) -> SentAlert:
    key, subject, kind, sentence, passes, since, told_at, ended_at, returns, held_back = row
    return SentAlert(key, subject, kind, sentence, bool(passes), since, told_at, ended_at, returns, bool(held_back))
