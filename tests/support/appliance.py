"""A whole appliance in a temporary folder: settings, key, database, networks of the test's choice."""

import base64
import json
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from socialpub.accounts import connect
from socialpub.accounts.api_keys import Caller
from socialpub.accounts.tokens import Credentials
from socialpub.core.clock import new_id
from socialpub.core.settings.loader import Settings
from socialpub.core.settings.schema import ProvidersSection
from socialpub.db import upgrade
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow, ProfileRow
from socialpub.db.states import Committing, State
from socialpub.db.tables import delivery_rows, post_rows
from socialpub.db.tables.waits import WaitReason
from socialpub.providers.auth import Identity
from socialpub.providers.base import Provider
from socialpub.providers.http import Http
from socialpub.publishing.delivery.settle import Settlement
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.details import list_waits, load_attempts, load_details
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime, build
from tests.support.hand_clock import HandClock
from tests.support.select import select_value

OWNER = Caller("test", "write")


def settings_in(folder: Path, **sections: Any) -> Settings:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    key = data / "secret.key"
    if not key.exists():
        key.write_text(base64.urlsafe_b64encode(b"k" * 32).decode())
        key.chmod(0o600)
    return Settings(data_dir=data, **sections)


def open_appliance(
    folder: Path,
    clock: HandClock,
    *,
    providers: Mapping[str, Provider] | None = None,
    networks: ProvidersSection | None = None,
    http: Http | None = None,
    **sections: Any,
) -> Runtime:
    """`networks` are the sections of the configuration, `providers` replace the adapters."""
    if networks is not None:
        sections["providers"] = networks
    settings = settings_in(folder, **sections)
    if not settings.database_file.exists():
        settings.database_file.write_bytes(_new_database(upgrade.MIGRATIONS))
    rt = build(settings, clock=clock, http=http, role="test")
    rt.providers.update(providers or {})
    return rt


@cache
def _new_database(_migrations: Path) -> bytes:
    """Return an empty database with these migrations and no appliance in it. Migrating in each test took longer than
    most of the tests."""
    with tempfile.TemporaryDirectory() as name:
        build(settings := settings_in(Path(name)), clock=HandClock(), role="test").close()
        with closing(sqlite3.connect(settings.database_file)) as connection, connection:
            connection.execute("DELETE FROM appliance")
        with closing(sqlite3.connect(settings.database_file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return settings.database_file.read_bytes()


def connect_again(rt: Runtime) -> None:
    """The owner connects the account of `add_profile` again."""
    identity, grant = Identity("acct", "demo", "Demo", None), Credentials("access-9", "refresh-9")
    rt.write(connect.store, rt.providers["x"], identity, grant, None)


def add_profile(
    rt: Runtime,
    provider: str = "x",
    account_id: str = "acct",
    tokens: tuple[str, str | None] = ("access-0", "refresh-0"),
    **columns: Any,
) -> str:
    """A profile with tokens that last; its id."""
    profile_id = new_id(rt.now())

    def insert(tx: Database) -> None:
        values: dict[str, Any] = {
            "id": profile_id,
            "provider": provider,
            "account_id": account_id,
            "name": f"{provider} profile",
            "status": "active",
            "username": "demo",
            "created_at": tx.stamp,
            "updated_at": tx.stamp,
        }
        for column, token in zip(("access_token", "refresh_token"), tokens, strict=True):
            values[column] = None if token is None else rt.secrets.seal(token, "profile", profile_id, column)
        tx.insert(ProfileRow, {**values, **columns})

    rt.db.write(insert)
    return profile_id


def accept(
    rt: Runtime,
    *profiles: str,
    body: str | None = "Hello",
    at: datetime | None = None,
    media: tuple[DraftMedia, ...] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    caller: Caller = OWNER,
) -> str:
    """A post as the API accepts it; its id."""
    return rt.write(posts.create, Draft(body, at, profiles, media, options), caller)


def approve(rt: Runtime, post_id: str) -> bool:
    """The owner reads a post and approves it. Return whether it waited."""
    return rt.write(posts.approve, post_id, version_of(rt, post_id))


def version_of(rt: Runtime, post_id: str) -> str:
    """The version of a post that its page shows."""
    details = load_details(rt, rt.db, post_id)
    assert details is not None
    return details.version


def state_of(rt: Runtime, post_id: str, position: int = 0) -> State:
    return State(_column(rt, post_id, position, "state"))


def message_of(rt: Runtime, post_id: str, position: int = 0) -> str:
    return str(_column(rt, post_id, position, "error_message"))


def status_of(rt: Runtime, post_id: str) -> str:
    return str(select_value(rt.db, "SELECT status FROM post WHERE id = ?", (post_id,)))


def waits_of(rt: Runtime, post_id: str) -> WaitReason | None:
    """Return why the first delivery of a post waits now."""
    waits = list_waits(rt, rt.db, post_id)
    return next(iter(waits.values())).reason if waits else None


def attempts_of(rt: Runtime, post_id: str) -> list[tuple[str, str]]:
    shown = json.loads(load_attempts(rt, rt.db, post_id))
    return [(one["step"], one["outcome"]) for one in shown]


def _column(rt: Runtime, post_id: str, position: int, name: str) -> Any:
    return select_value(rt.db, f"SELECT {name} FROM delivery WHERE post_id = ? AND position = ?", (post_id, position))


def end_unsent(rt: Runtime, tx: Database, delivery: Delivery, state: State, message: str) -> None:
    """End a delivery as failed, or as unconfirmed after its first call."""
    if state is State.UNCONFIRMED:
        delivery.progress.phase = Committing()
    Settlement(rt, tx, delivery).fail(message, state=state)


def end_deliveries(rt: Runtime, post: str, *states: State) -> None:
    """Settle the open deliveries of a post in their order. A queued delivery stays open."""

    def settle(_rt: Runtime, tx: Database) -> None:
        open_deliveries = {one.id: one for one in delivery_rows.list_open_of_post(tx, post)}
        for row, state in zip(delivery_rows.list_of_post(tx, post), states, strict=True):
            if row.id not in open_deliveries or state is State.QUEUED:
                continue
            if state is State.PUBLISHED:
                tx.update(DeliveryRow, row.id, state=state, published_at=tx.stamp)
                post_rows.settle_if_resolved(tx, post)
            else:
                message = "Outcome unknown: no response." if state is State.UNCONFIRMED else "No."
                end_unsent(rt, tx, open_deliveries[row.id], state, message)

    rt.write(settle)
