"""Why a delivery is as it is: one row per attempt at a step (contract 1.15). Never a secret, never a body."""

from dataclasses import dataclass
from enum import StrEnum

from socialpub.db import event_counts
from socialpub.db.event_counts import Event
from socialpub.db.models import READ_BACK, Delivery
from socialpub.db.transaction import AT_ONCE, Reader, Tx
from socialpub.providers.protocol import Kind

STEP_KINDS = (*Kind, READ_BACK)
"""What the steps of attempts are counted by."""


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


def record(tx: Tx, delivery: Delivery, attempt: Attempt) -> None:
    """Write an attempt down. Runs of one step that go on (chunks, polls) extend the row of the first."""
    event_counts.add(tx, Event.ATTEMPT, delivery.provider, attempt.outcome, delivery.kind_of(attempt.step))
    last = tx.one("SELECT n, step, outcome FROM attempt WHERE delivery_id = ? ORDER BY n DESC LIMIT 1", (delivery.id,))
    values = (tx.stamp, attempt.outcome, attempt.message, attempt.code, attempt.request_id, attempt.next_at)
    if last is not None and last["step"] == attempt.step and last["outcome"] == AttemptOutcome.WAITING:
        tx.execute(
            """UPDATE attempt SET ended_at = ?, outcome = ?, message = ?, provider_code = ?,
                request_id = ifnull(?, request_id), next_at = ? WHERE n = ?""",
            (*values, last["n"]),
        )
        return
    tx.execute(
        """INSERT INTO attempt (delivery_id, profile_id, provider, step, started_at, ended_at, outcome, message,
                provider_code, request_id, next_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (delivery.id, delivery.profile_id, delivery.provider, attempt.step, attempt.started_at, *values),
    )


def delete_of_post(tx: Tx, post_id: str) -> None:
    """Before its deliveries go."""
    tx.execute("DELETE FROM attempt WHERE delivery_id IN (SELECT id FROM delivery WHERE post_id = ?)", (post_id,))


def oldest_beyond(reader: Reader, number: int) -> tuple[int, str] | None:
    """The next attempts beyond this one: the number of the last of them, and when the oldest of them began."""
    row = reader.one(
        """SELECT max(n) AS last, min(started_at) AS oldest
            FROM (SELECT n, started_at FROM attempt WHERE n > ? ORDER BY n LIMIT ?)""",
        (number, AT_ONCE),
    )
    return None if row is None or row["last"] is None else (row["last"], row["oldest"])


def delete_ended(tx: Tx, beyond: int, last: int, before: str) -> int:
    """Remove those of these that are as old as that and belong to no open delivery; how many."""
    return tx.execute(
        """DELETE FROM attempt WHERE n > ? AND n <= ? AND started_at <= ? AND NOT EXISTS (
            SELECT 1 FROM delivery d WHERE d.id = attempt.delivery_id AND d.state IN ('queued', 'running'))""",
        (beyond, last, before),
    ).rowcount
