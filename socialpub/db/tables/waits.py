"""Statements about the tables `not_before` and `own_wait`: waits that a network or a profile's own queue causes."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Reader, Tx, placeholders

ANY_ENDPOINT = ""
"""Under this name a profile asks nothing at all."""


def begin_cooldown(
    tx: Tx, profile_id: str, endpoint: str, until: str, reason: str, give_up_after: timedelta | None = None
) -> None:
    """Ask this endpoint (`ANY_ENDPOINT`: none) not before `until` for this profile. A later time that is
    known already stays.

    With `give_up_after`, deliveries that would wait longer than that are due at once, to be ended by their claim.
    """
    outlasts = None if give_up_after is None else stamp(parse(until) - give_up_after)
    tx.execute(
        """INSERT INTO not_before (profile_id, endpoint, until, reason, outlasts) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (profile_id, endpoint) DO UPDATE SET until = max(until, excluded.until),
                reason = excluded.reason, outlasts = max(ifnull(outlasts, excluded.outlasts),
                    ifnull(excluded.outlasts, outlasts))""",
        (profile_id, endpoint, until, reason, outlasts),
    )


def cooldown_until(store: Reader, profile_id: str, endpoints: Collection[str], now: str) -> tuple[str, str] | None:
    """Until when none of these endpoints is asked for this profile, and why; None when nothing has to wait."""
    names = (ANY_ENDPOINT, *endpoints)
    row = store.one(
        f"""SELECT until, reason FROM not_before WHERE profile_id = ? AND endpoint IN ({placeholders(names)})
            AND until > ? ORDER BY until DESC LIMIT 1""",
        (profile_id, *names, now),
    )
    return None if row is None else (row.until, row.reason)


def profiles_waiting(reader: Reader, endpoints: Collection[str], now: str) -> frozenset[str]:
    """The profiles for which one of these endpoints must not be asked now."""
    rows = reader.all(
        f"SELECT profile_id FROM not_before WHERE endpoint IN ({placeholders(endpoints)}) AND until > ?",
        (*endpoints, now),
    )
    return frozenset(row[0] for row in rows)


def end_cooldown(tx: Tx, profile_id: str, endpoint: str) -> str | None:
    """End the wait of this endpoint, and the waits that were refused together with it. Return when it was to end."""
    row = tx.one("SELECT until FROM not_before WHERE profile_id = ? AND endpoint = ?", (profile_id, endpoint))
    if row is None:
        return None
    # The row stays for now: it explains why the posts behind it are late.
    ended = "UPDATE not_before SET until = min(until, ?) WHERE profile_id = ? AND until = ?"
    tx.execute(ended, (tx.stamp, profile_id, row.until))
    return str(row.until)


def delete_past_cooldowns(tx: Tx) -> int:
    """Delete the waits that are over, unless they explain why a queued delivery is late. Return how many."""
    return tx.execute(
        """DELETE FROM not_before WHERE until <= ? AND NOT EXISTS (SELECT 1 FROM delivery d
            WHERE d.profile_id = not_before.profile_id AND d.state = 'queued' AND d.due_at < not_before.until)""",
        (tx.stamp,),
    ).rowcount


def delete_cooldowns(tx: Tx, profile_id: str) -> None:
    """Drop all waits of a profile that is gone."""
    tx.execute("DELETE FROM not_before WHERE profile_id = ?", (profile_id,))


_JOINED_SECONDS = 60.0
"""A wait that begins so soon after the last one extends it."""
_KEPT_SECONDS = 86400.0


class OwnWait(StrEnum):
    """What posts waited for."""

    GAP = "gap"
    """The least time between two posts of the profile."""

    STEP = "step"
    """A long step of another post of the profile."""


def record_own_wait(tx: Tx, profile_id: str, kind: OwnWait, since: str, until: str) -> None:
    """Note that the other posts of the profile wait for this between these two stamps."""
    extended = tx.execute(
        """UPDATE own_wait SET until = max(until, :until) WHERE profile_id = :profile AND until >= :before
            AND kind = :kind AND since <= :since""",
        {"profile": profile_id, "kind": kind, "since": since, "until": until, "before": after(since, -_JOINED_SECONDS)},
    )
    if not extended.rowcount:
        tx.insert("own_wait", profile_id=profile_id, kind=kind, since=since, until=until)


def total_own_waits(store: Reader, profile_id: str, since: datetime, kinds: Collection[OwnWait]) -> timedelta:
    """How long posts of the profile waited since this instant, and still will as far as that is known."""
    rows = store.all(
        f"""SELECT since, until FROM own_wait WHERE profile_id = ? AND kind IN ({placeholders(kinds)})
            AND until > ? ORDER BY since""",
        (profile_id, *kinds, stamp(since)),
    )
    waited, counted_until = timedelta(), since
    for row in rows:
        began, ended = max(parse(row.since), counted_until), parse(row.until)
        if ended > began:
            waited, counted_until = waited + (ended - began), ended
    return waited


def delete_own_waits(tx: Tx) -> int:
    """Forget the waits that no open delivery was due in, a day after their end; how many."""
    return tx.execute(
        """DELETE FROM own_wait WHERE until < ? AND NOT EXISTS (SELECT 1 FROM delivery d
            WHERE d.profile_id = own_wait.profile_id AND d.state IN ('queued', 'running')
                AND d.due_at <= own_wait.until)""",
        (after(tx.stamp, -_KEPT_SECONDS),),
    ).rowcount
