"""What the looks at an account come to: only an answered, readable list counts, and absent is what none of them showed
for all of `publishing.resend_after`.
"""

from socialpub.db.models import Delivery, State
from socialpub.db.transaction import Tx
from socialpub.publishing import deliveries, read_back
from socialpub.publishing.attempts import AttemptOutcome
from socialpub.publishing.read_back import LOOK_FIRST
from socialpub.publishing.results import Missing, Run
from socialpub.runtime import Runtime

MOST_COMMITS = 2
"""The commit and, when the account shows for certain that it did not happen, one more."""

NOT_SENT_AFTER_RESTORE = (
    "Not sent: it was due before this restored appliance was resumed, and the account does not show it. "
    "To publish it, create the post again."
)
NOT_SENT_ELSEWHERE = "The account does not show the post: no other installation sent it."
NOT_KNOWN_ELSEWHERE = "The account cannot be asked whether another installation sent it: the post is sent."
SOMETHING_SIMILAR = (
    "The account has something of the same kind from that time whose words differ, and it cannot be told whether that "
    f"is this post. {LOOK_FIRST}"
)


def judge(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, missing: Missing) -> None:
    """The account does not show the post: look again later, or conclude from it."""
    progress = delivery.progress
    read_back.note_look(rt, delivery, missing.seen_at)
    if progress.confirming:
        progress.confirming = False
        _go_ahead(rt, tx, delivery, run, missing)
    elif (left := read_back.seconds_left(rt, delivery)) > 0:
        seconds = max(min(read_back.next_pause(delivery), left), 1.0)
        message = "The account does not show the post yet; looking again."
        deliveries.ask_later(rt, tx, delivery, run, seconds, AttemptOutcome.WAITING, message)
    elif missing.similar:
        deliveries.fail_unconfirmed(tx, delivery, SOMETHING_SIMILAR, run)
    elif progress.restored and not missing.whole:
        hint = f"The upload in the backup never ended. The original may have begun another one. {LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif progress.restored:
        deliveries.fail(tx, delivery, State.FAILED, progress.closing or NOT_SENT_AFTER_RESTORE, run)
    elif progress.stopped and progress.closing is None:
        deliveries.close(rt, tx, delivery, run, deliveries.STOPPED)
    elif progress.closing is not None and not missing.whole:
        hint = f"{progress.closing} The upload that was begun may still become a post. {LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif progress.closing is not None:
        deliveries.fail(tx, delivery, State.FAILED, progress.closing, run)
    elif progress.commits >= MOST_COMMITS:
        hint = f"The account does not show it even after the second call. {LOOK_FIRST}"
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    elif rt.settings.publishing.resend_after is None:
        hint = f'The account does not show it, and publishing.resend_after is "never". {LOOK_FIRST}'
        deliveries.fail_unconfirmed(tx, delivery, hint, run)
    else:
        _send_again(rt, tx, delivery, run, "The account does not have the post; it is sent once more.")


def _go_ahead(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, missing: Missing) -> None:
    """The look that must precede a call has shown nothing."""
    progress = delivery.progress
    if missing.similar:
        deliveries.fail_unconfirmed(tx, delivery, SOMETHING_SIMILAR, run)
    elif progress.look_first:
        progress.look_first, progress.since, progress.earlier = False, None, []
        _send_again(rt, tx, delivery, run, NOT_SENT_ELSEWHERE if missing.asked else NOT_KNOWN_ELSEWHERE)
    else:
        _send_again(rt, tx, delivery, run, "The account still does not have the post; it is sent once more.")


def _send_again(rt: Runtime, tx: Tx, delivery: Delivery, run: Run, message: str) -> None:
    deliveries.record_attempt(tx, delivery, run, AttemptOutcome.DONE, message)
    delivery.progress.reading_back = False
    deliveries.requeue(rt, tx, delivery, 0)
