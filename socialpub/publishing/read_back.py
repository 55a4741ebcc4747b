"""Reading back: after a commit of unknown outcome the account is looked at until it shows the post, or surely does not.

Only an answered, readable list counts as a look, and a post counts as absent only after all the pauses between them.
"""

from dataclasses import dataclass, field

from socialpub.db.models import Delivery, State
from socialpub.db.transaction import Tx
from socialpub.publishing import deliveries
from socialpub.publishing.attempts import AttemptOutcome
from socialpub.publishing.results import Run
from socialpub.runtime import Runtime

LOOK_AFTER_SECONDS = (5.0, 15.0, 30.0, 60.0)
"""The pauses before the looks at an account after an unknown outcome: lists lag by up to some two minutes. A post that
none of them shows is absent."""

MOST_COMMITS = 2
"""The commit and, when the account shows for certain that it did not happen, one more."""

NOT_SENT_BY_A_COPY = (
    "Not sent: it was due before this restored copy was resumed, and the account does not show it. "
    "Create the post again if it should still go out."
)

LOOK_FIRST = "Look at the account before you post it again."


@dataclass(slots=True)
class LastContacts:
    """When this process last asked a network about a delivery, on the monotonic clock: the wall clock may jump."""

    of_delivery: dict[str, float] = field(default_factory=dict)


def begin(delivery: Delivery, why: str) -> None:
    """The commit may have arrived: from now on the account is looked at instead. Nothing is stored yet."""
    progress = delivery.progress
    progress.reading_back = True
    progress.commits += 1
    progress.looks = 0
    progress.tries = 0
    progress.unknown = why
    progress.since = progress.since or delivery.committed_at


def note_contact(rt: Runtime, delivery: Delivery) -> None:
    """A network was asked about this delivery just now."""
    rt.memory(LastContacts).of_delivery[delivery.id] = rt.clock.monotonic()


def forget_contact(rt: Runtime, delivery: Delivery) -> None:
    rt.memory(LastContacts).of_delivery.pop(delivery.id, None)


def seconds_to_wait(rt: Runtime, delivery: Delivery) -> float:
    """What is left of the pause before the next look, which the wall clock may have jumped over."""
    last = rt.memory(LastContacts).of_delivery.get(delivery.id)
    pause = LOOK_AFTER_SECONDS[min(delivery.progress.looks, len(LOOK_AFTER_SECONDS) - 1)]
    return 0.0 if last is None else pause - (rt.clock.monotonic() - last)


def look_again(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, whole: bool) -> None:
    """The account did not show the post: look again later, or conclude from it. `whole` as in `Look`."""
    progress = delivery.progress
    progress.looks += 1
    progress.tries = 0
    if progress.looks < len(LOOK_AFTER_SECONDS):
        seconds = LOOK_AFTER_SECONDS[progress.looks]
        message = "The account does not show the post yet; looking again."
        deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, message)
        return
    # Absent: looked long enough, it is not there.
    if progress.restored and whole:
        deliveries.fail(tx, delivery, State.FAILED, NOT_SENT_BY_A_COPY, run)
    elif progress.restored:
        hint = f"The upload that this copy knows of never ended; the original may have begun another. {LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif progress.stopped:
        deliveries.fail(tx, delivery, State.FAILED, deliveries.STOPPED, run)
    elif progress.commits >= MOST_COMMITS:
        hint = "The account does not show it even after the second call. Look at the account before you post it again."
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    else:
        deliveries.record_attempt(
            tx, delivery, run, AttemptOutcome.DONE, "The account does not have the post; it is sent once more."
        )
        progress.reading_back = False
        progress.looks = 0
        delivery.committed_at = None
        deliveries.requeue(rt, tx, delivery, 0)
