"""Statements about audiences: each distinct set of target profiles is stored once, and a post has its id.

So the scope of a key and filters by profile and provider are short lists of audiences.
"""

from collections.abc import Collection, Sequence
from typing import Protocol

import orjson

from socialpub.db.connection import Database, Value, placeholders

PREPARED = "each request and each change of a post"

MANY_AUDIENCES = 300


class Scope(Protocol):
    """The visible profiles of a caller. None: unlimited."""

    @property
    def limited(self) -> bool: ...

    @property
    def providers(self) -> frozenset[str] | None: ...

    @property
    def profiles(self) -> frozenset[str] | None: ...

    def sees(self, provider: str, profile_id: str) -> bool: ...


def find_or_create(tx: Database, members: Sequence[tuple[str, str]]) -> int:
    """Return the audience of these (profile id, provider) pairs."""
    key = orjson.dumps(sorted(profile for profile, _ in members)).decode()
    row = tx.one("SELECT id FROM audience WHERE members = ?", (key,))
    if row is not None:
        return int(row[0])
    audience = tx.execute_sql("INSERT INTO audience (members) VALUES (?)", (key,)).lastrowid
    assert audience is not None
    tx.many(
        "INSERT INTO audience_member (audience_id, profile_id, provider, position) VALUES (?, ?, ?, ?)",
        [(audience, *member, position) for position, member in enumerate(sorted(members))],
    )
    return audience


def delete(tx: Database, audience: int) -> None:
    tx.execute_sql("DELETE FROM audience_member WHERE audience_id = ?", (audience,))
    tx.execute_sql("DELETE FROM audience WHERE id = ?", (audience,))


def are_many(reader: Database) -> bool:
    """Return whether reading all audiences takes too long for the event loop."""
    return int(reader.value("SELECT max(id) FROM audience") or 0) > MANY_AUDIENCES


def visible_audiences(
    reader: Database,
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


def sees(reader: Database, scope: Scope, audience: int) -> bool:
    """Return whether the scope contains every member of this audience."""
    if not scope.limited:
        return True
    members = reader.all("SELECT provider, profile_id FROM audience_member WHERE audience_id = ?", (audience,))
    return all(scope.sees(provider, profile) for provider, profile in members)
