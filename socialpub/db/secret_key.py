"""Binds a database to its `secret.key`, so a start detects a wrong key before any token is decrypted."""

import base64
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from peewee import fn

from socialpub.core import commands, durable_files
from socialpub.core.errors import OperatorError
from socialpub.core.secrets import crypto
from socialpub.core.secrets.crypto import Secrets
from socialpub.db import appliance_state, upgrade
from socialpub.db.connection import Database, open_file
from socialpub.db.models import ApplianceRow, ConsentRow, NotifyAddressRow, ProfileRow, WebhookRow
from socialpub.db.tables import delivery_rows


def lost_key_hint() -> str:
    """Return the hint for a database whose key is lost."""
    new = commands.line("init", "--new-secret")
    return (
        f"If the other key is lost, move this key to another folder and run `{new}`. The command lists the lost data."
    )


def check_key(db: Database, secrets: Secrets) -> None:
    """Raise OperatorError for a database that belongs to another key. Call this before any write."""
    if _bound_key(db) not in (None, secrets.check_value):
        raise OperatorError(
            "The database belongs to another secret.key.", f"Restore the secret.key of this database. {lost_key_hint()}"
        )


def _bound_key(db: Database) -> str | None:
    """Return the check value of the key that the database belongs to. None: the database is new."""
    return appliance_state.get(db, appliance_state.SECRET_KEY) if db.table_exists(ApplianceRow) else None


def bind_key(db: Database, secrets: Secrets) -> None:
    """Bind a new database to the key."""
    if appliance_state.get(db, appliance_state.SECRET_KEY) is None:
        appliance_state.put_if_absent(db, appliance_state.SECRET_KEY, secrets.check_value)


NEXT = ".new"
_PLACE = ("appliance", appliance_state.FORMER_URL_KEYS, "value")


def next_key_file(key_file: Path) -> Path:
    return key_file.with_name(key_file.name + NEXT)


def finish_rotation(key_file: Path, database: Path, run_dir: Path) -> None:
    """Finish or undo an interrupted change of `key_file`. Call this before the key is loaded. Raise OperatorError."""
    following = next_key_file(key_file)
    if not following.exists():
        return
    with upgrade.exclusive(run_dir):
        if not following.exists():  # another process was faster
            return
        try:
            at = _bound_since(database, following)
            if at is not None:
                swap_key_files(key_file, at)
            else:
                following.unlink()
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(
                f"A change of {key_file} was interrupted and cannot be finished: {error}.",
                f"Check the disk and the owner of the folder. Keep {following}: the database may already use this key.",
            ) from error


def _bound_since(database: Path, key_file: Path) -> str | None:
    """Return the instant since which the database belongs to this key. None: the database belongs to another key."""
    if not database.exists():
        return None
    with open_file(database, "rw") as db:
        bound = _bound_key(db)
        at = None if bound is None else appliance_state.get(db, appliance_state.SECRET_ROTATED_AT)
        return at if at is not None and crypto.load(key_file).check_value == bound else None


def swap_key_files(key_file: Path, at: str) -> Path:
    """Replace the key by the next key. Return the file of the previous key. `at` is the instant of the change."""
    former = key_file.with_name(f"{key_file.name}.until-{at.replace(':', '').replace('-', '')}")
    if key_file.exists():
        former.unlink(missing_ok=True)  # an incomplete file of an interrupted change
        with durable_files.create(former) as file:
            file.write(key_file.read_bytes())
            durable_files.flush(file)
        durable_files.flush_folder(key_file.parent)
    next_key_file(key_file).replace(key_file)
    durable_files.flush_folder(key_file.parent)
    return former


# --- sealed values ---------------------------------------------------------------------------------------------------

_SEALED = (
    ProfileRow.access_token,
    ProfileRow.refresh_token,
    ConsentRow.verifier,
    NotifyAddressRow.url,
    WebhookRow.url,
    WebhookRow.secret,
)


def reseal(tx: Database, reseal: Callable[[bytes, str, str, str], bytes]) -> None:
    """Replace every sealed value by `reseal(sealed, table, id, column)`."""
    for column in _SEALED:
        model = column.model
        for row_id, sealed in list(model.select(model.id, column).where(fn.LENGTH(column) > 0).tuples().execute(tx)):
            resealed = reseal(bytes(sealed), model._meta.table_name, row_id, column.name)
            tx.update(model, row_id, **{column.name: resealed})
    delivery_rows.reseal(tx, reseal)


# --- signed URLs of earlier keys -------------------------------------------------------------------------------------


def keep_urls(tx: Database, old: Secrets, new: Secrets, until: int) -> None:
    """Store the sealed URL key of `old`: its signed URLs stay valid until they expire, at most until `until`."""
    keys = [(key, ends) for key, ends in _former(tx, old) if ends > tx.now.timestamp()]
    keys.append((old.url_key, until))
    sealed = [[new.seal(base64.b64encode(key).decode(), *_PLACE).decode(), ends] for key, ends in keys]
    appliance_state.put(tx, appliance_state.FORMER_URL_KEYS, json.dumps(sealed))


def accept_former_urls(db: Database, secrets: Secrets) -> None:
    """Accept signed URLs of earlier keys until the URLs expire."""
    for key, until in _former(db, secrets):
        secrets.accept_urls(key, until)


def _former(db: Database, secrets: Secrets) -> list[tuple[bytes, int]]:
    keys = []
    for sealed, until in json.loads(appliance_state.get(db, appliance_state.FORMER_URL_KEYS) or "[]"):
        try:
            keys.append((base64.b64decode(secrets.open(sealed.encode(), *_PLACE)), int(until)))
        except OperatorError:
            continue  # the key was lost, and these URLs are no longer valid
    return keys
