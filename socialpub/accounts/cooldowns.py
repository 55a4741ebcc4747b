"""Rate limits and other waits, remembered per profile and endpoint: until when nothing is asked there.

One delivery that has to wait spares the others of its profile the same answer.
"""

from collections.abc import Collection
from datetime import timedelta

from socialpub.core.clock import after, parse, stamp
from socialpub.db import delivery_rows
from socialpub.db.transaction import Reader, Tx, placeholders
from socialpub.providers.errors import ProviderError, Throttled
from socialpub.runtime import Runtime

ANY_ENDPOINT = ""
"""Under this name a profile asks nothing at all."""


LONGEST_SECONDS = 86400.0
"""Whoever asks for more is asked again after a day."""
LONGEST_SENSIBLE_SECONDS = 366 * 86400.0


def sensible(seconds: float | None) -> float | None:
    """A wait that a network can have meant: not one in milliseconds, from the past or decades long. None: no such."""
    return seconds if seconds is not None and 0 < seconds <= LONGEST_SENSIBLE_SECONDS else None


def named_by(error: ProviderError) -> float | None:
    """The seconds that a network which has had too many calls asks for. None: it names no sensible time."""
    return sensible(error.retry_after_seconds) if isinstance(error, Throttled) else None


def endpoint_of(step_name: str) -> str:
    """The step's family: `upload:3` and `upload:4` ask the same endpoint."""
    return step_name.partition(":")[0]


def begin(
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


def begin_for(rt: Runtime, tx: Tx, profile_id: str, endpoint: str, seconds: float, reason: str) -> None:
    """The same from now on, for a day at most, as a write of its own."""
    begin(tx, profile_id, endpoint, after(tx.stamp, min(seconds, LONGEST_SECONDS)), reason)


def until(store: Reader | Tx, profile_id: str, endpoints: Collection[str], now: str) -> tuple[str, str] | None:
    """Until when none of these endpoints is asked for this profile, and why; None when nothing has to wait."""
    names = (ANY_ENDPOINT, *endpoints)
    row = store.one(
        f"""SELECT until, reason FROM not_before WHERE profile_id = ? AND endpoint IN ({placeholders(names)})
            AND until > ? ORDER BY until DESC LIMIT 1""",
        (profile_id, *names, now),
    )
    return None if row is None else (row["until"], row["reason"])


def profiles(reader: Reader, endpoints: Collection[str], now: str) -> frozenset[str]:
    """The profiles for which one of these endpoints must not be asked now."""
    rows = reader.all(
        f"SELECT profile_id FROM not_before WHERE endpoint IN ({placeholders(endpoints)}) AND until > ?",
        (*endpoints, now),
    )
    return frozenset(row[0] for row in rows)


def end(rt: Runtime, tx: Tx, profile_id: str, endpoint: str) -> None:
    """The network has answered a question to this endpoint: a wait for it ends, also for what it refused together."""
    row = tx.one("SELECT until FROM not_before WHERE profile_id = ? AND endpoint = ?", (profile_id, endpoint))
    if row is not None:
        # It has ended now, and still explains why the posts behind it are late.
        ended = "UPDATE not_before SET until = min(until, ?) WHERE profile_id = ? AND until = ?"
        tx.execute(ended, (tx.stamp, profile_id, row["until"]))
        delivery_rows.wake_put_off(tx, profile_id, row["until"])


def forget(tx: Tx, profile_id: str) -> None:
    """Drop all waits of a profile that is gone."""
    tx.execute("DELETE FROM not_before WHERE profile_id = ?", (profile_id,))


def clean(rt: Runtime, tx: Tx) -> int:
    """Forget waits that are over, unless they still explain why a queued delivery is late; how many."""
    return tx.execute(
        """DELETE FROM not_before WHERE until <= ? AND NOT EXISTS (SELECT 1 FROM delivery d
            WHERE d.profile_id = not_before.profile_id AND d.state = 'queued' AND d.due_at < not_before.until)""",
        (tx.stamp,),
    ).rowcount
