"""Why a delivery is as it is: one row per attempt at a step (contract 1.15). Never a secret, never a body."""

from dataclasses import dataclass
from enum import StrEnum

from socialpub.db.database import Tx
from socialpub.db.models import Delivery


class Outcome(StrEnum):
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
    outcome: Outcome
    message: str | None = None
    code: str | None = None
    request_id: str | None = None
    next_at: str | None = None


def record(tx: Tx, delivery: Delivery, attempt: Attempt) -> None:
    """Write an attempt down. Runs of one step that go on (chunks, polls) extend the row of the first."""
    last = tx.one("SELECT n, step, outcome FROM attempt WHERE delivery_id = ? ORDER BY n DESC LIMIT 1", (delivery.id,))
    values = (tx.stamp, attempt.outcome, attempt.message, attempt.code, attempt.request_id, attempt.next_at)
    if last is not None and last["step"] == attempt.step and last["outcome"] == Outcome.WAITING:
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
