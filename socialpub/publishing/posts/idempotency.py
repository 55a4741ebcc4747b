"""Idempotency-Key: the same request sent twice does its work once (contract 1.11).

One write stores the work of a request and its response. Only successful responses are stored, for a day. The keys of
running requests are in the memory of the one web process: a failed request and a dead process leave nothing behind.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.connection import Database
from socialpub.db.models import IdempotencyRow
from socialpub.runtime import Runtime

LIFETIME = timedelta(hours=24)
RUNNING_SECONDS = 1
"""The `Retry-After` of a repeat while the first request still runs."""
HEADER = "Idempotency-Key"

_FORM = re.compile(rb"[\x20-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A request with a key, and the fingerprint of its content."""

    key_id: str
    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A successful response. `body` does not contain signed URLs."""

    status: int
    location: str | None
    body: bytes


def read_key(header: bytes | None) -> str | None:
    """Return the key of a request, or None. Raises InvalidRequest."""
    if header is None:
        return None
    if not _FORM.fullmatch(header):
        raise InvalidRequest.at(HEADER, message="must have 1 to 255 printable ASCII characters")
    return header.decode()


def fingerprint(path: str, body: Any, parts: Sequence[tuple[str, str, str]] = ()) -> str:
    """Hash the path, the parsed JSON, and the field, declared type and SHA-256 of each part."""
    try:
        whole = json.dumps([path, body, sorted(parts)], sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise InvalidRequest.at(message="The body is nested too deeply.") from None
    return hashlib.sha256(whole.encode()).hexdigest()


def find(db: Database, ticket: RequestKey, now: datetime) -> StoredResponse | None:
    """Return the stored response to this request. None: no request with this key succeeded. Raises Conflict."""
    row = db.get(IdempotencyRow, ticket.key_id, ticket.key)
    if row is None or row.created_at <= stamp(now - LIFETIME):
        return None
    if row.fingerprint != ticket.fingerprint:
        raise Conflict(f"This {HEADER} was used for a different request. Use a new key for each new request.")
    return StoredResponse(row.status, row.location, row.body or b"")


@contextmanager
def claim(running: set[tuple[str, str]], ticket: RequestKey) -> Iterator[None]:
    """Hold the key for one request. `running` contains the keys of this process. Raises Conflict."""
    name = (ticket.key_id, ticket.key)
    if name in running:
        raise Conflict(
            f"The first request with this {HEADER} is still running. Send the request again in a moment.",
            retry_after_seconds=RUNNING_SECONDS,
        )
    running.add(name)
    try:
        yield
    finally:
        running.discard(name)


def store(tx: Database, ticket: RequestKey, response: StoredResponse) -> None:
    if tx.get(IdempotencyRow, ticket.key_id, ticket.key) is not None:  # an expired response
        tx.delete(IdempotencyRow, IdempotencyRow.key_id == ticket.key_id, IdempotencyRow.key == ticket.key)
    row = {"created_at": tx.stamp, "status": response.status, "location": response.location, "body": response.body}
    tx.insert(IdempotencyRow, {"key_id": ticket.key_id, "key": ticket.key, "fingerprint": ticket.fingerprint, **row})


def clean(rt: Runtime, tx: Database) -> int:
    """Remove a batch of keys older than a day. Return the number of removed keys."""
    return tx.delete_batch(IdempotencyRow, IdempotencyRow.created_at <= stamp(tx.now - LIFETIME))
