"""Statements about the table `api_key`."""

from collections.abc import Collection, Sequence
from typing import Any

from socialpub.db.connection import Reader, Row, Tx, placeholders
from socialpub.db.models import ApiKeyRow


def insert(tx: Tx, **columns: Any) -> None:
    tx.run(ApiKeyRow.insert(**columns))


def list_all(reader: Reader) -> list[ApiKeyRow]:
    """Return every key, oldest first."""
    return reader.rows(ApiKeyRow.select().order_by(ApiKeyRow.created_at, ApiKeyRow.id))


def get(reader: Reader, key_id: str) -> ApiKeyRow | None:
    return reader.first(ApiKeyRow.select().where(ApiKeyRow.id == key_id))


def revoke(tx: Tx, key_id: str, at: str) -> None:
    tx.run(ApiKeyRow.update(revoked_at=at).where(ApiKeyRow.id == key_id))


def unrevoked(reader: Reader) -> list[ApiKeyRow]:
    """Return every key that is not revoked, oldest first: id, name, scope, expires_at, last_used_at.

    The query names only columns of the first schema, because a backup may come from any former version.
    """
    key = ApiKeyRow
    query = key.select(key.id, key.name, key.scope, key.expires_at, key.last_used_at)
    return reader.rows(query.where(key.revoked_at.is_null()).order_by(key.created_at, key.id))


def revocations(reader: Reader) -> dict[str, str | None]:
    """Return when each key was revoked, by id. None: the key is not revoked."""
    return {row.id: row.revoked_at for row in reader.rows(ApiKeyRow.select(ApiKeyRow.id, ApiKeyRow.revoked_at))}


# --- hot: for each request -------------------------------------------------------------------------------------------


def find(reader: Reader, key_id: str) -> Row | None:
    """Return scope, secret_hash, providers and profiles (JSON), expires_at, revoked_at and name."""
    return reader.one(
        "SELECT scope, secret_hash, providers, profiles, expires_at, revoked_at, name FROM api_key WHERE id = ?",
        (key_id,),
    )


def valid_among(reader: Reader, key_ids: Collection[str], now: str) -> set[str]:
    """Return those of these keys that are neither revoked nor expired."""
    rows = reader.all(
        f"""SELECT id FROM api_key WHERE id IN ({placeholders(key_ids)}) AND revoked_at IS NULL
            AND (expires_at IS NULL OR expires_at > ?)""",
        (*key_ids, now),
    )
    return {row.id for row in rows}


def note_uses(tx: Tx, uses: Sequence[tuple[str, str]]) -> None:
    """Store when each key was last used: pairs of a stamp and an id."""
    tx.many("UPDATE api_key SET last_used_at = ? WHERE id = ?", uses)
