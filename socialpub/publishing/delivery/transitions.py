"""The transitions between the phases of a delivery: one table, which the engine runs and the manual shows.

`move` refuses a transition that is not in the table. No other code changes a phase.
"""

from enum import Enum
from typing import Any

from socialpub.db.delivery import Delivery
from socialpub.db.states import PHASES, PhaseName, Preparing, PreparingAgain, State


class PhaseEvent(Enum):
    """An event of a delivery. The value is the description in the manual."""

    PREPARED = "The last step before the commit is done."
    WENT_BACK = "The network asks for an earlier step again."
    ACCEPTED = "The network has the whole post and processes it."
    VOIDED = "The network discards the accepted content and asks for an earlier step again."
    UNKNOWN = "The call did not return a readable response, or the worker died during the call."
    REPEATED = "The same happened, but the call is repeatable: its repetition cannot create a second post."
    CHECK_DUE = "The next call needs a read-back first."
    ABSENT = "The account does not show the post."
    UNCALLED = "The account does not show the post, and no call was made here."
    CLOSED = "A stop, a deadline or a refusal prevents further calls."
    RESTORED_DUE = "A restored appliance is resumed, and the delivery was due before the resume."
    RESTORED_AHEAD = "A restored appliance is resumed, and the delivery is due after the resume."
    STARTED_OVER = "The owner confirms that the original installation published nothing. The plan starts again."
    PUBLISHED = "The post is public."
    FAILED = "The post was not published and will not be published."
    UNCONFIRMED = "The post may be public, but the network cannot confirm the publication."


P = PhaseName
_READ_BACK = (P.READING_BACK, P.CONFIRMING, P.CLOSING)
_SECOND_CALL = (P.COMMITTING_AGAIN, P.PREPARING_AGAIN)
_CALLS = (P.COMMITTING, P.COMMITTING_AGAIN)

ROWS: tuple[tuple[PhaseEvent, tuple[PhaseName, ...], PhaseName | State], ...] = (
    (PhaseEvent.PREPARED, (P.PREPARING,), P.COMMITTING),
    (PhaseEvent.PREPARED, (P.PREPARING_AGAIN,), P.COMMITTING_AGAIN),
    (PhaseEvent.WENT_BACK, (P.COMMITTING,), P.PREPARING),
    (PhaseEvent.WENT_BACK, (P.COMMITTING_AGAIN,), P.PREPARING_AGAIN),
    (PhaseEvent.ACCEPTED, (*_CALLS, *_READ_BACK), P.PROCESSING),
    (PhaseEvent.VOIDED, (P.PROCESSING,), P.PREPARING),
    (PhaseEvent.UNKNOWN, _CALLS, P.READING_BACK),
    (PhaseEvent.REPEATED, _CALLS, P.COMMITTING_AGAIN),
    (PhaseEvent.CHECK_DUE, (P.COMMITTING_AGAIN,), P.CONFIRMING),
    (PhaseEvent.ABSENT, (P.READING_BACK, P.CONFIRMING), P.COMMITTING_AGAIN),
    (PhaseEvent.UNCALLED, (P.CONFIRMING,), P.PREPARING),
    (PhaseEvent.CLOSED, (P.READING_BACK, P.CONFIRMING, *_SECOND_CALL), P.CLOSING),
    (PhaseEvent.RESTORED_DUE, (P.PREPARING, P.COMMITTING, *_SECOND_CALL, *_READ_BACK), P.CLOSING),
    (PhaseEvent.RESTORED_DUE, (P.PROCESSING,), P.PROCESSING),
    (PhaseEvent.RESTORED_AHEAD, (P.PREPARING, P.COMMITTING, P.CONFIRMING), P.CONFIRMING),
    (PhaseEvent.RESTORED_AHEAD, (P.PROCESSING,), P.PROCESSING),
    (PhaseEvent.STARTED_OVER, (P.COMMITTING,), P.PREPARING),
    (PhaseEvent.PUBLISHED, (*_CALLS, *_READ_BACK, P.PROCESSING), State.PUBLISHED),
    (PhaseEvent.FAILED, (P.PREPARING, P.COMMITTING, *_SECOND_CALL, P.CLOSING, P.PROCESSING), State.FAILED),
    (PhaseEvent.UNCONFIRMED, (P.COMMITTING, *_SECOND_CALL, *_READ_BACK, P.PROCESSING), State.UNCONFIRMED),
)
"""The transitions: each event with the phases before it and the phase or final state after it."""

TABLE = {(phase, event): target for event, phases, target in ROWS for phase in phases}


class UnknownTransition(Exception):
    """The table does not contain this transition, so the engine has a bug."""


def move(delivery: Delivery, event: PhaseEvent, **values: Any) -> None:
    """Change the phase as the table says. `values` are fields of the new phase, which also keeps some (`keeps`)."""
    phase = delivery.phase
    target = TABLE.get((phase.name, event))
    if target is None:
        raise UnknownTransition(f"{event.name} cannot happen to a delivery that is {phase.name}")
    if isinstance(target, PhaseName):
        entered = PHASES[target]
        kept_values = {name: getattr(phase, name) for name in entered.keeps}
        delivery.progress.phase = entered(**{**kept_values, **values})


def enter_step(delivery: Delivery) -> None:
    """Leave the preparing phases if the step that runs next is the commit."""
    if isinstance(delivery.phase, Preparing | PreparingAgain) and delivery.commits_next:
        move(delivery, PhaseEvent.PREPARED)
