"""The key-value table `appliance`, with facts about the whole installation.

This module defines each name. Values are texts. Times are stamps (`core/clock.py`).
"""

import json

from socialpub.db.connection import Database
from socialpub.db.models import ApplianceRow

PAUSED_AT = "paused_at"
"""When publishing was paused. Absent: publishing is not paused."""
RESTORED_FROM = "restored_from"
"""The instant of the restored backup, until publishing is resumed."""
RESTORES = "restores"
"""JSON: the instants of all restored backups, oldest restore first. Null: the owner confirmed that no other
installation has published since."""
RESUMED_RESTORES = "resumed_restores"
"""The number of these restores that the owner has resumed. Absent: none."""
ORIGINAL_UNTIL = "original_until"
"""The instant of the restored backup. The original installation reports failures up to this instant."""
RESTORED_KEYS = "restored_keys"
"""JSON: ids of the API keys from a restored backup, until the owner keeps or revokes them."""
UNTRUSTED_PROXIES = "untrusted_proxies"
"""JSON: untrusted peers that sent X-Forwarded-For (`ops/doctor/reachability.py`)."""
BACKED_UP_AT = "backed_up_at"
"""The instant of the last backup."""
BACKUP_FAILED_AT = "backup_failed_at"
"""When a scheduled backup after the last backup failed."""
BACKUP_FAILURE = "backup_failure"
"""Why that backup failed, in sentences."""
SCHEDULED_BACKUP = "scheduled_backup"
"""JSON: the last scheduled backup."""
HEARTBEAT = "heartbeat"
"""When a worker last wrote to the database."""
WORKER = "worker"
"""JSON: the worker's report with its last heartbeat (`ops/health.py`)."""
CLOCK = "clock"
"""JSON: the state of the wall clock (`db/clock_jumps.py`)."""
LOG_ORDER = "log_order"
"""JSON: how far the log is out of order (`db/tables/log_entries.py`). Absent: it is in the order of time."""
FAILURES_ALERTED = "failures_alerted"
"""The last log entry of a failure about which the owner was alerted."""
HOUSEKEPT_AT = "housekept_at"
"""When housekeeping last ended."""
READINESS = "readiness"
"""When readiness last tried a write."""
VERSION = "version"
"""The version of socialpub that created or last upgraded this database."""
INSTANCE_ID = "instance_id"
SECRET_KEY = "secret_key"  # noqa: S105  a name, no secret
"""The check value of the `secret.key` that seals this database's tokens."""
SECRET_ROTATED_AT = "secret_rotated_at"  # noqa: S105  a name, no secret
"""When `secret.key` was last rotated."""
FORMER_URL_KEYS = "former_url_keys"
"""JSON: the sealed URL keys of earlier `secret.key` files, and the ends of their URLs' validity."""
TOKEN_SPACE = "token_space"  # noqa: S105  a name, no secret
"""Random text of the size of two tokens. Its write shows that the disk can store new tokens."""
PASSWORD = "password"  # noqa: S105  a name, no secret
"""The argon2 hash of the dashboard's password."""


def get(db: Database, name: str) -> str | None:
    row = db.get(ApplianceRow, name)
    return None if row is None else row.value


def put(tx: Database, name: str, value: str) -> None:
    if get(tx, name) is None:
        tx.insert(ApplianceRow, {"name": name, "value": value})
    else:
        tx.update(ApplianceRow, name, value=value)


def put_if_absent(tx: Database, name: str, value: str) -> None:
    if get(tx, name) is None:
        put(tx, name, value)


def put_earliest(tx: Database, name: str, at: str) -> None:
    """Keep the earlier of two stamps."""
    put(tx, name, min(at, get(tx, name) or at))


def remove(tx: Database, name: str) -> None:
    tx.delete(ApplianceRow, ApplianceRow.name == name)


def paused_at(db: Database) -> str | None:
    return get(db, PAUSED_AT)


def restored_from(db: Database) -> str | None:
    return get(db, RESTORED_FROM)


def restores(db: Database) -> list[str | None]:
    stored = get(db, RESTORES)
    return [] if stored is None else list(json.loads(stored))


def note_restore(tx: Database, backed_up_at: str) -> None:
    """Record a restore of a backup of this instant. The earliest backup counts until a resume."""
    put(tx, RESTORES, json.dumps([*restores(tx), backed_up_at]))
    put_earliest(tx, RESTORED_FROM, backed_up_at)


def end_restore(tx: Database, *, nothing_was_sent: bool) -> None:
    """Record that publishing was resumed after a restore.

    `nothing_was_sent`: no other installation has published since the backup. Earlier resumed restores do not change.
    """
    instants = restores(tx)
    if nothing_was_sent:
        resumed = int(get(tx, RESUMED_RESTORES) or 0)
        instants[resumed:] = [None] * (len(instants) - resumed)
        put(tx, RESTORES, json.dumps(instants))
    put(tx, RESUMED_RESTORES, str(len(instants)))
    remove(tx, RESTORED_FROM)
