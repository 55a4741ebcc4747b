"""Lists of posts: which posts a page shows, and how many there are in all.

A post belongs to a group: its audience, its status, and what became of its deliveries. Groups are counted
(`publishing/audiences.py`), and within each one the newest come straight from an index: a page of what any filter lets
through is the newest of a few groups, and its total a sum of their counts. Only a window of time is searched through.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from socialpub.db.json_views import POST
from socialpub.db.models import OUTCOME_LETTERS
from socialpub.db.transaction import Reader, Value

MOST_BYTES = 1 << 19
"""What a page may take at once, and keep in memory for a reader who is slow; the rest of a longer one is read post by
post."""

_NEWEST = "ORDER BY created_at DESC, id DESC"


@dataclass(frozen=True)
class PostFilter:
    """Which posts, newest first. `audiences` None: every one. With `outcome` (pending, published, failed, unknown,
    canceled) one delivery must have it, which goes to one of `profiles` and `providers` where those are given. Stamps
    are inclusive; pages start at 0."""

    audiences: tuple[int, ...] | None = None
    status: str | None = None
    outcome: str | None = None
    profiles: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    scheduled_after: str | None = None
    scheduled_before: str | None = None
    page: int = 0
    per_page: int = 20

    @property
    def windowed(self) -> bool:
        return self.scheduled_after is not None or self.scheduled_before is not None

    @property
    def long(self) -> bool:
        """Whether answering may take more than a moment: then it belongs off the event loop."""
        return self.windowed or self.page * self.per_page > 2000

    @cached_property
    def grouped(self) -> bool:
        """Whether groups have to be looked up: what no index has in order by itself."""
        return self.outcome is not None or (self.audiences is not None and self.status is not None)


@dataclass(frozen=True, slots=True)
class PostPage:
    """The posts as JSON objects as far as they fit into `MOST_BYTES`, the ids of the others, and the count of all
    pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


def read(reader: Reader, query: PostFilter) -> PostPage:
    """A page and its total."""
    if query.audiences == ():
        return PostPage((), (), 0)
    groups = _groups(reader, query) if query.grouped else None
    if groups == []:
        return PostPage((), (), 0)
    page, params = _page(query, groups)
    shown, rest = _show(reader, page, params)
    return PostPage(shown, rest, _total(reader, query, groups))


Group = tuple[int, str, str, int]
"""Audience, status, outcomes, and how many posts."""


def _groups(reader: Reader, query: PostFilter) -> list[Group]:
    """Those whose posts the filter lets through, windows aside."""
    conditions, params = ["1"], list[Value]()
    if query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    if query.status is not None:
        conditions.append("status = ?")
        params.append(query.status)
    if query.outcome is not None:
        letter = OUTCOME_LETTERS[query.outcome]
        conditions.append("instr(outcomes, ?)")
        params.append(letter)
        wanted = [("profile_id", query.profiles), ("provider", query.providers)]
        if query.profiles or query.providers:
            of_one = "m.audience_id = c.audience_id AND substr(c.outcomes, m.position + 1, 1) = ?"
            params.append(letter)
            for column, values in wanted:
                if values:
                    of_one += f" AND m.{column} IN (SELECT value FROM json_each(?))"
                    params.append(json.dumps(values))
            conditions.append(f"EXISTS (SELECT 1 FROM audience_member m WHERE {of_one})")
    rows = reader.all(
        f"SELECT audience_id, status, outcomes, posts FROM audience_count c WHERE {' AND '.join(conditions)}", params
    )
    return [tuple(row) for row in rows]


def _total(reader: Reader, query: PostFilter, groups: list[Group] | None) -> int:
    if query.windowed:
        where, params = _where(query, groups)
        return int(reader.value(f"SELECT count(*) FROM post WHERE {where}", params))
    if groups is not None:
        return sum(posts for *_, posts in groups)
    if query.audiences is not None:
        sql = "SELECT sum(posts) FROM audience_count WHERE audience_id IN (SELECT value FROM json_each(?))"
        return int(reader.value(sql, (json.dumps(query.audiences),)) or 0)
    sql = "SELECT sum(posts) FROM audience_count"
    if query.status is None:
        return int(reader.value(sql) or 0)
    return int(reader.value(f"{sql} WHERE status = ?", (query.status,)) or 0)


def _page(query: PostFilter, groups: list[Group] | None) -> tuple[str, list[Value]]:
    """What follows FROM to have the posts of the page as `p`, in their order."""
    skipped = query.page * query.per_page
    last = skipped + query.per_page
    if not query.windowed and (query.audiences is not None or groups is not None):
        # The newest of each group come straight from its index; together they hold the newest of all.
        if groups is None:
            parts, equal = json.dumps([[audience] for audience in query.audiences or ()]), ["audience_id"]
        else:
            parts, equal = json.dumps([group[:3] for group in groups]), ["audience_id", "status", "outcomes"]
        same = " AND ".join(f"{column} = g.value ->> {at}" for at, column in enumerate(equal))
        ids = f"""SELECT n.id FROM json_each(?) g CROSS JOIN post n
            ON n.rowid IN (SELECT rowid FROM post WHERE {same} {_NEWEST} LIMIT {last})
            ORDER BY n.created_at DESC, n.id DESC LIMIT {query.per_page} OFFSET {skipped}"""
        params: list[Value] = [parts]
    else:
        where, params = _where(query, groups)
        if not skipped and not query.windowed:
            return f"post p WHERE {where} {_NEWEST} LIMIT {query.per_page}", params  # straight from an index
        # What is skipped or has to be sorted is looked at without showing it.
        ids = f"SELECT id FROM post WHERE {where} {_NEWEST} LIMIT {query.per_page} OFFSET {skipped}"
    # The `+` keeps SQLite from walking a whole index in this order to find the few.
    return f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC", params


def _where(query: PostFilter, groups: list[Group] | None) -> tuple[str, list[Value]]:
    conditions, params = ["1"], list[Value]()
    if groups is not None:
        conditions.append(
            "(audience_id, status, outcomes) IN (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
        )
        params.append(json.dumps([group[:3] for group in groups]))
    elif query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    for condition, value in (
        ("status = ?", query.status),
        ("scheduled_at >= ?", query.scheduled_after),
        ("scheduled_at <= ?", query.scheduled_before),
    ):
        if value is not None:
            conditions.append(condition)
            params.append(value)
    return " AND ".join(conditions), params


def _show(reader: Reader, page: str, params: Sequence[Value]) -> tuple[list[bytes], list[str]]:
    """The posts as far as they fit, and the ids of the others."""
    cursor = reader.connection.execute(f"SELECT CAST({POST} AS BLOB) FROM {page}", params)
    shown: list[bytes] = []
    size = 0
    for (post,) in cursor:
        shown.append(post)
        size += len(post)
        if size > MOST_BYTES:
            cursor.close()
            ids = [row[0] for row in reader.all(f"SELECT p.id FROM {page}", params)]
            return shown, ids[len(shown) :]
    return shown, []
