"""Statements about audiences: each distinct set of target profiles is stored once, and a post has its id.

A write that changes a post also changes the counters by audience, status and outcomes, in all and by the day of
creation, and the totals by status. So the scope of a key and filters by profile and provider are short lists of
audiences, a total is a short sum, and the days of a deep page are known.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import orjson

from socialpub.db.connection import Reader, Tx, Value, placeholders

PREPARED = "each request and each change of a post"

MANY_AUDIENCES = 300
_DAY = len("2026-10-12")
"""The day of a stamp."""


class Scope(Protocol):
    """The visible profiles of a caller. None: unlimited."""

    @property
    def limited(self) -> bool: ...

    @property
    def providers(self) -> frozenset[str] | None: ...

    @property
    def profiles(self) -> frozenset[str] | None: ...

    def sees(self, provider: str, profile_id: str) -> bool: ...


def find_or_create(tx: Tx, members: Sequence[tuple[str, str]]) -> int:
    """Return the audience of these (profile id, provider) pairs."""
    key = orjson.dumps(sorted(profile for profile, _ in members)).decode()
    row = tx.one("SELECT id FROM audience WHERE members = ?", (key,))
    if row is not None:
        return int(row[0])
    audience = tx.execute("INSERT INTO audience (members) VALUES (?)", (key,)).lastrowid
    assert audience is not None
    tx.many(
        "INSERT INTO audience_member (audience_id, profile_id, provider, position) VALUES (?, ?, ?, ?)",
        [(audience, *member, position) for position, member in enumerate(sorted(members))],
    )
    return audience


Group = tuple[str, str]
"""A status and outcomes."""


def add_post(tx: Tx, audience: int, group: Group, created_at: str) -> None:
    """Count an additional post."""
    _change(tx, audience, created_at, {group: 1})


def remove_post(tx: Tx, audience: int, group: Group, created_at: str) -> None:
    """Subtract one post."""
    _change(tx, audience, created_at, {group: -1})


def move_post(tx: Tx, audience: int, before: Group, after: Group, created_at: str) -> None:
    """Count a post with another status and other outcomes."""
    _change(tx, audience, created_at, {before: -1, after: 1})


def _change(tx: Tx, audience: int, created_at: str, changes: Mapping[Group, int]) -> None:
    """Change the counters. Delete a counter at zero, because posts have many temporary outcomes."""
    day, rows = created_at[:_DAY], [(audience, *group, change) for group, change in changes.items()]
    tx.many(
        """INSERT INTO audience_count VALUES (?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET posts = posts + excluded.posts""",
        rows,
    )
    tx.many(
        """INSERT INTO post_day VALUES (?, ?, ?, ?, ?)
            ON CONFLICT DO UPDATE SET posts = posts + excluded.posts""",
        [(day, *row) for row in rows],
    )
    is_zero = "audience_id = ? AND status = ? AND outcomes = ? AND posts <= 0"
    for group, change in changes.items():
        if change < 0:
            tx.execute(f"DELETE FROM audience_count WHERE {is_zero}", (audience, *group))
            tx.execute(f"DELETE FROM post_day WHERE day = ? AND {is_zero}", (day, audience, *group))
    statuses = Counter[str]()
    for (status, _), change in changes.items():
        statuses[status] += change
    moved = [(change, status) for status, change in statuses.items() if change]
    tx.many("UPDATE post_count SET posts = posts + ? WHERE status = ?", moved)


def forget_unused(tx: Tx, audience: int) -> None:
    """Delete the audience if no post has it."""
    if tx.one("SELECT 1 FROM audience_count WHERE audience_id = ? LIMIT 1", (audience,)) is None:
        tx.execute("DELETE FROM audience_member WHERE audience_id = ?", (audience,))
        tx.execute("DELETE FROM audience WHERE id = ?", (audience,))


def are_many(reader: Reader) -> bool:
    """Return whether reading all audiences or their counters takes too long for the event loop."""
    return reader.one("SELECT 1 FROM audience_count LIMIT 1 OFFSET ?", (MANY_AUDIENCES,)) is not None


def count_posts(reader: Reader) -> list[tuple[str, int]]:
    rows = reader.all("SELECT status, posts FROM post_count WHERE posts > 0 ORDER BY status")
    return [(row[0], row[1]) for row in rows]


def visible_audiences(
    reader: Reader,
    scope: Scope,
    profiles: Collection[str] | None = None,
    providers: Collection[str] | None = None,
) -> tuple[int, ...] | None:
    """Return the audiences that the scope and the filters allow. None: all audiences.

    A limited scope allows an audience if it contains every member. With both filters, one member must match both.
    """
    if not scope.limited and profiles is None and providers is None:
        return None
    wanted, params = list[str](), list[Value]()
    hidden, limits = list[str](), list[Value]()
    for column, filtered, limit in (
        ("profile_id", profiles, scope.profiles),
        ("provider", providers, scope.providers),
    ):
        # Every member must be in the scope, so the limit also restricts the search like a filter.
        for values in (filtered, limit):
            if values is not None:
                wanted.append(f"{column} IN ({placeholders(values)})")
                params += values
        if limit is not None:
            hidden.append(f"h.{column} NOT IN ({placeholders(limit)})")
            limits += limit
    sql = f"SELECT DISTINCT audience_id FROM audience_member m WHERE {' AND '.join(wanted)}"
    if hidden:
        sql += f""" AND NOT EXISTS (SELECT 1 FROM audience_member h
            WHERE h.audience_id = m.audience_id AND ({" OR ".join(hidden)}))"""
    rows = reader.all(sql, params + limits)
    return tuple(sorted(row[0] for row in rows))


def sees(reader: Reader, scope: Scope, audience: int) -> bool:
    """Return whether the scope contains every member of this audience."""
    if not scope.limited:
        return True
    members = reader.all("SELECT provider, profile_id FROM audience_member WHERE audience_id = ?", (audience,))
    return all(scope.sees(provider, profile) for provider, profile in members)
