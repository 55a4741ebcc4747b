"""Deliveries whose process died in the middle of a step: taken over, and ended when that step kills every worker.

All that ran in a process is suspected when it dies. Suspects run again one at a time, so that the next death shows
which of them it was; what ran beside it is never ended for it.
"""

from socialpub.db import delivery_rows
from socialpub.db.models import Delivery, State
from socialpub.db.transaction import Tx
from socialpub.publishing import attempts, deliveries, read_back, scheduling
from socialpub.publishing.attempts import Attempt, AttemptOutcome
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime

MOST_DEATHS = 3
"""So many processes in a row may die in one step of a delivery."""
TURN_SECONDS = 2.0
"""A suspect asks so often whether it is its turn."""


def take_over(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """The owner died in the middle of a step. False: it died there too often, and the delivery has ended."""
    step = delivery.plan[delivery.step][0] if delivery.plan else "start"
    if delivery.held_by != rt.process.name and not rt.process.ended_in_order(delivery.held_by or ""):
        delivery.progress.deaths += 1
    committing = delivery.commits_next
    if committing:
        scheduling.keep_distance(rt, tx, delivery)
        read_back.begin(rt, delivery, "the worker ended while the call was on its way")
        outcome, message = (
            AttemptOutcome.UNKNOWN,
            "The worker ended while the call was on its way; the account is read back.",
        )
    else:
        outcome, message = AttemptOutcome.RETRYING, "The worker ended in the middle of this step; it runs again."
    attempts.record(tx, delivery, Attempt(step, delivery.run_at, outcome, message))
    delivery.state = State.QUEUED
    delivery.held_by = None
    delivery.run_at = tx.stamp
    if delivery.progress.deaths >= MOST_DEATHS and not committing:
        _end_deadly(tx, delivery, step)
        return False
    delivery_rows.store(tx, delivery)
    return True


def _end_deadly(tx: Tx, delivery: Delivery, step: str) -> None:
    """Running it once more would stop everything else once more."""
    died = f"the worker died {delivery.progress.deaths} times in a row in its step {step}; its log may say why"
    if delivery.may_be_public:
        hint = f"{died[0].upper()}{died[1:]}. Look at the account."
        deliveries.fail_unconfirmed(tx, delivery, hint, Run(tx.stamp))
    else:
        message = f"Not sent: {died}. Change the post or its media and create it again."
        deliveries.fail(tx, delivery, State.FAILED, message, Run(tx.stamp))


def another_runs(rt: Runtime, tx: Tx, delivery: Delivery) -> bool:
    """Whether another suspect runs: then this one waits for its turn."""
    if not delivery.progress.deaths:
        return False
    others = delivery_rows.running_after_death(tx)
    return any(row["id"] != delivery.id and rt.process.works_on(row["held_by"], row["id"]) for row in others)
