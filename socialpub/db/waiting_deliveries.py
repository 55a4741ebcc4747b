"""Deliveries that have no outcome yet, as owners, /metrics and deadlines see them. Only read here."""

from socialpub.db.profile_queues import WAIT_APPLIES
from socialpub.db.transaction import Reader, Row, Tx


def next_of(reader: Reader, profile_id: str, most: int) -> list[Row]:
    """Deliveries to this profile without an outcome, those that run first, then the next ones: id, post_id, body,
    due_at, started_at, waits_for_owner (0 or 1)."""
    columns = """d.id, d.post_id, p.body, d.due_at, d.run_at, d.started_at,
        ifnull(json_extract(d.progress, '$.waits_for_owner'), 0) AS waits_for_owner"""
    # Each from its own index: most deliveries have ended.
    running, queued = (
        f"""SELECT {columns} FROM delivery d JOIN post p ON p.id = d.post_id
            WHERE d.profile_id = ? AND d.state = '{state}' ORDER BY {order} LIMIT ?"""
        for state, order in (("running", "d.id"), ("queued", "d.run_at"))
    )
    found = reader.all(running, (profile_id, most))
    return [*found, *reader.all(queued, (profile_id, most - len(found)))]


def totals_of(reader: Reader, profile_id: str, now: str, soon: str) -> Row:
    """How many deliveries to this profile have no outcome yet (`waiting`), and how many of them wait for the owner
    (`held`), for their time (`scheduled`), or are past their commit (`committed`). What runs after `soon` is taken to
    wait for its time, so that a long plan is counted and not read."""
    row = reader.one(
        """SELECT near.waiting + later.waiting AS waiting, near.held, near.ahead + later.waiting AS scheduled,
                (SELECT count(*) FROM delivery WHERE profile_id = :profile AND committed_at IS NOT NULL
                    AND state IN ('queued', 'running')) AS committed
            FROM (SELECT count(*) AS waiting, ifnull(sum(held), 0) AS held, ifnull(sum(ahead AND NOT held), 0) AS ahead
                    FROM (SELECT ifnull(json_extract(progress, '$.waits_for_owner'), 0) AS held,
                            started_at IS NULL AND due_at > :now AS ahead
                        FROM delivery WHERE profile_id = :profile AND state = 'queued' AND run_at <= :soon
                        UNION ALL SELECT 0, 0 FROM delivery WHERE profile_id = :profile AND state = 'running')) near,
                (SELECT count(*) AS waiting FROM delivery
                    WHERE profile_id = :profile AND state = 'queued' AND run_at > :soon) later""",
        {"now": now, "soon": soon, "profile": profile_id},
    )
    assert row is not None
    return row


def count_queued_by_profile(reader: Reader) -> list[tuple[str, int]]:
    """How many deliveries wait for each profile that has any."""
    rows = reader.all("SELECT profile_id, count(*) FROM delivery WHERE state = 'queued' GROUP BY profile_id")
    return [(row[0], row[1]) for row in rows]


def count_by_provider(reader: Reader, state: str) -> list[tuple[str, int]]:
    rows = reader.all(
        "SELECT provider, count(*) FROM delivery WHERE state = ? GROUP BY provider ORDER BY provider", (state,)
    )
    return [(row[0], row[1]) for row in rows]


def count_due_by_provider(reader: Reader, now: str) -> list[tuple[str, int]]:
    """How many to each network wait though their time has come."""
    rows = reader.all(
        "SELECT provider, count(*) FROM delivery WHERE state = 'queued' AND run_at <= ? GROUP BY provider", (now,)
    )
    return [(row[0], row[1]) for row in rows]


def count_posts_due_before(store: Reader | Tx, instant: str) -> int:
    """Count the posts with a delivery that was due before this instant and has not started. Leaves out what a network
    put off, and what waited for the profile's own queue all that time. Includes what waits for its account."""
    row = store.one(
        f"""SELECT count(DISTINCT post_id) FROM delivery waiting WHERE state = 'queued' AND due_at < :instant
            AND (json_extract(progress, '$.waits_for_owner') AND json_extract(progress, '$.reconnected_at') IS NULL
            OR started_at IS NULL AND run_at <= due_at
            AND NOT EXISTS (SELECT 1 FROM not_before n WHERE n.profile_id = waiting.profile_id AND until > due_at
                AND endpoint <> 'commit' AND {WAIT_APPLIES})
            AND (julianday(:instant) - julianday(due_at)) > (
                SELECT ifnull(sum(julianday(until) - julianday(max(since, due_at))), 0) FROM own_wait
                WHERE own_wait.profile_id = waiting.profile_id AND until > due_at))""",
        {"instant": instant},
    )
    return int(row[0]) if row else 0


def uncommitted_due_by(reader: Reader, profile_id: str, instant: str, besides: str | None) -> list[str]:
    """The times of the open deliveries to this profile that are due by then, oldest first: those that have made nothing
    public yet, and not of the post `besides`."""
    rows = reader.all(
        """SELECT due_at FROM delivery WHERE profile_id = ? AND state IN ('queued', 'running')
            AND committed_at IS NULL AND due_at <= ? AND post_id IS NOT ? ORDER BY due_at""",
        (profile_id, instant, besides),
    )
    return [row[0] for row in rows]


def oldest_open_call(reader: Reader) -> str | None:
    """Return since when an open delivery may have made something public with an unknown outcome, or None."""
    at: str | None = reader.value(
        """SELECT min(min(ifnull(committed_at, '~'), ifnull(json_extract(progress, '$.since'), '~'))) FROM delivery
            WHERE state IN ('queued', 'running') AND (committed_at IS NOT NULL OR progress <> '{}')"""
    )
    return None if at == "~" else at
