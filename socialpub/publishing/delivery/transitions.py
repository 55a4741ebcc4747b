"""The transitions between the phases of a delivery: one table, which the engine runs and the manual shows.

`move` refuses a transition that is not in the table. No other code changes a phase. Print the table with
`python -m socialpub.publishing.delivery.transitions`.
"""

import sys
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from socialpub.db.delivery import Delivery
from socialpub.db.states import PHASES, PhaseName, Preparing, PreparingAgain, State, Waiting


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
    CLOSED = "A stop, a deadline or a refusal prevents further calls."
    RESTORED_DUE = "A restored appliance is resumed, and the delivery was due before the resume."
    RESTORED_AHEAD = "A restored appliance is resumed, and the delivery is due after the resume."
    STARTED_OVER = "The owner confirms that the original installation published nothing. The plan starts again."
    NEEDS_RECONNECT = "The network refuses the account's tokens."
    RECONNECTED = "The account is connected again."
    NEEDS_POST = "The post to which this post replies is not published yet."
    POST_ENDED = "The post to which this post replies has an outcome."
    NEEDS_APPROVAL = "The owner must approve the post."
    APPROVED = "The owner approves the post."
    PUBLISHED = "The post is public."
    FAILED = "The post was not published and will not be published."
    UNCONFIRMED = "The post may be public, but the network cannot confirm the publication."


P = PhaseName
_AFTER_A_CALL = (P.READING_BACK, P.COMMITTING_AGAIN, P.PREPARING_AGAIN, P.CONFIRMING, P.CLOSING)
_OF_A_BACKUP = (P.INHERITED, P.CONFIRMING_INHERITED, P.READING_BACK_INHERITED)
_PROCESSED = (P.PROCESSING, P.PROCESSING_INHERITED)
_UNSENT = (P.PREPARING, P.COMMITTING, P.INHERITED, P.CONFIRMING_INHERITED)
_SENT = (P.COMMITTING, *_AFTER_A_CALL, *_OF_A_BACKUP, *_PROCESSED)

ROWS: tuple[tuple[PhaseEvent, tuple[PhaseName, ...], PhaseName | State | None], ...] = (
    (PhaseEvent.PREPARED, (P.PREPARING,), P.COMMITTING),
    (PhaseEvent.PREPARED, (P.PREPARING_AGAIN,), P.COMMITTING_AGAIN),
    (PhaseEvent.WENT_BACK, (P.COMMITTING,), P.PREPARING),
    (PhaseEvent.WENT_BACK, (P.COMMITTING_AGAIN,), P.PREPARING_AGAIN),
    (PhaseEvent.ACCEPTED, (P.COMMITTING, P.COMMITTING_AGAIN, P.READING_BACK, P.CONFIRMING, P.CLOSING), P.PROCESSING),
    (PhaseEvent.ACCEPTED, (P.CONFIRMING_INHERITED, P.READING_BACK_INHERITED), P.PROCESSING_INHERITED),
    (PhaseEvent.VOIDED, (P.PROCESSING,), P.PREPARING),
    (PhaseEvent.UNKNOWN, (P.COMMITTING, P.COMMITTING_AGAIN), P.READING_BACK),
    (PhaseEvent.REPEATED, (P.COMMITTING, P.COMMITTING_AGAIN), P.COMMITTING_AGAIN),
    (PhaseEvent.CHECK_DUE, (P.COMMITTING_AGAIN,), P.CONFIRMING),
    (PhaseEvent.CHECK_DUE, (P.INHERITED,), P.CONFIRMING_INHERITED),
    (PhaseEvent.ABSENT, (P.READING_BACK, P.CONFIRMING), P.COMMITTING_AGAIN),
    (PhaseEvent.ABSENT, (P.CONFIRMING_INHERITED,), P.PREPARING),
    (PhaseEvent.CLOSED, (P.READING_BACK, P.COMMITTING_AGAIN, P.PREPARING_AGAIN), P.CLOSING),
    (PhaseEvent.CLOSED, (P.INHERITED,), P.READING_BACK_INHERITED),
    (PhaseEvent.RESTORED_DUE, (P.PREPARING, P.COMMITTING, *_AFTER_A_CALL, *_OF_A_BACKUP), P.READING_BACK_INHERITED),
    (PhaseEvent.RESTORED_DUE, _PROCESSED, P.PROCESSING_INHERITED),
    (PhaseEvent.RESTORED_AHEAD, (P.PREPARING, P.COMMITTING, P.INHERITED), P.INHERITED),
    (PhaseEvent.RESTORED_AHEAD, (P.PROCESSING,), P.PROCESSING_INHERITED),
    (PhaseEvent.STARTED_OVER, (P.COMMITTING,), P.PREPARING),
    (PhaseEvent.NEEDS_RECONNECT, (P.PREPARING, *_SENT), P.WAITING_FOR_RECONNECT),
    (PhaseEvent.RECONNECTED, (P.WAITING_FOR_RECONNECT,), None),
    (PhaseEvent.NEEDS_POST, (P.PREPARING, P.COMMITTING, P.INHERITED), P.WAITING_FOR_POST),
    (PhaseEvent.POST_ENDED, (P.WAITING_FOR_POST,), None),
    (PhaseEvent.NEEDS_APPROVAL, _UNSENT, P.WAITING_FOR_APPROVAL),
    (PhaseEvent.APPROVED, (P.WAITING_FOR_APPROVAL,), None),
    (PhaseEvent.PUBLISHED, tuple(one for one in _SENT if one not in (P.PREPARING_AGAIN, P.INHERITED)), State.PUBLISHED),
    (PhaseEvent.FAILED, (P.PREPARING, P.COMMITTING, P.COMMITTING_AGAIN, P.PREPARING_AGAIN, P.CLOSING), State.FAILED),
    (PhaseEvent.FAILED, (P.READING_BACK_INHERITED, *_PROCESSED), State.FAILED),
    (PhaseEvent.UNCONFIRMED, _SENT, State.UNCONFIRMED),
)
"""The transitions: each event with the phases before it and the phase or final state after it.

None: the phase before the wait.
"""

_ENDS_OF_WAITS = (PhaseEvent.RECONNECTED, PhaseEvent.POST_ENDED, PhaseEvent.APPROVED)

TABLE = {(phase, event): target for event, phases, target in ROWS for phase in phases}
_OF_ONE_ROUND = frozenset({"readbacks", "read_back_seconds"})


class UnknownTransition(Exception):
    """The table does not contain this transition, so the engine has a bug."""


def move(delivery: Delivery, event: PhaseEvent, **values: Any) -> None:
    """Change the phase as the table says. `values` are fields of the new phase; fields that both have are kept.

    A delivery that waits keeps waiting. Only the phase after the wait changes. No other wait replaces the wait for an
    approval. That wait also ends with a phase that never sends the post.
    """
    progress = delivery.progress
    target = find(progress.phase.name if event in _ENDS_OF_WAITS else delivery.phase.name, event)
    if target is None:
        progress.phase = delivery.phase
        return
    if isinstance(target, State):
        return
    phase = PHASES[target]
    if issubclass(phase, Waiting):
        if delivery.waits_for_approval:
            raise UnknownTransition(f"{event.name} cannot happen to a delivery that waits for the owner's approval")
        progress.phase = phase(delivery.phase, **values)
        return
    kept = {field.name: getattr(delivery.phase, field.name, None) for field in fields(phase)}
    kept = {name: value for name, value in kept.items() if value is not None and name not in _OF_ONE_ROUND}
    entered = phase(**{**kept, **values})
    wait = progress.phase
    never_sends = (target, PhaseEvent.NEEDS_APPROVAL) not in TABLE
    if isinstance(wait, Waiting) and not (delivery.waits_for_approval and never_sends):
        entered = replace(wait, resumes=entered)
    progress.phase = entered


def enter_step(delivery: Delivery) -> None:
    """Leave the preparing phases if the step that runs next is the commit."""
    if isinstance(delivery.phase, Preparing | PreparingAgain) and delivery.commits_next:
        move(delivery, PhaseEvent.PREPARED)


def find(phase: PhaseName, event: PhaseEvent) -> PhaseName | State | None:
    """Return the phase or final state after this event. Raises UnknownTransition."""
    if (phase, event) not in TABLE:
        raise UnknownTransition(f"{event.name} cannot happen to a delivery that is {phase}")
    return TABLE[phase, event]


def markdown() -> str:
    """Return the phases and their transitions as two tables for the manual."""
    phases = (f"| `{name}` | {(phase.__doc__ or '').strip()} |" for name, phase in PHASES.items())
    rows = (
        f"| {event.value} | {', '.join(f'`{phase}`' for phase in before)} | "
        f"{f'`{after}`' if after else 'the phase before the wait'} |"
        for event, before, after in ROWS
    )
    head = "| What happens | Before | After |"
    return "\n".join(["| Phase | Meaning |", "|---|---|", *phases, "", head, "|---|---|---|", *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(markdown())
