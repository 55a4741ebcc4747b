"""Statements about the table `idempotency`: requests that carry an Idempotency-Key. All of them are hot."""

from typing import NamedTuple

from socialpub.db.connection import BATCH_ROWS, Reader, Tx


class AnnouncedRequest(NamedTuple):
    """A request, and its response if it succeeded. Without a response it is running, or its process died."""

    fingerprint: str
    owner: str | None
    """The process that runs it."""
    created_at: str
    status: int | None
    location: str | None
    body: bytes | None


def find(reader: Reader, key_id: str, key: str) -> AnnouncedRequest | None:
    row = reader.one(
        "SELECT fingerprint, owner, created_at, status, location, body FROM idempotency WHERE key_id = ? AND key = ?",
        (key_id, key),
    )
    return None if row is None else AnnouncedRequest(*row)


def announce(tx: Tx, key_id: str, key: str, fingerprint: str, owner: str) -> None:
    tx.execute(
        "INSERT OR REPLACE INTO idempotency (key_id, key, fingerprint, owner, created_at) VALUES (?, ?, ?, ?, ?)",
        (key_id, key, fingerprint, owner, tx.stamp),
    )


def store_response(tx: Tx, key_id: str, key: str, status: int, location: str | None, body: bytes) -> None:
    tx.execute(
        "UPDATE idempotency SET status = ?, location = ?, body = ?, owner = NULL WHERE key_id = ? AND key = ?",
        (status, location, body, key_id, key),
    )


def withdraw(tx: Tx, key_id: str, key: str) -> None:
    """Delete the request if it has no response."""
    tx.execute("DELETE FROM idempotency WHERE key_id = ? AND key = ? AND status IS NULL", (key_id, key))


def delete_before(tx: Tx, created_at: str) -> int:
    """Delete a batch of older requests. Return how many."""
    return tx.execute(
        """DELETE FROM idempotency WHERE (key_id, key) IN (
            SELECT key_id, key FROM idempotency WHERE created_at <= ? LIMIT ?)""",
        (created_at, BATCH_ROWS),
    ).rowcount
