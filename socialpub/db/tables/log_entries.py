"""Statements about the tables `log_entry` and `attempt`: the history of each delivery."""

from dataclasses import dataclass
from enum import StrEnum

from socialpub.core.clock import new_id
from socialpub.db.connection import BATCH_ROWS, Reader, Tx
from socialpub.db.delivery import Delivery
from socialpub.db.tables import counters
from socialpub.db.tables.counters import Event

_RECORD = """
INSERT INTO log_entry (id, delivery_id, post_id, profile_id, provider, type, occurred_at, post_body,
    post_scheduled_at, profile_name, release_url, provider_post_id, error_message)
SELECT ?, d.id, d.post_id, d.profile_id, d.provider, ?, ?, p.body, d.scheduled_at, ifnull(a.name, d.profile_name),
    d.url, d.provider_post_id, d.error_message
FROM delivery d JOIN post p ON p.id = d.post_id LEFT JOIN profile a ON a.id = d.profile_id WHERE d.id = ?"""


def record(tx: Tx, delivery_id: str, type: str) -> None:
    """Write down that a delivery reached this state, with what it, its post and its profile are by now."""
    tx.execute(_RECORD, (new_id(tx.now), type, tx.stamp, delivery_id))


def oldest_beyond(reader: Reader, number: int) -> tuple[int, str] | None:
    """The next entries beyond this one: the number of the last of them, and when the oldest of them was written."""
    row = reader.one(
        """SELECT max(n) AS last, min(occurred_at) AS oldest
            FROM (SELECT n, occurred_at FROM log_entry WHERE n > ? ORDER BY n LIMIT ?)""",
        (number, BATCH_ROWS),
    )
    return None if row is None or row.last is None else (row.last, row.oldest)


def delete_over(tx: Tx, beyond: int, last: int, before: str) -> int:
    """Remove those of these that are as old as that and belong to no open post; how many. An entry without a post is
    one whose post was removed, and goes at any age. The newest stays: its number says how far the log has come, and is
    not given twice."""
    return tx.execute(
        """DELETE FROM log_entry WHERE n > ? AND n <= ? AND n < (SELECT max(n) FROM log_entry) AND (
            NOT EXISTS (SELECT 1 FROM post p WHERE p.id = log_entry.post_id)
            OR occurred_at <= ? AND EXISTS (
                SELECT 1 FROM post p WHERE p.id = log_entry.post_id AND p.status IN ('settled', 'canceled')))""",
        (beyond, last, before),
    ).rowcount


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
    """One run of one step, as it is written down."""

    step: str
    started_at: str
    outcome: AttemptOutcome
    message: str | None = None
    code: str | None = None
    request_id: str | None = None
    next_at: str | None = None


def record_attempt(tx: Tx, delivery: Delivery, attempt: Attempt) -> None:
    """Write an attempt down. Runs of one step that go on (chunks, polls) extend the row of the first."""
    counters.count_event(tx, Event.ATTEMPT, delivery.provider, attempt.outcome, delivery.kind_of(attempt.step))
    last = tx.one("SELECT n, step, outcome FROM attempt WHERE delivery_id = ? ORDER BY n DESC LIMIT 1", (delivery.id,))
    values = (tx.stamp, attempt.outcome, attempt.message, attempt.code, attempt.request_id, attempt.next_at)
    if last is not None and last.step == attempt.step and last.outcome == AttemptOutcome.WAITING:
        tx.execute(
            """UPDATE attempt SET ended_at = ?, outcome = ?, message = ?, provider_code = ?,
                request_id = ifnull(?, request_id), next_at = ? WHERE n = ?""",
            (*values, last.n),
        )
        return
    tx.execute(
        """INSERT INTO attempt (delivery_id, profile_id, provider, step, started_at, ended_at, outcome, message,
                provider_code, request_id, next_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (delivery.id, delivery.profile_id, delivery.provider, attempt.step, attempt.started_at, *values),
    )


def delete_attempts_of_post(tx: Tx, post_id: str) -> None:
    """Before its deliveries go."""
    tx.execute("DELETE FROM attempt WHERE delivery_id IN (SELECT id FROM delivery WHERE post_id = ?)", (post_id,))


def oldest_attempts_beyond(reader: Reader, number: int) -> tuple[int, str] | None:
    """The next attempts beyond this one: the number of the last of them, and when the oldest of them began."""
    row = reader.one(
        """SELECT max(n) AS last, min(started_at) AS oldest
            FROM (SELECT n, started_at FROM attempt WHERE n > ? ORDER BY n LIMIT ?)""",
        (number, BATCH_ROWS),
    )
    return None if row is None or row.last is None else (row.last, row.oldest)


def delete_ended_attempts(tx: Tx, beyond: int, last: int, before: str) -> int:
    """Remove those of these that are as old as that and belong to no open delivery; how many."""
    return tx.execute(
        """DELETE FROM attempt WHERE n > ? AND n <= ? AND started_at <= ? AND NOT EXISTS (
            SELECT 1 FROM delivery d WHERE d.id = attempt.delivery_id AND d.state IN ('queued', 'running'))""",
        (beyond, last, before),
    ).rowcount
