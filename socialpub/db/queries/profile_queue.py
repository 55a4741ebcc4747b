"""Reads the queue of each profile: due and waiting deliveries.

A queue has lines: deliveries whose next step calls the same endpoint. Most waits delay the whole line. Statements
therefore read only the head of each line, even if a line is long. Only `find_overdue` counts deliveries.

Four functions have SQL text: peewee has neither INDEXED BY nor MATERIALIZED, and builds one EXISTS over the view `wait`
in 0.2 to 0.45 ms. `_due` has a dozen of them, and each claim runs `oldest_due`, which takes 0.4 ms in all.
"""

import json
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import SQL, ColumnBase, Field, Table, fn

from socialpub.core.clock import parse, stamp
from socialpub.db.connection import Database, Value
from socialpub.db.delivery import Delivery
from socialpub.db.models import IS_OPEN, IS_QUEUED, IS_RUNNING, DeliveryRow, PostRow
from socialpub.db.states import State
from socialpub.db.tables import delivery_rows
from socialpub.db.tables.waits import PROBED, RANK, SPARED_AT_END, SPARED_AT_START, WaitReason

_WAIT: Any = Table("wait", ("delivery_id", "scope", "reason", "until"))
"""The view of all waits, for peewee queries."""
_ALL, _ONE = "true", "p.id = :profile"  # conditions for profiles
_PRESENT = "ifnull(w.until, '~') > :now"
_OF_LINE = "w.scope NOT IN ('content', 'delivery')"  # SQLite makes a table for a longer list, which takes 0.2 ms
"""Whether a wait delays every delivery of a line."""
_OF_HEAD = f"FROM wait w WHERE w.delivery_id = head.id AND {_OF_LINE}"
_OWN_WAIT = f"""EXISTS (SELECT 1 FROM wait w WHERE w.delivery_id = d.id AND NOT {_OF_LINE} AND {_PRESENT})"""
"""Whether a delivery has a wait of its own."""


def _moved(instant: str, seconds: str) -> str:
    return f"strftime('%Y-%m-%dT%H:%M:%fZ', {instant}, {seconds} || ' seconds')"


def _spared(reasons: str, since: str) -> str:
    """Return the seconds of waits that a deadline does not count. Overlapping waits count twice, so no end is early."""
    return f"""(SELECT ifnull(sum((julianday(w.until) - julianday(max(w.since, {since}))) * 86400.0), 0)
        FROM stored_wait w WHERE w.subject = d.profile_id AND w.reason IN ({reasons}) AND w.until > {since})"""


def _later(instant: str, reasons: str) -> str:
    return _moved(instant, _spared(reasons, instant))


_BEGUN = "max(ifnull(d.started_at, d.due_at), ifnull(json_extract(d.progress, '$.reconnected_at'), ''))"
_HAS = "EXISTS (SELECT 1 FROM wait w WHERE w.delivery_id = d.id AND w.reason = '{}' AND " + _PRESENT + ")"
_STOPPED = "json_extract(d.progress, '$.stopped') IS NOT NULL"
_COUNTS = f"w.until > :now AND w.reason NOT IN ({SPARED_AT_END}, {PROBED})"
"""Whether a wait with a known end counts against `give_up_after`."""
_ENDS = f"""CASE WHEN {_HAS.format("pause")} THEN 0
    WHEN {_STOPPED} AND (d.line NOT LIKE '?%' OR json_extract(d.progress, '$.then') = 'preparing'
        OR {_HAS.format("reconnect")}) THEN 1
    WHEN {_HAS.format("approval")} THEN d.due_at < :late
    WHEN {_HAS.format("parent")} THEN 0
    WHEN {_HAS.format("reconnect")} THEN {_later("d.due_at", SPARED_AT_START)} < :late
    ELSE {_later(_BEGUN, SPARED_AT_START)} < iif(d.started_at IS NULL, :both, :over)
        OR EXISTS (SELECT 1 FROM wait w WHERE w.delivery_id = d.id AND {_COUNTS}
            AND {_later(_BEGUN, SPARED_AT_END)} < {_moved("w.until", ":give_up")}) END"""
"""Whether a waiting delivery ends now: it is stopped, its deadline is over, or its wait outlasts the deadline."""


def _lines(profiles: str) -> str:
    """Return the lines of these profiles' queues, each with its first delivery.

    `waits` is whether the line waits now, `probes` whether its network refuses the app, and `outlasts` the end of the
    profile's longest wait. SQLite uses the indexes of the view only in subqueries without an aggregate.
    """
    return f"""WITH RECURSIVE head (id, profile_id, provider, line) AS (
        SELECT d.id, p.id, p.provider, d.line
            FROM profile p JOIN delivery d ON d.id = (SELECT id FROM delivery INDEXED BY delivery_queue
                WHERE state = 'queued' AND profile_id = p.id ORDER BY line LIMIT 1)
            WHERE {profiles}
        UNION ALL
        SELECT d.id, h.profile_id, h.provider, d.line
            FROM head h JOIN delivery d ON d.id = (SELECT id FROM delivery INDEXED BY delivery_queue
                WHERE state = 'queued' AND profile_id = h.profile_id AND line > h.line ORDER BY line LIMIT 1)),
    line AS MATERIALIZED (
        SELECT head.*, EXISTS (SELECT 1 {_OF_HEAD} AND {_PRESENT}) AS waits,
            EXISTS (SELECT 1 {_OF_HEAD} AND w.reason IN ({PROBED})) AS probes,
            (SELECT max(w.until) FROM stored_wait w WHERE w.subject = head.profile_id AND {_COUNTS}) AS outlasts
        FROM head)"""


_IN_LINE = """FROM delivery d INDEXED BY delivery_queue WHERE d.state = 'queued'
    AND d.profile_id = line.profile_id AND d.line = line.line"""


def _due(profiles: str) -> str:
    """Return what each queue can claim: the deliveries that may run, and waiting deliveries that must end now.

    The first branch has the oldest due delivery of each line without a wait. A line with a due probe has the order of
    `run_at`, so a delivery whose probe was rejected comes last. `refused_at` is the last run of such a line.
    """
    runs = f"SELECT d.id {_IN_LINE} AND d.turn_at <= :now AND d.run_at <= :now AND NOT {_OWN_WAIT}"
    outlasts = f"ifnull({_moved('outlasts', ':give_up')}, '')"
    ends = f"""SELECT d.id {_IN_LINE} AND d.turn_at <= min(:now, max(:over, :late, {outlasts}))
        AND d.run_at <= :now AND (line.waits OR {_OWN_WAIT}) AND {_ENDS} ORDER BY d.turn_at, d.id LIMIT 1"""
    stopped = f"""SELECT d.id FROM delivery d INDEXED BY delivery_stopped WHERE d.state = 'queued' AND {_STOPPED}
        AND d.profile_id = line.profile_id AND d.line = line.line AND d.run_at <= :now
        AND (line.waits OR {_OWN_WAIT}) AND {_ENDS} LIMIT 1"""
    return f"""{_lines(profiles)}, found AS (
        SELECT line.profile_id, 0 AS waits, probes,
            iif(probes, ({runs} ORDER BY d.run_at, d.started_at IS NOT NULL, d.turn_at, d.id LIMIT 1),
                ({runs} ORDER BY d.turn_at, d.id LIMIT 1)) AS id,
            iif(probes, (SELECT max(d.run_at) {_IN_LINE} AND d.started_at IS NOT NULL), '') AS refused_at
        FROM line WHERE NOT waits
        UNION ALL
        SELECT line.profile_id, 1, 0, ifnull(({ends}), ({stopped})), '' FROM line),
    due AS (
        SELECT d.id, d.profile_id, iif(probes, d.run_at, d.turn_at) AS turn_at, found.waits,
            ifnull(refused_at, '') AS refused_at
            FROM found JOIN delivery d ON d.id = found.id)"""


def _params(now: str, max_lateness: timedelta, give_up_after: timedelta) -> dict[str, Value]:
    at = parse(now)
    return {
        "now": now,
        "late": stamp(at - max_lateness),
        "over": stamp(at - give_up_after),
        "both": stamp(at - max(give_up_after, max_lateness)),
        "give_up": -give_up_after.total_seconds(),
    }


def oldest_due(
    db: Database, profile_id: str, now: str, max_lateness: timedelta, give_up_after: timedelta
) -> Delivery | None:
    """Return the next delivery of this profile's queue without a wait.

    Otherwise, return a waiting delivery that must end now, so that its claim ends it.
    """
    sql = f"{_due(_ONE)} SELECT id FROM due ORDER BY waits, turn_at, refused_at, id LIMIT 1"
    params = {**_params(now, max_lateness, give_up_after), "profile": profile_id}
    row = db.execute_sql(sql, params).fetchone()
    return None if row is None else delivery_rows.find(db, row[0])


def due_per_profile(db: Database, now: str, max_lateness: timedelta, give_up_after: timedelta) -> list[tuple[str, str]]:
    """Return the network and the id of each profile with a delivery that its queue can claim, oldest first.

    The profile with the last rejected probe comes last.
    """
    rows: list[tuple[str, str]] = db.execute_sql(
        f"""{_due(_ALL)} SELECT p.provider, p.id FROM due JOIN profile p ON p.id = due.profile_id
            GROUP BY p.id ORDER BY max(refused_at), min(turn_at)""",
        _params(now, max_lateness, give_up_after),
    ).fetchall()
    return rows


def next_run_at(db: Database, now: str, max_lateness: timedelta) -> str | None:
    """Return when the next delivery becomes due, or a wait of due deliveries or its deadline ends."""
    due = "d.state = 'queued' AND d.run_at <= :now"
    deadline = _moved("d.due_at", ":lateness")
    # The reconciler asks this every second. The query takes 0.02 ms, and peewee would build it in more than 1 ms.
    (at,) = db.execute_sql(
        f"""SELECT min(at) FROM (SELECT min(run_at) AS at FROM delivery WHERE state = 'queued' AND run_at > :now
            UNION ALL SELECT min(until) FROM stored_wait w WHERE until > :now AND (
                EXISTS (SELECT 1 FROM delivery d WHERE d.profile_id = w.subject AND {due})
                OR EXISTS (SELECT 1 FROM delivery d WHERE w.reason IN ({PROBED}) AND d.provider = w.subject AND {due}))
            UNION ALL SELECT min({deadline}) FROM stored_wait w CROSS JOIN delivery d ON d.id = w.subject
                WHERE w.reason = 'approval' AND {due} AND {deadline} > :now
            UNION ALL SELECT min({deadline}) FROM profile p CROSS JOIN delivery d ON d.profile_id = p.id
                WHERE p.status = 'reauthRequired' AND {due} AND {deadline} > :now)""",
        {"now": now, "lateness": max_lateness.total_seconds() + 0.001},
    ).fetchone()
    return None if at is None else str(at)


def find_overdue(db: Database, due_before: str, taken_up_before: str) -> tuple[int, str, str] | None:
    """Return the number of overdue deliveries, and the instant and network of the oldest one, or None.

    Overdue deliveries are queued and due before `due_before`, or running since before `taken_up_before`. A line whose
    wait ended after `due_before` is not overdue.
    """
    rows = db.execute_sql(
        f"""{_lines(_ALL)} SELECT provider, (SELECT w.until FROM wait w WHERE w.delivery_id = line.id AND {_OF_LINE}
                AND w.until IS NOT NULL ORDER BY w.until DESC LIMIT 1) AS until,
                (SELECT json_array(count(*), min(d.run_at)) {_IN_LINE}
                AND d.turn_at < :now AND d.run_at < :now AND NOT {_OWN_WAIT}) AS late
            FROM line WHERE NOT waits AND NOT probes
            UNION ALL SELECT provider, NULL, json_array(count(*), min(run_at)) FROM delivery
            WHERE state = 'running' AND run_at < :running""",
        {"now": due_before, "running": taken_up_before},
    )
    counted = [(*json.loads(late), until or "", provider) for provider, until, late in rows]
    overdue = [(count, max(since, until), provider) for count, since, until, provider in counted if count]
    if not overdue:
        return None
    _, since, provider = min(overdue, key=lambda row: row[1])
    return sum(count for count, *_ in overdue), since, provider


def list_open(db: Database, profile_id: str, now: str, limit: int) -> list[Any]:
    """Return the open deliveries to this profile: first the running deliveries, then the others by `run_at`.

    The rows have post_id, body, due_at, started_at and waits_for, the reason of the wait to show or None.
    """
    delivery = DeliveryRow
    is_now = (fn.IFNULL(_WAIT.until, "~") > now) & ((delivery.run_at <= now) | (_WAIT.scope == "delivery"))
    reasons = _WAIT.select(_WAIT.reason).where(_WAIT.delivery_id == delivery.id, is_now).order_by(SQL(RANK)).limit(1)
    columns = (delivery.post_id, PostRow.body, delivery.due_at, delivery.started_at, reasons.alias("waits_for"))
    query = delivery.select(*columns).join(PostRow, on=PostRow.id == delivery.post_id)
    query = query.where(delivery.profile_id == profile_id).limit(limit).namedtuples()
    # Each state has its own index: most deliveries have ended.
    running = query.where(IS_RUNNING).order_by(delivery.id)
    queued = query.where(IS_QUEUED).order_by(delivery.run_at)
    return [*running.execute(db), *queued.execute(db)][:limit]


class QueueTotals(NamedTuple):
    """The numbers of open deliveries to a profile."""

    waiting: int
    held: int
    """Deliveries that wait for the owner to connect the account again."""
    scheduled: int
    committed: int
    """Deliveries past their commit."""


def load_totals(db: Database, profile_id: str, now: str, soon: str) -> QueueTotals:
    """Count the open deliveries to this profile.

    Deliveries that run after `soon` count as scheduled without being read.
    """
    delivery = DeliveryRow
    is_reconnect = (_WAIT.delivery_id == delivery.id) & (_WAIT.reason == WaitReason.RECONNECT)
    is_held = (delivery.run_at <= now) & fn.EXISTS(_WAIT.select(SQL("1")).where(is_reconnect))
    is_ahead = delivery.started_at.is_null() & (delivery.due_at > now)
    count = delivery.select(fn.COUNT(SQL("*"))).where(delivery.profile_id == profile_id)
    near = count.where(IS_QUEUED, delivery.run_at <= soon)
    near = near.select_extend(fn.IFNULL(fn.SUM(is_held), 0), fn.IFNULL(fn.SUM(is_ahead & ~is_held), 0))
    ((queued, held, ahead),) = near.tuples().execute(db)
    later = count.where(IS_QUEUED, delivery.run_at > soon).scalar(db)
    running = count.where(IS_RUNNING).scalar(db)
    committed = count.where(IS_OPEN, ~delivery.committed_at.is_null()).scalar(db)
    return QueueTotals(queued + later + running, held, ahead + later, committed)


def count_queued_by_profile(db: Database) -> list[tuple[str, int]]:
    """Return each profile with queued deliveries, and their number."""
    return _count_by(db, DeliveryRow.profile_id, IS_QUEUED)


def count_by_provider(db: Database, state: State) -> list[tuple[str, int]]:
    """Return each network with deliveries in this state (queued or running), and their number."""
    return _count_by(db, DeliveryRow.provider, DeliveryRow.state == SQL(f"'{state}'"))


def count_due_by_provider(db: Database, now: str) -> list[tuple[str, int]]:
    """Return each network with due queued deliveries, and their number."""
    return _count_by(db, DeliveryRow.provider, IS_QUEUED & (DeliveryRow.run_at <= now))


def _count_by(db: Database, column: Field, condition: ColumnBase) -> list[tuple[str, int]]:
    query = DeliveryRow.select(column, fn.COUNT(SQL("*"))).where(condition).group_by(column).order_by(column)
    return list(query.tuples().execute(db))


def count_posts_due_before(db: Database, instant: str) -> int:
    """Count the posts with a delivery that was due before this instant and has not started.

    Deliveries that a network delayed, or that waited for the profile's own queue all the time, do not count. Deliveries
    that wait for the owner count.
    """
    delivery = DeliveryRow.alias("d")

    def has(reason: WaitReason, *conditions: ColumnBase) -> ColumnBase:
        waits = _WAIT.select(SQL("1")).where(_WAIT.delivery_id == delivery.id, _WAIT.reason == reason, *conditions)
        return fn.EXISTS(waits)

    reconnected_at = fn.json_extract(delivery.progress, "$.reconnected_at")
    is_first_run = (delivery.run_at <= delivery.due_at) | (delivery.run_at == reconnected_at)
    was_late = SQL(_later("d.due_at", SPARED_AT_START)) < instant
    is_late = is_first_run & delivery.started_at.is_null() & was_late
    is_late &= ~has(WaitReason.NETWORK, _WAIT.until > delivery.due_at)
    waits_for_owner = has(WaitReason.RECONNECT) | has(WaitReason.APPROVAL)
    query = delivery.select(fn.COUNT(delivery.post_id.distinct())).where(delivery.state == SQL("'queued'"))
    return int(query.where(delivery.due_at < instant, waits_for_owner | is_late).scalar(db))


def uncommitted_due_by(db: Database, profile_id: str, instant: str, except_post: str | None) -> list[str]:
    """Return when open deliveries before their commit to this profile are due, up to this instant, oldest first."""
    row = DeliveryRow
    query = row.select(row.due_at).where(IS_OPEN, row.profile_id == profile_id, row.committed_at.is_null())
    query = query.where(row.due_at <= instant)
    if except_post is not None:
        query = query.where(row.post_id != except_post)
    return [due_at for (due_at,) in query.order_by(row.due_at).tuples().execute(db)]


def oldest_open_call(db: Database) -> str | None:
    """Return the earliest call with an unknown outcome of an open delivery, or None."""
    row = DeliveryRow
    called = row.select(row.committed_at, fn.json_extract(row.progress, "$.since"))
    called = called.where(IS_OPEN, ~row.committed_at.is_null() | (row.progress != "{}"))
    instants = [instant for times in called.tuples().execute(db) for instant in times if instant is not None]
    return min(instants, default=None)
