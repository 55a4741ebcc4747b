"""Times in which posts of a profile waited for the profile's own queue. No deadline of a post counts them."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from socialpub.core.clock import after, parse, stamp
from socialpub.db.transaction import Reader, Tx, placeholders

JOINED_SECONDS = 60.0
"""A wait that begins so soon after the last one extends it."""
KEPT_SECONDS = 86400.0


class OwnWait(StrEnum):
    """What posts waited for."""

    GAP = "gap"
    """The least time between two posts of the profile."""

    STEP = "step"
    """A long step of another post of the profile."""


def record(tx: Tx, profile_id: str, kind: OwnWait, since: str, until: str) -> None:
    """Note that the other posts of the profile wait for this between these two stamps."""
    extended = tx.execute(
        """UPDATE own_wait SET until = max(until, :until) WHERE profile_id = :profile AND until >= :before
            AND kind = :kind AND since <= :since""",
        {"profile": profile_id, "kind": kind, "since": since, "until": until, "before": after(since, -JOINED_SECONDS)},
    )
    if not extended.rowcount:
        tx.insert("own_wait", profile_id=profile_id, kind=kind, since=since, until=until)


def total(store: Reader | Tx, profile_id: str, since: datetime, kinds: Collection[OwnWait]) -> timedelta:
    """How long posts of the profile waited since this instant, and still will as far as that is known."""
    rows = store.all(
        f"""SELECT since, until FROM own_wait WHERE profile_id = ? AND kind IN ({placeholders(kinds)})
            AND until > ? ORDER BY since""",
        (profile_id, *kinds, stamp(since)),
    )
    waited, counted_until = timedelta(), since
    for row in rows:
        began, ended = max(parse(row["since"]), counted_until), parse(row["until"])
        if ended > began:
            waited, counted_until = waited + (ended - began), ended
    return waited


def clean(tx: Tx) -> int:
    """Forget the waits that no open delivery was due in, a day after their end; how many."""
    return tx.execute(
        """DELETE FROM own_wait WHERE until < ? AND NOT EXISTS (SELECT 1 FROM delivery d
            WHERE d.profile_id = own_wait.profile_id AND d.state IN ('queued', 'running')
                AND d.due_at <= own_wait.until)""",
        (after(tx.stamp, -KEPT_SECONDS),),
    ).rowcount
