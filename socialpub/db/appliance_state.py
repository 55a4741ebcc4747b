"""The key-value table `appliance`: the few facts about this installation as a whole.

Each name is defined here once. Values are texts. Times are stamps (`core/clock.py`).
"""

import json
from typing import Protocol

from socialpub.db.connection import Reader, Tx, Value

PAUSED_AT = "paused_at"
"""Since when no delivery starts. Absent while publishing goes on."""

RESTORED_FROM = "restored_from"
"""The instant of the copy that this installation was restored from, until it has been resumed."""

RESTORES = "restores"
"""JSON: for each restore that this database has gone through, the instant of its backup, the first one first. Null: the
owner said that no other installation has sent anything since."""

RESUMED_RESTORES = "resumed_restores"
"""How many of these restores the owner has resumed. Absent: none."""

ORIGINAL_UNTIL = "original_until"
"""The instant of the backup that this database was restored from: its original reports what failed up to then."""

RESTORED_KEYS = "restored_keys"
"""JSON: ids of the API keys that came with a restored backup, until the owner keeps or revokes them."""

UNTRUSTED_PROXIES = "untrusted_proxies"
"""JSON: peers that sent X-Forwarded-For and are not trusted (`ops/doctor/addresses.py`)."""

BACKED_UP_AT = "copied_at"
"""The instant of the last backup."""

BACKUP_FAILED_AT = "copy_failed_at"
"""When a copy was to be made later, and was not."""

BACKUP_FAILURE = "copy_failure"
"""Why it was not, as sentences."""

SCHEDULED_BACKUP = "scheduled_copy"
"""The last copy in the folder for scheduled ones (JSON)."""

HEARTBEAT = "heartbeat"
"""When a worker last showed that it lives and can write."""

WORKER = "worker"
"""What the worker said of itself with its last heartbeat (JSON, `ops/health.py`)."""

CLOCK = "clock"
"""What is known of the wall clock (JSON, `db/clock_jumps.py`)."""

FAILURES_ALERTED = "failures_told"
"""The last log entry whose failed delivery the owner was alerted to."""

WORKER_AWAY = "worker_away"
"""When a worker came back that had been away for long, and since when (JSON, `ops/notify/messages.py`)."""

WORKER_ENDED_AT = "worker_ended_at"
"""When the last worker ended in order. Absent while one runs."""

HOUSEKEPT_AT = "housekept_at"
"""When housekeeping last came to its end."""

READINESS = "readiness"
"""When readiness last tried a write."""

VERSION = "version"
"""The version of socialpub that last brought this database up to date or delivered from it. Absent: 1.0.0."""

INSTANCE_ID = "instance_id"
"""Which installation this is."""

UPGRADE_BACKUP_OF = "upgrade_copy_of"
"""Only in a copy from before an upgrade (`db/upgrade_backups.py`): the instant that it is of."""

SECRET_KEY = "secret_key"  # noqa: S105  a name, no secret
"""The check value of the `secret.key` that seals this database's tokens."""

SECRET_ROTATED_AT = "secret_rotated_at"  # noqa: S105  a name, no secret
"""When `secret.key` was last changed for another one that is at hand."""

FORMER_URL_KEYS = "former_url_keys"
"""JSON: the keys, sealed, with which addresses were signed before that, and until when those count."""

FORMER_SECRET_KEYS = "former_secret_keys"  # noqa: S105  a name, no secret
"""JSON: the check values of the keys that this database belonged to before."""

TOKEN_SPACE = "token_space"  # noqa: S105  a name, no secret
"""Random text of the size of a pair of tokens: its write shows that the disk can store one."""

PASSWORD = "password"  # noqa: S105  a name, no secret
"""The argon2 hash of the dashboard's password."""


class Writable(Protocol):
    """A `Tx`, or the connection to a backup."""

    def execute(self, sql: str, params: tuple[Value, ...] = ..., /) -> object: ...


def get(store: Reader, name: str) -> str | None:
    row = store.one("SELECT value FROM appliance WHERE name = ?", (name,))
    return None if row is None else str(row[0])


def put(tx: Writable, name: str, value: str) -> None:
    tx.execute(
        "INSERT INTO appliance (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def put_if_absent(tx: Writable, name: str, value: str) -> None:
    tx.execute("INSERT INTO appliance (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))


def put_earliest(tx: Writable, name: str, at: str) -> None:
    """Keep the earlier of two stamps."""
    tx.execute(
        """INSERT INTO appliance (name, value) VALUES (?, ?)
            ON CONFLICT (name) DO UPDATE SET value = min(value, excluded.value)""",
        (name, at),
    )


def remove(tx: Writable, name: str) -> None:
    tx.execute("DELETE FROM appliance WHERE name = ?", (name,))


def paused_at(store: Reader) -> str | None:
    """Since when nothing starts, or None."""
    return get(store, PAUSED_AT)


def restored_from(store: Reader) -> str | None:
    """The instant of the copy that this installation was restored from, until it has been resumed; else None."""
    return get(store, RESTORED_FROM)


def restores(store: Reader) -> list[str | None]:
    """The instant of the backup of each restore, the first one first; None where nothing was sent since."""
    found: list[str | None] = json.loads(get(store, RESTORES) or "[]")
    return found


def note_restore(tx: Tx, backed_up_at: str) -> None:
    """Record one more restore, from a backup of that instant. Without a resume in between, the unknown time begins with
    the first backup."""
    former = restored_from(tx)
    known = restores(tx) or ([former] if former else [])  # former versions keep no list
    put(tx, RESTORES, json.dumps([*known, backed_up_at]))
    put_earliest(tx, RESTORED_FROM, backed_up_at)


def end_restore(tx: Tx, *, nothing_was_sent: bool) -> None:
    """Record that the restored appliance was resumed. `nothing_was_sent`: no other one has sent anything since the
    backup. This word is not about the restores that were resumed before."""
    known = restores(tx)
    if nothing_was_sent:
        resumed = int(get(tx, RESUMED_RESTORES) or 0)
        known[resumed:] = [None] * (len(known) - resumed)
        put(tx, RESTORES, json.dumps(known))
    put(tx, RESUMED_RESTORES, str(len(known)))
    remove(tx, RESTORED_FROM)
