"""Statements about the tables `not_before` and `own_wait`: waits because of a network or a profile's own queue."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from peewee import SQL, fn

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Database, placeholders, prepared
from socialpub.db.models import DeliveryRow, NotBeforeRow, OwnWaitRow

ANY_ENDPOINT = ""
"""The endpoint of a wait that blocks all calls of a profile."""


@prepared("each publication")
def begin_cooldown(
    tx: Database, profile_id: str, endpoint: str, until: str, reason: str, give_up_after: timedelta | None = None
) -> None:
    """Block this endpoint (`ANY_ENDPOINT`: all) for this profile until `until`, or until a later stored instant.

    With `give_up_after`, deliveries that would wait longer are due at once, so that their claim ends them.
    """
    outlasts = None if give_up_after is None else stamp(parse(until) - give_up_after)
    tx.execute_sql(
        """INSERT INTO not_before (profile_id, endpoint, until, reason, outlasts) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (profile_id, endpoint) DO UPDATE SET until = max(until, excluded.until),
                reason = excluded.reason, outlasts = max(ifnull(outlasts, excluded.outlasts),
                    ifnull(excluded.outlasts, outlasts))""",
        (profile_id, endpoint, until, reason, outlasts),
    )


@prepared("each claim")
def cooldown_until(store: Database, profile_id: str, endpoints: Collection[str], now: str) -> tuple[str, str] | None:
    """Return the end and the reason of the longest wait of these endpoints for this profile, or None."""
    names = (ANY_ENDPOINT, *endpoints)
    row = store.one(
        f"""SELECT until, reason FROM not_before WHERE profile_id = ? AND endpoint IN ({placeholders(names)})
            AND until > ? ORDER BY until DESC LIMIT 1""",
        (profile_id, *names, now),
    )
    return None if row is None else (row.until, row.reason)


def profiles_waiting(reader: Database, endpoints: Collection[str], now: str) -> frozenset[str]:
    """Return the profiles with a wait of one of these endpoints."""
    wait = NotBeforeRow
    query = wait.select(wait.profile_id).where(wait.endpoint.in_(list(endpoints)) & (wait.until > now))
    return frozenset(row.profile_id for row in reader.rows(query))


def end_cooldown(tx: Database, profile_id: str, endpoint: str) -> str | None:
    """End the wait of this endpoint, and the waits with the same end. Return that end."""
    wait = NotBeforeRow
    of_endpoint = (wait.profile_id == profile_id) & (wait.endpoint == endpoint)
    until: str | None = tx.scalar(wait.select(wait.until).where(of_endpoint))
    if until is not None:
        # The row stays for now, because it explains why posts are late.
        ended = wait.update(until=fn.MIN(wait.until, tx.stamp))
        tx.run(ended.where((wait.profile_id == profile_id) & (wait.until == until)))
    return until


def delete_past_cooldowns(tx: Database) -> int:
    """Delete past waits, unless they explain why a queued delivery is late. Return their number."""
    wait, delivery = NotBeforeRow, DeliveryRow
    # SQLite uses the index of queued deliveries only if the state is in the SQL text.
    late = (delivery.state == SQL("'queued'")) & (delivery.due_at < wait.until)
    explained = delivery.select(delivery.id).where((delivery.profile_id == wait.profile_id) & late)
    return tx.delete(wait, wait.until <= tx.stamp, ~fn.EXISTS(explained))


_JOINED_SECONDS = 60.0
"""A wait that begins within this time after the last wait extends the last wait."""
_KEPT_SECONDS = 86400.0


class OwnWait(StrEnum):
    """The reason of a wait in a profile's own queue."""

    GAP = "gap"
    """The minimum time between two posts of the profile."""

    STEP = "step"
    """A long step of another post of the profile."""


@prepared("each publication")
def record_own_wait(tx: Database, profile_id: str, kind: OwnWait, since: str, until: str) -> None:
    """Record that other posts of the profile wait between these stamps."""
    extended = tx.execute_sql(
        """UPDATE own_wait SET until = max(until, :until) WHERE profile_id = :profile AND until >= :before
            AND kind = :kind AND since <= :since""",
        {"profile": profile_id, "kind": kind, "since": since, "until": until, "before": after(since, -_JOINED_SECONDS)},
    )
    if not extended.rowcount:
        tx.insert(OwnWaitRow, {"profile_id": profile_id, "kind": kind, "since": since, "until": until})


@prepared("each late delivery")
def total_own_waits(store: Database, profile_id: str, since: datetime, kinds: Collection[OwnWait]) -> timedelta:
    """Return the duration of the profile's waits since this instant, including known future waits."""
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


def delete_own_waits(tx: Database) -> int:
    """Delete the waits that ended a day ago, unless an open delivery was due during the wait. Return their number."""
    wait, delivery = OwnWaitRow, DeliveryRow
    is_open = delivery.state.in_((SQL("'queued'"), SQL("'running'"))) & (delivery.due_at <= wait.until)
    in_it = delivery.select(delivery.id).where((delivery.profile_id == wait.profile_id) & is_open)
    return tx.delete(wait, wait.until < after(tx.stamp, -_KEPT_SECONDS), ~fn.EXISTS(in_it))
