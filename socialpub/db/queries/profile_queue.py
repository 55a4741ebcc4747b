"""Reads the queue of each profile: due and waiting deliveries.

A queue has a line for each `waits_on` and `next_scope`: deliveries whose next step calls the same endpoint. A wait of
that endpoint (`not_before`) or a hold delays the whole line. Statements therefore read only the head of each line, even
if a line is long. Only `find_overdue` counts deliveries.
"""

import json

from socialpub.db.connection import Database, Row
from socialpub.db.delivery import Delivery

_HELD = """EXISTS (SELECT 1 FROM hold WHERE hold.provider = line.provider AND hold.probe_at > {}
    AND (scope = line.next_scope OR (scope = '' AND line.next_scope <> 'questions')))"""
"""Whether a hold delays a line until its probe."""

WAIT_APPLIES = """waiting.waits_on <> '' AND (endpoint IN ('', ltrim(waiting.waits_on, '+'))
    OR (endpoint = 'commit' AND waiting.waits_on LIKE '+%'))"""
"""Whether a row of `not_before` delays the next step of `waiting` (a delivery or a line of its profile)."""

_ALL, _ONE = "true", "p.id = :profile"  # conditions for profiles


def _lines(profiles: str) -> str:
    """Return the lines of these profiles' queues.

    `until` is the end of the last wait of a line. During the wait, deliveries older than `outlasts` end at once.
    """
    return f"""WITH RECURSIVE waiting (profile_id, provider, active, waits_on, next_scope) AS (
        SELECT p.id, p.provider, p.status = 'active', d.waits_on, d.next_scope
            FROM profile p JOIN delivery d ON d.id = (SELECT id FROM delivery INDEXED BY delivery_queue
                WHERE state = 'queued' AND profile_id = p.id ORDER BY waits_on, next_scope LIMIT 1)
            WHERE {profiles}
        UNION ALL
        SELECT w.profile_id, w.provider, w.active, d.waits_on, d.next_scope
            FROM waiting w JOIN delivery d ON d.id = ifnull(
                (SELECT id FROM delivery INDEXED BY delivery_queue WHERE state = 'queued' AND profile_id = w.profile_id
                    AND waits_on = w.waits_on AND next_scope > w.next_scope ORDER BY next_scope LIMIT 1),
                (SELECT id FROM delivery INDEXED BY delivery_queue WHERE state = 'queued' AND profile_id = w.profile_id
                    AND waits_on > w.waits_on ORDER BY waits_on, next_scope LIMIT 1))),
    line AS MATERIALIZED (
        SELECT waiting.*, (SELECT max(until) FROM not_before n WHERE n.profile_id = waiting.profile_id AND active
                AND {WAIT_APPLIES}) AS until,
            (SELECT max(outlasts) FROM not_before n WHERE n.profile_id = waiting.profile_id AND until > :now
                AND {WAIT_APPLIES}) AS outlasts
            FROM waiting)"""


def _due(profiles: str) -> str:
    """Return the oldest due delivery of each line, or, of a waiting line, a delivery that would wait too long.

    A line with a due probe has the order of `run_at`, so a delivery whose probe was rejected comes last. `refused_at`
    is the last run of such a line.
    """
    of_line = """FROM delivery d INDEXED BY delivery_queue WHERE d.state = 'queued'
            AND d.profile_id = line.profile_id AND d.waits_on = line.waits_on AND d.next_scope = line.next_scope"""
    due = f"""SELECT d.id {of_line} AND d.run_at <= :now
                AND d.turn_at <= iif(until > :now, min(outlasts, :now), :now)
                AND (NOT ifnull(until > :now, 0) OR ifnull(d.started_at, d.due_at) < outlasts)"""
    return f"""{_lines(profiles)}, open_line AS (
        SELECT line.*, {_HELD.format("''")} AS probes FROM line WHERE NOT {_HELD.format(":now")}),
    head AS (
        SELECT line.profile_id, until > :now AS waits, probes,
            iif(probes, ({due} ORDER BY d.run_at, d.started_at IS NOT NULL, d.turn_at, d.id LIMIT 1),
                ({due} ORDER BY d.turn_at, d.id LIMIT 1)) AS id,
            iif(probes, (SELECT max(d.run_at) {of_line} AND d.started_at IS NOT NULL), '') AS refused_at
        FROM open_line line),
    due AS (
        SELECT d.id, d.profile_id, iif(probes, d.run_at, d.turn_at) AS turn_at, ifnull(head.waits, 0) AS waits,
            ifnull(refused_at, '') AS refused_at
            FROM head JOIN delivery d ON d.id = head.id)"""


def oldest_due(reader: Database, profile_id: str, now: str) -> Delivery | None:
    """Return the next delivery of this profile's queue without a wait or a hold.

    Otherwise, return a delivery that would wait too long, so that its claim ends it.
    """
    row = reader.one(
        f"""{_due(_ONE)} SELECT {Delivery.COLUMNS} FROM delivery
            WHERE id = (SELECT id FROM due ORDER BY waits, turn_at, refused_at, id LIMIT 1)""",
        {"profile": profile_id, "now": now},
    )
    return None if row is None else Delivery.from_row(row)


def due_per_profile(reader: Database, now: str) -> list[tuple[str, str]]:
    """Return the network and the id of each profile with a due delivery without a wait or a hold, oldest first.

    The profile with the last rejected probe comes last.
    """
    rows = reader.all(
        f"""{_due(_ALL)} SELECT p.provider, p.id FROM due JOIN profile p ON p.id = due.profile_id
            GROUP BY p.id ORDER BY max(refused_at), min(turn_at)""",
        {"now": now},
    )
    return [(row[0], row[1]) for row in rows]


def next_run_at(reader: Database, now: str) -> str | None:
    """Return when the next delivery becomes due, or the next wait of a profile with due deliveries ends."""
    at: str | None = reader.value(
        """SELECT min(at) FROM (SELECT min(run_at) AS at FROM delivery WHERE state = 'queued' AND run_at > :now
            UNION ALL SELECT min(until) FROM not_before n WHERE until > :now AND EXISTS (SELECT 1 FROM delivery d
                WHERE d.profile_id = n.profile_id AND d.state = 'queued' AND d.run_at <= :now))""",
        {"now": now},
    )
    return at


def find_overdue(reader: Database, due_before: str, taken_up_before: str) -> tuple[int, str, str] | None:
    """Return the number of overdue deliveries, and the instant and network of the oldest one, or None.

    Overdue deliveries are queued and due before `due_before`, or running since before `taken_up_before`.
    """
    params = {"now": due_before, "running": taken_up_before}
    held = _HELD.format("''")
    if reader.one(f"{_lines(_ALL)} SELECT 1 FROM line WHERE until IS NOT NULL OR {held}", params) is None:
        queued = """SELECT provider, NULL AS until, json_array(count(*), min(run_at)) AS late FROM delivery
            WHERE state = 'queued' AND run_at < :now"""
    else:
        queued = f"""{_lines(_ALL)} SELECT provider, until, (SELECT json_array(count(*), min(d.run_at))
                FROM delivery d INDEXED BY delivery_queue WHERE d.state = 'queued' AND d.profile_id = line.profile_id
                    AND d.waits_on = line.waits_on AND d.next_scope = line.next_scope
                    AND d.turn_at < :now AND d.run_at < :now) AS late
            FROM line WHERE ifnull(until, '') < :now AND NOT {held}"""
    rows = reader.all(
        f"""{queued} UNION ALL SELECT provider, NULL, json_array(count(*), min(run_at)) FROM delivery
            WHERE state = 'running' AND run_at < :running""",
        params,
    )
    counted = [(*json.loads(row.late), row.until or "", row.provider) for row in rows]
    found = [(count, max(since, until), provider) for count, since, until, provider in counted if count]
    if not found:
        return None
    _, since, provider = min(found, key=lambda one: one[1])
    return sum(one[0] for one in found), since, provider


def list_open(reader: Database, profile_id: str, limit: int) -> list[Row]:
    """Return the open deliveries to this profile: first the running deliveries, then the others by `run_at`.

    The rows have id, post_id, body, due_at, run_at, started_at and the stored phase, which is the wait if one exists.
    """
    columns = """d.id, d.post_id, p.body, d.due_at, d.run_at, d.started_at,
        json_extract(d.progress, '$.phase') AS stored_phase"""
    # Each state has its own index: most deliveries have ended.
    running, queued = (
        f"""SELECT {columns} FROM delivery d JOIN post p ON p.id = d.post_id
            WHERE d.profile_id = ? AND d.state = '{state}' ORDER BY {order} LIMIT ?"""
        for state, order in (("running", "d.id"), ("queued", "d.run_at"))
    )
    found = reader.all(running, (profile_id, limit))
    return [*found, *reader.all(queued, (profile_id, limit - len(found)))]


def load_totals(reader: Database, profile_id: str, now: str, soon: str) -> Row:
    """Count the open deliveries to this profile: all (`waiting`), those that wait for the owner (`held`) or for their
    time (`scheduled`), and those past their commit (`committed`).

    Deliveries that run after `soon` count as scheduled without being read.
    """
    row = reader.one(
        """SELECT near.waiting + later.waiting AS waiting, near.held, near.ahead + later.waiting AS scheduled,
                (SELECT count(*) FROM delivery WHERE profile_id = :profile AND committed_at IS NOT NULL
                    AND state IN ('queued', 'running')) AS committed
            FROM (SELECT count(*) AS waiting, ifnull(sum(held), 0) AS held, ifnull(sum(ahead AND NOT held), 0) AS ahead
                    FROM (SELECT ifnull(json_extract(progress, '$.phase') = 'waiting_for_reconnect', 0) AS held,
                            started_at IS NULL AND due_at > :now AS ahead
                        FROM delivery WHERE profile_id = :profile AND state = 'queued' AND run_at <= :soon
                        UNION ALL SELECT 0, 0 FROM delivery WHERE profile_id = :profile AND state = 'running')) near,
                (SELECT count(*) AS waiting FROM delivery
                    WHERE profile_id = :profile AND state = 'queued' AND run_at > :soon) later""",
        {"now": now, "soon": soon, "profile": profile_id},
    )
    assert row is not None
    return row


def count_queued_by_profile(reader: Database) -> list[tuple[str, int]]:
    """Return each profile with queued deliveries, and their number."""
    rows = reader.all("SELECT profile_id, count(*) FROM delivery WHERE state = 'queued' GROUP BY profile_id")
    return [(row[0], row[1]) for row in rows]


def count_by_provider(reader: Database, state: str) -> list[tuple[str, int]]:
    rows = reader.all(
        "SELECT provider, count(*) FROM delivery WHERE state = ? GROUP BY provider ORDER BY provider", (state,)
    )
    return [(row[0], row[1]) for row in rows]


def count_due_by_provider(reader: Database, now: str) -> list[tuple[str, int]]:
    """Return each network with due queued deliveries, and their number."""
    rows = reader.all(
        "SELECT provider, count(*) FROM delivery WHERE state = 'queued' AND run_at <= ? GROUP BY provider", (now,)
    )
    return [(row[0], row[1]) for row in rows]


def count_posts_due_before(store: Database, instant: str) -> int:
    """Count the posts with a delivery that was due before this instant and has not started.

    Deliveries that a network delayed, or that waited for the profile's own queue all the time, do not count. Deliveries
    that wait for a reconnection or an approval count.
    """
    found = store.value(
        f"""SELECT count(DISTINCT post_id) FROM delivery waiting WHERE state = 'queued' AND due_at < :instant
            AND (json_extract(progress, '$.phase') = 'waiting_for_reconnect'
            AND json_extract(progress, '$.reconnected_at') IS NULL
            OR json_extract(progress, '$.phase') = 'waiting_for_approval'
            OR started_at IS NULL AND run_at <= due_at
            AND NOT EXISTS (SELECT 1 FROM not_before n WHERE n.profile_id = waiting.profile_id AND until > due_at
                AND endpoint <> 'commit' AND {WAIT_APPLIES})
            AND (julianday(:instant) - julianday(due_at)) > (
                SELECT ifnull(sum(julianday(until) - julianday(max(since, due_at))), 0) FROM own_wait
                WHERE own_wait.profile_id = waiting.profile_id AND until > due_at))""",
        {"instant": instant},
    )
    return int(found)


def uncommitted_due_by(reader: Database, profile_id: str, instant: str, except_post: str | None) -> list[str]:
    """Return when open deliveries before their commit to this profile are due, up to this instant, oldest first."""
    rows = reader.all(
        """SELECT due_at FROM delivery WHERE profile_id = ? AND state IN ('queued', 'running')
            AND committed_at IS NULL AND due_at <= ? AND post_id IS NOT ? ORDER BY due_at""",
        (profile_id, instant, except_post),
    )
    return [row[0] for row in rows]


def oldest_open_call(reader: Database) -> str | None:
    """Return the earliest call with an unknown outcome of an open delivery, or None."""
    at: str | None = reader.value(
        """SELECT min(min(ifnull(committed_at, '~'), coalesce(json_extract(progress, '$.since'),
                json_extract(progress, '$.resumes.since'), '~'))) FROM delivery
            WHERE state IN ('queued', 'running') AND (committed_at IS NOT NULL OR progress <> '{}')"""
    )
    return None if at == "~" else at
