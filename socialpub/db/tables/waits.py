"""Statements about the tables `not_before` and `own_wait`: waits that a network or a profile's own queue causes."""

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from peewee import SQL, fn

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Reader, Tx, placeholders, prepared
from socialpub.db.models import DeliveryRow, NotBeforeRow, OwnWaitRow

ANY_ENDPOINT = ""
"""Under this name a profile asks nothing at all."""


@prepared("each publication")
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


@prepared("each claim")
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
    """Return the profiles that must not call one of these endpoints now."""
    wait = NotBeforeRow
    query = wait.select(wait.profile_id).where(wait.endpoint.in_(list(endpoints)) & (wait.until > now))
    return frozenset(row.profile_id for row in reader.rows(query))


def end_cooldown(tx: Tx, profile_id: str, endpoint: str) -> str | None:
    """End the wait of this endpoint, and the waits that were refused together with it. Return when it was to end."""
    wait = NotBeforeRow
    of_endpoint = (wait.profile_id == profile_id) & (wait.endpoint == endpoint)
    until: str | None = tx.scalar(wait.select(wait.until).where(of_endpoint))
    if until is not None:
        # The row stays for now: it explains why the posts behind it are late.
        ended = wait.update(until=fn.MIN(wait.until, tx.stamp))
        tx.run(ended.where((wait.profile_id == profile_id) & (wait.until == until)))
    return until


def delete_past_cooldowns(tx: Tx) -> int:
    """Delete the waits that are over, unless they explain why a queued delivery is late. Return how many."""
    wait, delivery = NotBeforeRow, DeliveryRow
    # The state is text of the statement: only so does SQLite use the index of queued deliveries.
    late = (delivery.state == SQL("'queued'")) & (delivery.due_at < wait.until)
    explained = delivery.select(delivery.id).where((delivery.profile_id == wait.profile_id) & late)
    return tx.delete(wait, wait.until <= tx.stamp, ~fn.EXISTS(explained))


_JOINED_SECONDS = 60.0
"""A wait that begins so soon after the last one extends it."""
_KEPT_SECONDS = 86400.0


class OwnWait(StrEnum):
    """What posts waited for."""

    GAP = "gap"
    """The least time between two posts of the profile."""

    STEP = "step"
    """A long step of another post of the profile."""


@prepared("each publication")
def record_own_wait(tx: Tx, profile_id: str, kind: OwnWait, since: str, until: str) -> None:
    """Note that the other posts of the profile wait for this between these two stamps."""
    extended = tx.execute(
        """UPDATE own_wait SET until = max(until, :until) WHERE profile_id = :profile AND until >= :before
            AND kind = :kind AND since <= :since""",
        {"profile": profile_id, "kind": kind, "since": since, "until": until, "before": after(since, -_JOINED_SECONDS)},
    )
    if not extended.rowcount:
        tx.insert("own_wait", profile_id=profile_id, kind=kind, since=since, until=until)


@prepared("each late delivery")
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
    """Delete the waits that ended a day ago, unless an open delivery was due in them. Return how many."""
    wait, delivery = OwnWaitRow, DeliveryRow
    is_open = delivery.state.in_((SQL("'queued'"), SQL("'running'"))) & (delivery.due_at <= wait.until)
    in_it = delivery.select(delivery.id).where((delivery.profile_id == wait.profile_id) & is_open)
    return tx.delete(wait, wait.until < after(tx.stamp, -_KEPT_SECONDS), ~fn.EXISTS(in_it))
