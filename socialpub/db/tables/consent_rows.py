"""Statements about the table `consent`: attempts to connect an account through the page of its network."""

from collections.abc import Callable
from typing import Any

from peewee import fn

from socialpub.db.connection import BATCH_ROWS, Reader, Tx
from socialpub.db.models import ConsentRow


def insert(tx: Tx, **columns: Any) -> None:
    tx.run(ConsentRow.insert(**columns))


def find(reader: Reader, consent_id: str) -> ConsentRow | None:
    return reader.first(ConsentRow.select().where(ConsentRow.id == consent_id))


def find_by_state(reader: Reader, provider: str, state_hash: bytes) -> ConsentRow | None:
    query = ConsentRow.select().where((ConsentRow.state_hash == state_hash) & (ConsentRow.provider == provider))
    return reader.first(query)


def waiting(reader: Reader, door: str, now: str) -> list[ConsentRow]:
    """Return the newest open attempt of each network that began at this entry point: id, provider, created_at."""
    newest = fn.MAX(ConsentRow.created_at).alias("created_at")
    is_open = ConsentRow.taken_at.is_null() & ConsentRow.finished_at.is_null() & (ConsentRow.expires_at > now)
    query = ConsentRow.select(ConsentRow.id, ConsentRow.provider, newest).where((ConsentRow.door == door) & is_open)
    return reader.rows(query.group_by(ConsentRow.provider).order_by(newest))


def update(tx: Tx, consent_id: str, **columns: Any) -> None:
    tx.run(ConsentRow.update(**columns).where(ConsentRow.id == consent_id))


def fail(tx: Tx, consent_id: str, message: str, hint: str | None) -> None:
    """End the attempt, unless it has ended."""
    query = ConsentRow.update(finished_at=tx.stamp, error=message, hint=hint)
    tx.run(query.where((ConsentRow.id == consent_id) & ConsentRow.finished_at.is_null()))


def reseal(tx: Tx, reseal: Callable[[bytes, str, str, str], bytes]) -> None:
    """Replace every sealed verifier by `reseal(sealed, table, id, column)`."""
    query = ConsentRow.select(ConsentRow.id, ConsentRow.verifier).where(fn.LENGTH(ConsentRow.verifier) > 0)
    for row in tx.rows(query):
        update(tx, row.id, verifier=reseal(bytes(row.verifier), "consent", row.id, "verifier"))


def delete_before(tx: Tx, created_at: str) -> int:
    """Delete a batch of older attempts. Return how many."""
    older = ConsentRow.select(ConsentRow.id).where(ConsentRow.created_at < created_at).limit(BATCH_ROWS)
    return int(tx.run(ConsentRow.delete().where(ConsentRow.id.in_(older))))
