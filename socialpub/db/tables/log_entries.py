"""Statements about the tables `log_entry` and `attempt`: the history of each delivery."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from peewee import Select, fn

from socialpub.core.clock import new_id, parse
from socialpub.db import appliance_state
from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import AttemptRow, DeliveryRow, LogEntryRow, PostRow
from socialpub.db.tables import counters
from socialpub.db.tables.counters import Event

POST_OF_ENTRY = "LEFT JOIN post p ON p.id = log_entry.post_id"
ENTRIES = f"log_entry {POST_OF_ENTRY}"
TEXT = """CASE p.text_version WHEN log_entry.text_version THEN p.body ELSE (
    SELECT f.body FROM former_text f WHERE f.post_id = p.id AND f.version = log_entry.text_version) END"""
"""SQL over `ENTRIES`: the text of the post when the entry was written.

Null: the post had no text, or the post was removed since. A join is faster than a subquery for each entry.
"""

_RECORD = """
INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at, text_version,
    post_scheduled_at, profile_name, release_url, provider_post_id, error_message, ends_post)
SELECT ?, d.id, d.post_id, d.profile_id, d.provider, ?, ?, p.text_version, d.scheduled_at,
    ifnull(a.name, d.profile_name), d.url, d.provider_post_id, d.error_message,
    NOT EXISTS (SELECT 1 FROM delivery o WHERE o.post_id = d.post_id AND o.state IN ('queued', 'running'))
FROM delivery d JOIN post p ON p.id = d.post_id LEFT JOIN profile a ON a.id = d.profile_id WHERE d.id = ?"""


def record(tx: Database, type: str, *delivery_ids: str) -> None:
    """Record that deliveries reached this state, with the current data of each delivery, its post and its profile.

    The entry of the last open delivery ends the post. Each acceptance and each settlement does this: 0.03 ms, and
    about 1 ms as four peewee queries.
    """
    last = tx.execute_sql("SELECT occurred_at FROM log_entry ORDER BY n DESC LIMIT 1").fetchone()
    if last is not None and tx.stamp < last[0]:
        _record_disorder(tx, last[0])
    for delivery_id in delivery_ids:
        tx.execute_sql(_RECORD, (new_id(tx.now), type, tx.stamp, delivery_id))


@dataclass(frozen=True, slots=True)
class LogOrder:
    """How far the log is out of the order of time, because the clock was set back."""

    latest: str = ""
    """The latest time of an entry before an earlier time."""
    behind: float = 0.0
    """The maximum number of seconds by which an entry is earlier than any entry before it."""


def load_order(db: Database) -> LogOrder:
    stored = appliance_state.get(db, appliance_state.LOG_ORDER)
    return LogOrder() if stored is None else LogOrder(**json.loads(stored))


def _record_disorder(tx: Database, last: str) -> None:
    """Record that the next entry is earlier than the last entry."""
    order = load_order(tx)
    latest = max(order.latest, last)
    present_order = LogOrder(latest, max(order.behind, (parse(latest) - parse(tx.stamp)).total_seconds()))
    if present_order != order:
        appliance_state.put(tx, appliance_state.LOG_ORDER, json.dumps(asdict(present_order)))


def newest_number(db: Database) -> int:
    """Return the number of the last entry, or 0."""
    return int(LogEntryRow.select(fn.IFNULL(fn.MAX(LogEntryRow.n), 0)).scalar(db))


def list_after(db: Database, number: int, types: Sequence[str], limit: int) -> list[tuple[int, str]]:
    """Return the number and the instant of the next entries of these types after this number, in order of writing."""
    entry = LogEntryRow
    later = entry.select(entry.n, entry.occurred_at).where(entry.n > number, entry.type.in_(types))
    return list(later.order_by(entry.n).limit(limit).tuples().execute(db))


def next_batch(db: Database, beyond: int) -> tuple[int, str] | None:
    """Return the last number of the next batch of log entries after this number, and the instant of its oldest row."""
    row = LogEntryRow
    batch = row.select(row.n, row.occurred_at).where(row.n > beyond).order_by(row.n).limit(BATCH_ROWS).alias("batch")
    ((last, oldest),) = Select([batch], [fn.MAX(batch.c.n), fn.MIN(batch.c.occurred_at)]).tuples().execute(db)
    return None if last is None else (last, oldest)


def delete_entries(tx: Database, beyond: int, last: int) -> int:
    """Delete the entries of this batch whose post was removed. Return their number.

    The newest entry stays, so every number is used once.
    """
    entry = LogEntryRow
    in_batch = (entry.n > beyond) & (entry.n <= last) & (entry.n < entry.select(fn.MAX(entry.n)))
    return tx.delete(entry, in_batch, fn.NOT(fn.EXISTS(PostRow.select(1).where(PostRow.id == entry.post_id))))


class AttemptOutcome(StrEnum):
    DONE = "done"
    WAITING = "waiting"
    HELD = "held"
    RETRYING = "retrying"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class Attempt:
    """The record of a run of a step."""

    step: str
    started_at: str
    outcome: AttemptOutcome
    message: str | None = None
    code: str | None = None
    request_id: str | None = None
    next_at: str | None = None


def record_attempt(tx: Database, delivery: Delivery, attempt: Attempt) -> None:
    """Record an attempt. Further runs of a step (chunks, polls) update the row of the first run."""
    counters.count_event(tx, Event.ATTEMPT, delivery.provider, attempt.outcome, delivery.kind_of(attempt.step))
    columns = {"ended_at": tx.stamp, "outcome": attempt.outcome, "message": attempt.message, "next_at": attempt.next_at}
    columns |= {"provider_code": attempt.code, "request_id": attempt.request_id}
    last = AttemptRow.select().where(AttemptRow.delivery_id == delivery.id).order_by(AttemptRow.n.desc()).first(tx)
    if last is not None and last.step == attempt.step and last.outcome == AttemptOutcome.WAITING:
        tx.update(AttemptRow, last.n, **{**columns, "request_id": attempt.request_id or last.request_id})
        return
    of_delivery = {"delivery_id": delivery.id, "profile_id": delivery.profile_id, "provider": delivery.provider}
    tx.insert(AttemptRow, {**of_delivery, "step": attempt.step, "started_at": attempt.started_at, **columns})


def delete_attempts_of_post(tx: Database, post_id: str) -> None:
    deliveries = DeliveryRow.select(DeliveryRow.id).where(DeliveryRow.post_id == post_id)
    tx.delete(AttemptRow, AttemptRow.delivery_id.in_(deliveries))
