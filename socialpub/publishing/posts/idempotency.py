"""Idempotency-Key: the same request sent twice does its work once (contract 1.11).

The first request announces its key. One write stores its work and its response. An announcement counts while its
process lives. Only successful responses are stored, for a day.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, InvalidRequest
from socialpub.db.connection import Reader, Tx
from socialpub.db.models import IdempotencyRow
from socialpub.db.tables import post_rows
from socialpub.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")

LIFETIME = timedelta(hours=24)
RUNNING_SECONDS = 1
"""The `Retry-After` of a repeat while the first request still runs."""
HEADER = "Idempotency-Key"

_FORM = re.compile(rb"[\x20-\x7e]{1,255}")


@dataclass(frozen=True, slots=True)
class RequestKey:
    """An announced request: its key, and the fingerprint of its content."""

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


def find(rt: Runtime, store: Reader, ticket: RequestKey, now: datetime) -> StoredResponse | None:
    """Return the stored response to this request. None: this request is the first. Raises Conflict."""
    row = post_rows.find_request(store, ticket.key_id, ticket.key)
    if row is None or row.created_at <= stamp(now - LIFETIME):
        return None
    if row.status is None and not rt.process.is_alive(row.owner or ""):
        return None  # its process died before the work
    if row.fingerprint != ticket.fingerprint:
        raise Conflict(f"This {HEADER} was used for a different request. Use a new key for each new request.")
    if row.status is None:
        raise Conflict(
            f"The first request with this {HEADER} is still running. Send the request again in a moment.",
            retry_after_seconds=RUNNING_SECONDS,
        )
    return StoredResponse(row.status, row.location, row.body or b"")


def begin(rt: Runtime, tx: Tx, ticket: RequestKey) -> StoredResponse | None:
    """Announce a request. Return the stored response of an earlier request, if any. Raises Conflict."""
    kept = find(rt, tx, ticket, tx.now)
    if kept is None:
        post_rows.announce_request(tx, ticket.key_id, ticket.key, ticket.fingerprint, rt.process.name)
    return kept


def respond(
    rt: Runtime,
    tx: Tx,
    ticket: RequestKey | None,
    show: Callable[[Runtime, Tx, T], StoredResponse],
    fn: Callable[Concatenate[Runtime, Tx, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> StoredResponse:
    """Run `fn` and return the response that `show` makes of its result. Store the response of an announced request."""
    response = show(rt, tx, fn(rt, tx, *args, **kwargs))
    if ticket is not None:
        post_rows.store_response(tx, ticket.key_id, ticket.key, response.status, response.location, response.body)
    return response


def forget(rt: Runtime, tx: Tx, ticket: RequestKey) -> None:
    """Withdraw the announcement of a request that failed. A stored response stays."""
    post_rows.withdraw_request(tx, ticket.key_id, ticket.key)


def clean(rt: Runtime, tx: Tx) -> int:
    """Remove a batch of keys older than a day. Return the number of removed keys."""
    return tx.delete_batch(IdempotencyRow, IdempotencyRow.created_at <= stamp(tx.now - LIFETIME))
