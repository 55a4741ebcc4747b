"""The reasons why a delivery waits: one table of reasons, and statements about stored waits and the view `wait`.

The view (`db/migrations`) has a row for each wait of each delivery. A row of `stored_wait` exists only where no other
row states the wait. Nothing else decides whether a delivery waits.

Each claim and each settlement runs `list_current` and `any_hold`. They have SQL text: 0.02 and 0.01 ms, and 0.38 and
0.24 ms as peewee queries.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from peewee import SQL, Case, Expression, fn

from socialpub.core.clock import after, parse, stamp
from socialpub.db.connection import Database
from socialpub.db.delivery import Delivery
from socialpub.db.models import IS_OPEN, DeliveryRow, StoredWaitRow


class EndedBy(StrEnum):
    OWNER = "the owner"
    POST = "the outcome of another post"
    PROBE = "the answer to a probe"
    TIME = "its time"


class WaitReason(StrEnum):
    APPROVAL = "approval"
    """The owner must approve the post."""

    RECONNECT = "reconnect"
    """The account must be connected again."""

    PAUSE = "pause"
    """Publishing is paused."""

    PARENT = "parent"
    """The post to which this post replies is not published yet."""

    EQUAL = "equal"
    """The outcome of a post with equal content is unknown."""

    APP = "app"
    """The network refuses this app."""

    NETWORK = "network"
    """The network named a time, or limits its calls."""

    GAP = "gap"
    """The minimum time between two posts of the profile."""

    STEP = "step"
    """A long step of another post of the profile. Only the past has such a row."""


@dataclass(frozen=True, slots=True)
class WaitRule:
    """What a reason means. `rank`: the lowest rank of several waits is shown, and of equal ranks the longest wait."""

    rank: int
    ended_by: EndedBy
    sentence: str = "{message}"
    """What attempts and pages show. `message` and `since` are those of the wait."""
    delays_start: bool = True
    """Whether the wait counts against `max_lateness`."""
    delays_end: bool = True
    """Whether the wait counts against `give_up_after`. A longer wait than this deadline ends a delivery at once."""
    is_probed: bool = False
    """Whether `until` is the next probe: one delivery then asks the network for all."""

    @property
    def needs_act(self) -> bool:
        """Whether the wait has no known end."""
        return self.ended_by is not EndedBy.TIME


REASONS: dict[str, WaitRule] = {
    WaitReason.APPROVAL: WaitRule(1, EndedBy.OWNER),
    WaitReason.RECONNECT: WaitRule(2, EndedBy.OWNER),
    WaitReason.PAUSE: WaitRule(3, EndedBy.OWNER, "Publishing is paused since {since}."),
    WaitReason.PARENT: WaitRule(4, EndedBy.POST, "Waits for the post {message}, to which this post replies."),
    WaitReason.EQUAL: WaitRule(5, EndedBy.POST, "Another post with the same content is read back first."),
    WaitReason.APP: WaitRule(6, EndedBy.PROBE, is_probed=True),
    WaitReason.NETWORK: WaitRule(6, EndedBy.TIME),
    WaitReason.GAP: WaitRule(6, EndedBy.TIME, delays_start=False, delays_end=False),
    WaitReason.STEP: WaitRule(6, EndedBy.TIME, delays_start=False),
}

RANK = "CASE reason " + " ".join(f"WHEN '{reason}' THEN {one.rank}" for reason, one in REASONS.items()) + " END"
"""SQL: the rank of a row of the view."""


def _reasons(found: Collection[str]) -> str:
    return ", ".join(f"'{reason}'" for reason in found)


PROBED = _reasons([reason for reason, one in REASONS.items() if one.is_probed])
SPARED_AT_START = _reasons([reason for reason, one in REASONS.items() if not one.delays_start])
SPARED_AT_END = _reasons([reason for reason, one in REASONS.items() if not one.delays_end])

# Groups of calls (`stored_wait.calls`). Other values are endpoints: `upload:3` and `upload:4` share one endpoint.
ALL_CALLS = ""
PUBLISHING = "publishing"
"""All calls that are no queries."""
QUESTIONS = "questions"
"""Read-backs and polls."""
COMMITS = "commit"
"""Every call that makes a post of the profile public."""

PAST = "past"
"""No calls: the row only explains why posts were late."""

PROBE_SECONDS = 15 * 60
"""The interval in which one delivery tests whether the network accepts the app again."""
_JOINED_SECONDS = 60.0
"""A wait for the profile's own posts that begins within this time after the last one extends the last one."""
_KEPT_SECONDS = 86400.0


def step_endpoint(step_name: str) -> str:
    """Return the endpoint of a step."""
    return step_name.partition(":")[0]


def next_calls(delivery: Delivery) -> tuple[str, ...]:
    """Return the groups of calls that a refusal of the app can hold at this delivery's next step."""
    return (QUESTIONS,) if delivery.asks else (PUBLISHING, step_endpoint(delivery.step_name))


# --- the view --------------------------------------------------------------------------------------------------------


class PresentWait(NamedTuple):
    """A row of the view `wait`."""

    delivery_id: str
    profile_id: str
    due_at: str
    reason: str
    """A `WaitReason`."""
    since: str
    until: str | None
    message: str
    code: str | None


_COLUMNS = ", ".join(PresentWait._fields)


def list_current(db: Database, delivery_id: str, now: str) -> list[PresentWait]:
    """Return the present waits of this delivery, the one to show first."""
    sql = f"""SELECT {_COLUMNS} FROM wait WHERE delivery_id = ? AND ifnull(until, '~') > ?
        ORDER BY {RANK}, ifnull(until, '~') DESC"""
    return [PresentWait(*row) for row in db.execute_sql(sql, (delivery_id, now))]


def list_of_post(db: Database, post_id: str, now: str) -> list[PresentWait]:
    """Return for each queued delivery of the post the wait to show.

    A wait that only this delivery has is shown before the delivery is due. SQLite does not push the condition of a
    peewee query into the branches of the view.
    """
    sql = f"""SELECT {_COLUMNS} FROM (SELECT *, row_number() OVER (
                PARTITION BY delivery_id ORDER BY {RANK}, ifnull(until, '~') DESC) AS place
            FROM wait WHERE post_id = :post AND state = 'queued' AND ifnull(until, '~') > :now
                AND (run_at <= :now OR scope = 'delivery'))
        WHERE place = 1"""
    return [PresentWait(*row) for row in db.execute_sql(sql, {"post": post_id, "now": now})]


# --- stored waits ----------------------------------------------------------------------------------------------------


def begin(tx: Database, reason: WaitReason, subject: str, calls: str, until: str, message: str) -> None:
    """Make these calls wait until `until`, or until a later stored instant."""
    _extend(tx, reason, subject, calls, tx.stamp, until, message)


def record_span(
    tx: Database, reason: WaitReason, profile_id: str, calls: str, since: str, until: str, message: str | None = None
) -> None:
    """Record that other posts of the profile wait between these stamps."""
    wait = StoredWaitRow
    is_joined = (wait.until >= after(since, -_JOINED_SECONDS)) & (wait.since <= since)
    _extend(tx, reason, profile_id, calls, since, until, message, is_joined)


def _extend(
    tx: Database,
    reason: WaitReason,
    subject: str,
    calls: str,
    since: str,
    until: str,
    message: str | None,
    *conditions: Expression,
) -> None:
    """Extend the wait that meets the conditions, or store a new wait."""
    wait = StoredWaitRow
    is_same = (wait.subject == subject) & (wait.reason == reason) & (wait.calls == calls)
    extended = wait.update(until=fn.MAX(wait.until, until), message=message).where(is_same, *conditions)
    if not extended.execute(tx):
        row = {"subject": subject, "reason": reason, "calls": calls, "since": since}
        tx.insert(wait, {**row, "until": until, "message": message})


def ends_at(db: Database, profile_id: str, calls: Collection[str], now: str) -> str | None:
    """Return the end of the longest wait of these calls of the profile, or None."""
    wait = StoredWaitRow
    present = (wait.subject == profile_id) & wait.calls.in_([ALL_CALLS, *calls]) & (wait.until > now)
    until: str | None = wait.select(fn.MAX(wait.until)).where(present).scalar(db)
    return until


def subjects(db: Database, calls: Collection[str], now: str) -> frozenset[str]:
    """Return the profiles whose calls of these groups wait now."""
    wait = StoredWaitRow
    query = wait.select(wait.subject).where(wait.calls.in_(list(calls)) & (wait.until > now))
    return frozenset(row.subject for row in query.execute(db))


def end(tx: Database, profile_id: str, calls: str) -> str | None:
    """End the wait of these calls, and the waits with the same end. Return that end."""
    wait = StoredWaitRow
    query = wait.select(wait.until).where(wait.subject == profile_id, wait.calls == calls)
    until: str | None = query.scalar(tx)
    if until is not None:
        # The row stays for now, because it explains why posts are late.
        ended = wait.update(until=fn.MIN(wait.until, tx.stamp))
        ended.where((wait.subject == profile_id) & (wait.until == until)).execute(tx)
    return until


def total_spans(db: Database, profile_id: str, since: datetime, reasons: Sequence[WaitReason]) -> timedelta:
    """Return the duration of the profile's waits of these reasons since this instant, including known future waits."""
    wait = StoredWaitRow
    of_reasons = (wait.subject == profile_id) & wait.reason.in_(list(reasons)) & (wait.until > stamp(since))
    rows = wait.select(wait.since, wait.until).where(of_reasons).order_by(wait.since).execute(db)
    waited, counted_until = timedelta(), since
    for row in rows:
        began, ended = max(parse(row.since), counted_until), parse(row.until)
        if ended > began:
            waited, counted_until = waited + (ended - began), ended
    return waited


def delete_past(tx: Database) -> int:
    """Delete past waits, unless they explain why an open delivery is late. Return their number.

    A wait for the profile's own posts stays for a day.
    """
    wait, delivery = StoredWaitRow, DeliveryRow
    own = [reason for reason, row in REASONS.items() if not row.delays_start]
    is_explained = IS_OPEN & (delivery.profile_id == wait.subject) & (delivery.due_at <= wait.until)
    explained = delivery.select(delivery.id).where(is_explained)
    past = (wait.until < after(tx.stamp, -_KEPT_SECONDS)) | (wait.reason.not_in(own) & (wait.until <= tx.stamp))
    probed = [reason for reason, row in REASONS.items() if row.is_probed]
    return tx.delete(wait, past, wait.reason.not_in(probed), ~fn.EXISTS(explained))


# --- the app is refused ----------------------------------------------------------------------------------------------


def describe_hold(calls: str) -> str:
    """Return what waits while the network refuses these calls of the app."""
    match calls:
        case "publishing":
            return "its deliveries are held"
        case "questions":
            return "read-backs and polls are held, and posting continues"
        case _:
            return f"its deliveries are held at the step {calls}"


def describe_release(calls: str) -> str:
    """Return what continues when the network accepts these calls of the app again."""
    return "read-backs and polls continue" if calls == QUESTIONS else "held deliveries are sent"


def hold(tx: Database, provider: str, calls: str, message: str, code: str | None) -> str:
    """Hold these calls of a network. Return when the next probe is due."""
    probe_at = after(tx.stamp, PROBE_SECONDS)
    facts = {"until": probe_at, "message": message, "code": code}
    if not StoredWaitRow.update(**facts).where(_holds(provider, (calls,))).execute(tx):
        hold = {"subject": provider, "reason": WaitReason.APP, "calls": calls, "since": tx.stamp}
        tx.insert(StoredWaitRow, {**hold, **facts})
    return probe_at


def release(tx: Database, provider: str, calls: str) -> bool:
    """Delete the hold. Return whether there was a hold."""
    return tx.delete(StoredWaitRow, _holds(provider, (calls,))) == 1


def claim_probe(tx: Database, delivery: Delivery) -> None:
    """Make this delivery the probe of the holds on its next step, and let the next probe wait."""
    held = _holds(delivery.provider, next_calls(delivery))
    StoredWaitRow.update(until=after(tx.stamp, PROBE_SECONDS)).where(held).execute(tx)


def release_probe(tx: Database, provider: str, calls: Sequence[str], at: str) -> None:
    """Let the next probe begin at `at` or earlier: the last probe had no result."""
    earlier = StoredWaitRow.update(until=fn.MIN(StoredWaitRow.until, at))
    earlier.where(_holds(provider, calls)).execute(tx)


def _holds(provider: str, calls: Sequence[str]) -> Expression:
    wait = StoredWaitRow
    return (wait.subject == provider) & (wait.reason == WaitReason.APP) & wait.calls.in_(list(calls))


def probe_all(tx: Database) -> None:
    """Let all holds be probed at once: the operator has fixed the cause."""
    wait = StoredWaitRow
    wait.update(until=fn.MIN(wait.until, tx.stamp)).where(wait.reason == WaitReason.APP).execute(tx)


def find_hold(db: Database, provider: str, calls: str = PUBLISHING) -> StoredWaitRow | None:
    hold: StoredWaitRow | None = StoredWaitRow.select().where(_holds(provider, (calls,))).first(db)
    return hold


def any_hold(db: Database) -> bool:
    return db.execute_sql(f"SELECT 1 FROM stored_wait WHERE reason IN ({PROBED})").fetchone() is not None


def list_holds(db: Database) -> list[StoredWaitRow]:
    """Return the holds: `subject` is the network."""
    wait = StoredWaitRow
    return list(wait.select().where(wait.reason == WaitReason.APP).order_by(wait.subject, wait.calls).execute(db))


def held_networks(db: Database) -> frozenset[str]:
    """Return the networks that refuse this app."""
    return frozenset(row.subject for row in list_holds(db) if row.calls == PUBLISHING)


def delete_unasked_holds(tx: Database) -> None:
    """Delete holds for which no delivery waits, because a probe would never end them. Holds of the whole app stay."""
    hold, delivery = StoredWaitRow, DeliveryRow
    is_query = delivery.line.startswith("?")
    endpoint = fn.SUBSTR(delivery.line, 2)
    asks = Case(None, ((is_query, hold.calls == QUESTIONS),), hold.calls == endpoint)
    asked = delivery.select(delivery.id).where(IS_OPEN, delivery.provider == hold.subject, asks)
    tx.delete(hold, hold.reason == WaitReason.APP, hold.calls != PUBLISHING, ~fn.EXISTS(asked))


# --- approvals -------------------------------------------------------------------------------------------------------


def require_approval(tx: Database, delivery_id: str, message: str, key_name: str) -> None:
    """Make a delivery wait for the owner's approval."""
    row = {"subject": delivery_id, "reason": WaitReason.APPROVAL, "calls": ALL_CALLS, "since": tx.stamp}
    tx.insert(StoredWaitRow, {**row, "message": message, "key_name": key_name})


def forget(tx: Database, subject: str) -> None:
    """Delete the waits of an ended delivery or an erased profile."""
    tx.delete(StoredWaitRow, StoredWaitRow.subject == subject)


def forget_holds(tx: Database) -> None:
    """Delete all holds: another installation has met them."""
    tx.delete(StoredWaitRow, StoredWaitRow.reason == WaitReason.APP)


def is_unapproved(db: Database, delivery_id: str) -> bool:
    wait = StoredWaitRow
    query = wait.select(SQL("1")).where((wait.subject == delivery_id) & (wait.reason == WaitReason.APPROVAL))
    return query.scalar(db) is not None


IS_UNAPPROVED = fn.EXISTS(
    StoredWaitRow.select(SQL("1")).where(
        (StoredWaitRow.subject == DeliveryRow.id) & (StoredWaitRow.reason == WaitReason.APPROVAL)
    )
)
"""Whether a row of a query over `DeliveryRow` waits for the owner's approval."""
