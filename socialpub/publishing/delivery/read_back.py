"""Read back: search the account for the post after a call of unknown outcome, on the network's clock."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from socialpub.core.clock import parse, stamp
from socialpub.db import clock_jumps
from socialpub.db.connection import Tx
from socialpub.db.delivery import Delivery
from socialpub.db.tables import delivery_rows
from socialpub.providers.responses import HttpResponse, http_date
from socialpub.runtime import Runtime

# MERGED from publishing/read_back.py: Reading back: after a call of unknown outcome the account is looked at, and

READ_BACK_AFTER_SECONDS = (5.0, 15.0, 30.0, 60.0)
"""The pauses before the first looks at an account."""
LATER_SECONDS = 90.0
"""The pause before each further one."""
WITHOUT_RESENDING_SECONDS = 600.0
"""How long is looked where nothing is ever sent a second time."""
FRESH_SECONDS = 60.0
"""A look that is older does not allow a second call."""

CHECK_ACCOUNT = "Look at the account before you post it again."
MAYBE_SENT = "the installation that the backup was made of may have published it"


def begin(rt: Runtime, delivery: Delivery, why: str) -> None:
    """A commit may have arrived: from now on the account is looked at instead."""
    progress = delivery.progress
    progress.commits += 1
    progress.unknown = why
    progress.since = progress.since or delivery.committed_at
    begin_round(rt, delivery)


def begin_closing(rt: Runtime, delivery: Delivery, now: str, message: str) -> None:
    """No further call will be made, and the first one may have arrived: look as long again, then it ends as failed with
    this message when the account does not show the post."""
    delivery.progress.closing = message
    delivery.started_at = now  # these looks have a patience of their own
    begin_round(rt, delivery)


def begin_elsewhere(rt: Runtime, delivery: Delivery, now: str, since: str) -> None:
    """Another installation may have published it since `since`: read back, and never send."""
    progress = delivery.progress
    progress.restored, progress.look_first = True, False
    delivery.started_at = now  # this round has a deadline of its own
    if delivery.past_commit_step:
        return  # the plan goes on with a question, which sends nothing
    begin_round(rt, delivery)
    progress.since = min(since, progress.since or since, delivery.committed_at or since)
    progress.unknown = progress.unknown or MAYBE_SENT
    delivery.committed_at = delivery.committed_at or since
    delivery.step = max(delivery.step, delivery.commit_step)


def require_first(tx: Tx, delivery: Delivery, since: str, earlier: Sequence[Mapping[str, Any]] = ()) -> None:
    """Another installation may have published it since `since`: one read-back precedes the first step.

    `earlier` are the contents with which that installation knows it.
    """
    progress = delivery.progress
    progress.look_first, progress.since = True, min(since, progress.since or since)
    progress.earlier = [*progress.earlier, *(dict(content) for content in earlier)]
    delivery_rows.update(tx, delivery.id, progress=delivery_rows.as_json(progress.as_dict()))


def begin_round(rt: Runtime, delivery: Delivery) -> None:
    """Look from the beginning, for as long as `publishing.resend_after` says."""
    progress = delivery.progress
    progress.reading_back, progress.confirming = True, False
    progress.looks = progress.tries = 0
    progress.looked_seconds = 0.0
    rt.engine.read_back_at[delivery.id] = rt.clock.monotonic()


def confirm_first(rt: Runtime, delivery: Delivery) -> bool:
    """Whether the account has to be looked at before what comes next; then that look comes next.

    Before a second call it must not be older than a minute, whatever delayed the call. What a restored copy held is
    looked for once before its first step.
    """
    progress = delivery.progress
    if progress.reading_back or not (progress.look_first or is_due(rt, delivery)):
        return False
    progress.reading_back = progress.confirming = True
    return True


def is_due(rt: Runtime, delivery: Delivery) -> bool:
    """Whether a second call comes next and the last look is older than a minute."""
    if not (delivery.commits_next and delivery.progress.commits):
        return False
    last = rt.engine.read_back_at.get(delivery.id)
    return last is None or rt.clock.monotonic() - last > FRESH_SECONDS


def note_readback(rt: Runtime, delivery: Delivery, at: float) -> None:
    """The account was looked at and the answer could be read, at this moment of the monotonic clock: count the time
    since the look before."""
    last = rt.engine.read_back_at.get(delivery.id)
    if last is not None:  # what another process saw before it ended is not known, and not counted
        delivery.progress.looked_seconds += max(at - last, 0.0)
    rt.engine.read_back_at[delivery.id] = at
    delivery.progress.looks += 1
    if not delivery.progress.confirming:  # the call that waits for it goes on counting its own failures
        delivery.progress.tries = 0


def seconds_left(rt: Runtime, delivery: Delivery) -> float:
    """How much longer the account must be looked at before the post counts as absent; 0 when it was long enough."""
    resend_after = rt.settings.publishing.resend_after
    seconds = WITHOUT_RESENDING_SECONDS if resend_after is None else resend_after.total_seconds()
    return max(seconds - delivery.progress.looked_seconds, 0.0)


def next_pause(delivery: Delivery) -> float:
    """Seconds until the next look."""
    looks = delivery.progress.looks
    return READ_BACK_AFTER_SECONDS[looks] if looks < len(READ_BACK_AFTER_SECONDS) else LATER_SECONDS


def forget(rt: Runtime, delivery_id: str) -> None:
    rt.engine.read_back_at.pop(delivery_id, None)


# MERGED from publishing/network_time.py: What time it is at a network: whether a post is ours is judged by its clo

SLACK = timedelta(minutes=2)
"""The machines of one network need not agree among themselves."""
NOTED_SECONDS = 10.0
WITHOUT_A_DATE = timedelta(days=1)
"""How far from ours the clock of a network may be that has not told its time yet."""


def note_date(rt: Runtime, provider: str, response: HttpResponse) -> None:
    """Set the network's clock by an answer of its API, now and then."""
    engine, now = rt.engine, rt.clock.monotonic()
    if now - engine.clock_noted_at.get(provider, -NOTED_SECONDS) < NOTED_SECONDS:
        return
    at = http_date(response.headers.get("date"))
    if at is None:
        return
    engine.clock_offsets[provider], engine.clock_noted_at[provider] = at.timestamp() - now, now


def network_now(rt: Runtime, provider: str) -> datetime | None:
    """The time at the network; None before its first answer to this process."""
    offset = rt.engine.clock_offsets.get(provider)
    return None if offset is None else datetime.fromtimestamp(rt.clock.monotonic() + offset, UTC)


def note_announcement(rt: Runtime, delivery: Delivery) -> None:
    """A commit is about to be sent. The first of a delivery is what is read back from; nothing is stored yet."""
    if delivery.progress.commits:
        return
    there = network_now(rt, delivery.provider)
    delivery.progress.dated_since = None if there is None else stamp(there)
    rt.engine.announced_at[delivery.id] = rt.clock.monotonic()


def forget_announcement(rt: Runtime, delivery_id: str) -> None:
    rt.engine.announced_at.pop(delivery_id, None)


def search_from(rt: Runtime, delivery: Delivery) -> datetime:
    """The earliest moment, on the network's clock, at which what the first commit made can be dated."""
    if delivery.progress.dated_since is not None and not delivery.progress.restored:
        return parse(delivery.progress.dated_since) - SLACK
    there = network_now(rt, delivery.provider)
    announced = rt.engine.announced_at.get(delivery.id)
    if there is not None and announced is not None:
        return there - timedelta(seconds=rt.clock.monotonic() - announced) - SLACK
    ours = delivery.progress.since or delivery.committed_at
    assert ours is not None
    if delivery.progress.restored or delivery.progress.look_first:
        return parse(ours) - WITHOUT_A_DATE  # a time of the original's clock, whatever ours shows
    if there is not None:
        return parse(ours) + (there - rt.now()) - WITHOUT_A_DATE
    # Nobody knows whether our clock was right before it was set, or is now.
    jumped = clock_jumps.recent(rt.reader, rt.now())
    return parse(ours) - timedelta(seconds=max(jumped.jumped_by, 0.0) if jumped else 0.0) - WITHOUT_A_DATE
