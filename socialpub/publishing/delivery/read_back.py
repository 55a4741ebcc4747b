"""Read back: search the account for the post after a call of unknown outcome, on the network's clock.

Only an answered, readable list counts as a read-back. A post is absent if no read-back showed it during all of
`publishing.resend_after`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from socialpub.core.clock import parse
from socialpub.db import clock_jumps, states
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import DeliveryRow
from socialpub.db.tables import delivery_rows, waits
from socialpub.publishing.delivery.transitions import PhaseEvent, move
from socialpub.runtime import Runtime

READ_BACK_AFTER_SECONDS = (5.0, 15.0, 30.0, 60.0)
"""The pauses before the first read-backs of a round."""
LATER_SECONDS = 90.0
"""The pause before each further read-back."""
WITHOUT_RESENDING_SECONDS = 600.0
"""The length of a round if nothing is ever sent a second time."""
LATE_EFFECT_SECONDS = 120.0
"""The length of the last round after a repeatable call: a delayed request can still take effect in this time."""
FRESH_SECONDS = 60.0
"""The maximum age of a read-back that allows a second call."""
MAX_COMMITS = 2
"""The maximum number of commits that are not repeatable: a second call is made only if the account definitely does not
show the post."""

STOPPED = "Stopped by the owner."
CHECK_ACCOUNT = "Look at the account before you post it again."
MAYBE_SENT = "the original installation may have published it"
NOT_SENT_AFTER_RESTORE = (
    "Not sent: the post was due before this restored appliance was resumed, and the account does not show it. "
    "To publish it, create the post again."
)
NOT_SENT_ELSEWHERE = "The account does not show the post: no other installation sent it."
NOT_KNOWN_ELSEWHERE = "The account cannot show whether another installation sent the post. The post is sent."
SOMETHING_SIMILAR = (
    "The account has a post of the same kind from that time with different words. That may be this post. "
    f"{CHECK_ACCOUNT}"
)


@dataclass(frozen=True, slots=True)
class NotFoundOnAccount:
    """An answered read-back that does not show the post. `whole` as in `Readback`."""

    seen_at: float
    """The time of the answer, on the monotonic clock."""
    whole: bool = True
    similar: bool = False
    """The account has a post of no other delivery with different words."""
    asked: bool = True
    """False: the network cannot be read, or refuses this app."""


# --- rounds ----------------------------------------------------------------------------------------------------------


def begin(rt: Runtime, tx: Database, delivery: Delivery, why: str) -> str:
    """Note that a commit may have arrived. Return what follows: read-backs, or the same call if it is repeatable."""
    event = PhaseEvent.REPEATED if delivery.is_repeatable else PhaseEvent.UNKNOWN
    move(delivery, event, commits=delivery.unknown_calls + 1, why=why, since=delivery.unknown_since)
    if delivery.is_repeatable:
        return "The outcome is unknown. The same call is repeated; it cannot create a second post."
    _begin_round(rt, tx, delivery)
    return "The account is read back."


def begin_restored(rt: Runtime, tx: Database, delivery: Delivery, since: str) -> None:
    """Read back and never send: another installation may have published the post since `since`."""
    phase = delivery.phase
    since = min(since, phase.since or since, delivery.committed_at or since)
    if isinstance(phase, states.Processing):  # the plan continues with a query, which does not publish
        delivery.started_at = tx.stamp
        move(delivery, PhaseEvent.RESTORED_DUE, restored=True, why=phase.why)
        return
    close(rt, tx, delivery, PhaseEvent.RESTORED_DUE, since=since, dated_since=None, restored=True)


def close(rt: Runtime, tx: Database, delivery: Delivery, event: PhaseEvent, **values: Any) -> None:
    """Stop calling the network. If one more round does not find the post, the delivery fails with its message."""
    delivery.started_at = tx.stamp  # this round has a deadline of its own
    move(delivery, event, **values)
    waits.forget(tx, delivery.id)  # what is never sent needs no approval
    phase = delivery.phase
    if phase.restored:
        delivery.progress.phase = replace(phase, why=phase.why or MAYBE_SENT)
        delivery.committed_at = delivery.committed_at or phase.since
        delivery.step = max(delivery.step, delivery.commit_step)
    _begin_round(rt, tx, delivery)


def require_first(tx: Database, delivery: Delivery, since: str, earlier: Sequence[Mapping[str, Any]] = ()) -> None:
    """Read back once before the first step: another installation may have published the post since `since`.

    `earlier` are the contents of this post in that installation.
    """
    phase = delivery.phase
    if isinstance(phase, states.Processing):
        move(delivery, PhaseEvent.RESTORED_AHEAD, restored=True, why=phase.why)
    else:
        contents = (*phase.contents, *(dict(content) for content in earlier))
        move(
            delivery, PhaseEvent.RESTORED_AHEAD, since=min(since, phase.since or since), dated_since=None,
            contents=contents, restored=True, then=states.PhaseName.PREPARING,
        )  # fmt: skip
    tx.update(DeliveryRow, delivery.id, progress=delivery_rows.as_json(delivery.progress.as_dict()))


def _begin_round(rt: Runtime, tx: Database, delivery: Delivery) -> None:
    delivery.progress.tries = 0
    tx.call_after_commit(rt.engine.note_read_back, delivery.id, rt.clock.monotonic())


def is_due(rt: Runtime, delivery: Delivery) -> bool:
    """Return whether the last read-back before this second call is older than a minute."""
    if delivery.is_repeatable:
        return False  # the repetition cannot create a second post
    last = rt.engine.read_back_at(delivery.id)
    return last is None or rt.clock.monotonic() - last > FRESH_SECONDS


def count_readback(rt: Runtime, tx: Database, delivery: Delivery, at: float) -> None:
    """Count an answered, readable read-back at this instant of the monotonic clock, and the time since the last one.

    A single read-back before a call belongs to no round.
    """
    last = rt.engine.read_back_at(delivery.id)
    tx.call_after_commit(rt.engine.note_read_back, delivery.id, at)
    phase = delivery.phase
    if isinstance(phase, states.ReadingBack | states.Closing):
        # The time before a process died is unknown and does not count.
        seconds = 0.0 if last is None else max(at - last, 0.0)
        delivery.progress.phase = replace(
            phase, readbacks=phase.readbacks + 1, read_back_seconds=phase.read_back_seconds + seconds
        )
        delivery.progress.tries = 0


def seconds_until_next(rt: Runtime, delivery: Delivery) -> float | None:
    """Return the pause before the next read-back of this round. None: the round is over, or no round has started."""
    phase, resend_after = delivery.phase, rt.settings.publishing.resend_after
    if not isinstance(phase, states.ReadingBack | states.Closing):
        return None
    whole_round = WITHOUT_RESENDING_SECONDS if resend_after is None else resend_after.total_seconds()
    if delivery.is_repeatable and isinstance(phase, states.Closing) and not phase.restored:
        whole_round = LATE_EFFECT_SECONDS
    left = whole_round - phase.read_back_seconds
    if left <= 0:
        return None
    pause = (*READ_BACK_AFTER_SECONDS, LATER_SECONDS)[min(phase.readbacks, len(READ_BACK_AFTER_SECONDS))]
    return max(min(pause, left), 1.0)


def conclude(rt: Runtime, delivery: Delivery, found: NotFoundOnAccount) -> tuple[PhaseEvent, str]:
    """Decide what the end of a round means, or the read-back before a call: the event, and its message or hint."""
    if found.similar:
        return PhaseEvent.UNCONFIRMED, SOMETHING_SIMILAR
    match delivery.phase:
        case states.Confirming(is_uncalled=True):
            return PhaseEvent.UNCALLED, NOT_SENT_ELSEWHERE if found.asked else NOT_KNOWN_ELSEWHERE
        case states.Confirming():
            return PhaseEvent.ABSENT, "The account still does not show the post. The post is sent again."
        case states.Closing(restored=True) if not found.whole:
            hint = "The upload in the backup never ended. The original installation may have started another upload."
        case states.Closing(message=message) if not found.whole:
            hint = f"{message} The unfinished upload may still become a post."
        case states.Closing(message=message):
            return PhaseEvent.FAILED, message or NOT_SENT_AFTER_RESTORE
        case _ if delivery.progress.stopped:
            return PhaseEvent.CLOSED, STOPPED
        case states.ReadingBack(commits=commits) if commits >= MAX_COMMITS:
            hint = "The account does not show the post even after the second call."
        case _ if rt.settings.publishing.resend_after is None:
            hint = 'The account does not show the post, and publishing.resend_after is "never".'
        case _:
            return PhaseEvent.ABSENT, "The account does not show the post. The post is sent again."
    return PhaseEvent.UNCONFIRMED, f"{hint} {CHECK_ACCOUNT}"


# --- the network's clock ---------------------------------------------------------------------------------------------
#
# The network's clock decides whether a post is ours, and may differ from ours by hours. Each API response has a `Date`,
# which is stored as an offset to our monotonic clock.

SLACK = timedelta(minutes=2)
"""The hosts of one network may differ."""
WITHOUT_A_DATE = timedelta(days=1)
"""The largest assumed difference between our clock and an unknown network clock."""


def search_from(rt: Runtime, delivery: Delivery) -> datetime:
    """Return the earliest time, on the network's clock, that the result of the first commit can have."""
    phase = delivery.phase
    if phase.dated_since is not None:
        return parse(phase.dated_since) - SLACK
    now = rt.engine.network_now(delivery.provider, rt.clock.monotonic())
    announced = rt.engine.announced_at(delivery.id)
    if now is not None and announced is not None:
        return now - timedelta(seconds=rt.clock.monotonic() - announced) - SLACK
    ours = delivery.unknown_since
    assert ours is not None
    if phase.restored:
        # A time of the original installation's clock, which may have been set back after the backup.
        shifts = clock_jumps.shifts_since(rt.db, ours)
        at = parse(ours).timestamp() - (max(shifts) - shifts[0])
        return datetime.fromtimestamp(max(at, 0.0), UTC) - WITHOUT_A_DATE
    if now is not None:
        return parse(ours) + (now - rt.now()) - WITHOUT_A_DATE
    # Our clock may have been wrong before it was set, or may be wrong now.
    jumped = clock_jumps.recent_jump(rt.db, rt.now())
    return parse(ours) - timedelta(seconds=max(jumped.jumped_by, 0.0) if jumped else 0.0) - WITHOUT_A_DATE
