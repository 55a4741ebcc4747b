"""Lists of posts: the posts of a page, and the total.

Three indexes serve every filter: the newest posts, the groups (status, audience, outcomes), and the scheduled times.
The total is counted first. A few matching posts are sorted. More matching posts are found in the order of the newest
index, from the nearer end. With 100,000 posts, the first page and its total take at most 23 ms, and a deep page 35 ms.
Only a text search scans posts: a scan of 100,000 posts takes 15 to 50 ms. A text index (FTS5, trigrams) was measured
and rejected: it needs 0.8 ms for each new post, three times the space of the texts, and triggers, which backups do not
allow.
"""

import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from peewee import SQL, ColumnBase, ModelSelect, Select, Tuple, fn

from socialpub.db.connection import Database, Value
from socialpub.db.models import AudienceMemberRow, PostRow
from socialpub.db.queries.api_json import POST
from socialpub.db.queries.text_search import contains
from socialpub.db.states import OUTCOME_LETTERS, PostStatus

MAX_PAGE_BYTES = 1 << 19
"""The memory of a page for a slow caller. The other posts of a longer page are read one by one."""

_FEW = 2000
"""Reading, or sorting, this number of posts is fast."""
_MANY = 20_000
"""A list of fewer posts takes less than 5 ms with any filter."""
_KEPT = 64
"""The number of lists whose statements and totals are kept. The filter of a list may have 40 KB."""
_FIRST, _LAST = "", "~"
"""Texts before and after every stamp."""

post = PostRow.alias("post")
_ROWID = SQL("post.rowid")


@dataclass(frozen=True, slots=True)
class PostFilter:
    """The filter of a page. `audiences` None: all audiences. Stamps are inclusive, and pages start at 0.

    One delivery must have the `outcome` (pending, published, failed, unknown, canceled) and match `profiles` and
    `providers`.
    """

    audiences: tuple[int, ...] | None = None
    status: str | None = None
    outcome: str | None = None
    profiles: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    scheduled_after: str | None = None
    scheduled_before: str | None = None
    or_accepted: bool = False
    """The time window also contains posts without a scheduled time, by their creation, as in the calendar."""
    text: str | None = None
    """A part of the post's text, in any case."""
    page: int = 0
    per_page: int = 20
    groups: str | None = None
    """What `find_groups` found."""

    @property
    def windowed(self) -> bool:
        return self.scheduled_after is not None or self.scheduled_before is not None

    @property
    def is_grouped(self) -> bool:
        return self.status is not None or self.outcome is not None or self.audiences is not None

    @property
    def skipped(self) -> int:
        return self.page * self.per_page

    @property
    def of_all_pages(self) -> "PostFilter":
        return replace(self, page=0, per_page=1)


class PostPage(NamedTuple):
    """The posts as JSON objects up to `MAX_PAGE_BYTES`, the ids of the other posts, and the total of all pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


class PagePart(NamedTuple):
    """The position of a page from the nearer end of the list: `size` posts after `ahead` posts."""

    order: str
    """`DESC`: from the newest post. `ASC`: from the oldest post."""
    ahead: int
    size: int


def nearer_end(skipped: int, size: int, total: int) -> PagePart:
    size = max(min(size, total - skipped), 0)
    older = total - skipped - size
    return PagePart("ASC", older, size) if older < skipped else PagePart("DESC", skipped, size)


class Totals:
    """The last totals, for as long as no connection commits. Only the event loop calls `of_version`."""

    def __init__(self) -> None:
        self._version = -1
        self._totals: dict[Hashable, tuple[PostFilter, int]] = {}

    def of_version(self, version: int) -> dict[Hashable, tuple[PostFilter, int]]:
        """Return the filter, with audiences and groups, and the total of each list.

        `version` is the `data_version` of the event loop's connection before they are read.
        """
        if version != self._version or len(self._totals) >= _KEPT:
            self._version, self._totals = version, {}
        return self._totals


def is_slow(db: Database, query: PostFilter, is_counted: bool) -> bool:
    """Return whether the query may take more than 5 ms. `is_counted`: the total is known."""
    if is_counted and not query.windowed and not query.text and query.skipped <= _FEW:
        return False
    return int(post.select(fn.MAX(_ROWID)).scalar(db) or 0) > _MANY


def load_page(db: Database, query: PostFilter, total: int | None = None) -> PostPage:
    """Return a page. `total` is the known total."""
    if query.audiences == ():
        return PostPage((), (), 0)
    with db.atomic():  # the total and the posts of one instant
        query = find_groups(db, query)
        if query.text:
            return _search(db, query)
        if total is None:
            total = int(db.execute_sql(*_count_sql(query.of_all_pages)).fetchone()[0])
        part = nearer_end(query.skipped, query.per_page, total)
        if not part.size:
            return PostPage((), (), total)
        is_sorted = total <= _FEW and (query.is_grouped or query.windowed)
        return PostPage(*_show(db, *_ids_sql(query, None if is_sorted else part)), total)


def _search(db: Database, query: PostFilter) -> PostPage:
    """Scan the texts once. This finds the few matches. If many posts match, a page of the newest is found soon."""
    conditions = [*_conditions(query), contains(post.body, query.text or "")]
    scan = post.select(fn.COUNT(SQL("*")), fn.GROUP_CONCAT(_ROWID)).from_(SQL("post NOT INDEXED"))
    ((total, rowids),) = scan.where(*conditions).tuples().execute(db)
    if total <= _FEW:
        ids = _ids(query, "", [_ROWID.in_(_values(f"[{rowids or ''}]"))])
    else:
        ids = _ids(query, "", conditions, nearer_end(query.skipped, query.per_page, total))
    return PostPage(*_show(db, *ids.sql()), total)


# To build these two queries takes 0.2 ms, as much as a short list. Programs read the same lists again.


@lru_cache(maxsize=_KEPT)
def _count_sql(query: PostFilter) -> tuple[str, list[Value]]:
    count = post.select(fn.COUNT(SQL("*"))).from_(SQL(f"post {_index(query)}")).where(*_conditions(query))
    return count.sql()


@lru_cache(maxsize=_KEPT)
def _ids_sql(query: PostFilter, part: PagePart | None) -> tuple[str, list[Value]]:
    return _ids(query, _index(query), _conditions(query), part).sql()


def _ids(
    query: PostFilter, index: str, conditions: Sequence[ColumnBase], part: PagePart | None = None
) -> "ModelSelect[PostRow]":
    """Return the query for the ids of a page. Without a part, sort the few posts that this index finds."""
    ids = post.select(post.id).where(*conditions)
    if part is None:
        # The `+` keeps SQLite from reading an index in order.
        ids = ids.from_(SQL(f"post {index}")).order_by(SQL("+created_at DESC, +id DESC"))
        return ids.limit(query.per_page).offset(query.skipped)
    ids = ids.from_(SQL("post INDEXED BY post_newest")).order_by(SQL(f"created_at {part.order}, id {part.order}"))
    return ids.limit(part.size).offset(part.ahead)


def _index(query: PostFilter) -> str:
    """Return the index that counts the matching posts without their rows."""
    if query.windowed:
        return "" if query.or_accepted else "INDEXED BY post_scheduled"
    return "INDEXED BY post_groups" if query.is_grouped else "INDEXED BY post_newest"


def _values(array: str) -> SQL:
    """Return the values of a JSON array for `in_`, as one parameter."""
    return SQL("(SELECT value FROM json_each(?))", [array])


def _conditions(query: PostFilter) -> list[ColumnBase]:
    conditions: list[ColumnBase] = [SQL("1")]
    if query.is_grouped:
        # the first column of the groups
        conditions.append(post.status.in_([query.status] if query.status else list(PostStatus)))
    if query.audiences is not None:
        conditions.append(post.audience_id.in_(_values(json.dumps(query.audiences))))
    if query.outcome:
        conditions.append(fn.instr(post.outcomes, OUTCOME_LETTERS[query.outcome]))
    if query.groups is not None:
        pairs = SQL("(SELECT value ->> 0, value ->> 1 FROM json_each(?))", [query.groups])
        conditions.append(Tuple(post.audience_id, post.outcomes).in_(pairs))
    if query.windowed:
        span = query.scheduled_after or _FIRST, query.scheduled_before or _LAST
        is_scheduled = post.scheduled_at.between(*span)
        if query.or_accepted:
            rows = post.select(_ROWID)
            scheduled = rows.from_(SQL("post INDEXED BY post_scheduled")).where(is_scheduled)
            accepted = rows.from_(SQL("post INDEXED BY post_newest"))
            accepted = accepted.where(post.created_at.between(*span), post.scheduled_at.is_null())
            is_scheduled = _ROWID.in_(scheduled + accepted)
        conditions.append(is_scheduled)
    return conditions


def find_groups(db: Database, query: PostFilter) -> PostFilter:
    """Add the audiences and outcomes in which a delivery to these profiles and networks has the outcome.

    There are few groups and many posts.
    """
    if query.groups is not None or not query.outcome or not (query.profiles or query.providers):
        return query
    of_any_time = replace(query, scheduled_after=None, scheduled_before=None)
    groups = post.select(post.audience_id, post.outcomes).distinct().from_(SQL("post INDEXED BY post_groups"))
    group, member = groups.where(*_conditions(of_any_time)).alias("g"), AudienceMemberRow.alias("m")
    letter = fn.substr(group.c.outcomes, member.position + 1, 1)
    matching = member.select(SQL("1")).where(
        member.audience_id == group.c.audience_id, letter == OUTCOME_LETTERS[query.outcome]
    )
    for column, values in ((member.profile_id, query.profiles), (member.provider, query.providers)):
        if values:
            matching = matching.where(column.in_(values))
    pairs = fn.json_group_array(fn.json_array(group.c.audience_id, group.c.outcomes))
    ((groups_of_posts,),) = Select([group], [pairs]).where(fn.EXISTS(matching)).tuples().execute(db)
    return replace(query, groups=groups_of_posts)


def _show(db: Database, ids: str, params: Sequence[Value]) -> tuple[list[bytes], list[str]]:
    """Return the posts up to `MAX_PAGE_BYTES`, and the ids of the other posts.

    SQLite builds the JSON: 20 posts take 0.2 ms so, and 4 ms with objects of peewee.
    """
    # The `+` keeps SQLite from reading an index in order.
    page = f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC"
    cursor = db.execute_sql(f"SELECT CAST({POST} AS BLOB) FROM {page}", params)
    posts: list[bytes] = []
    size = 0
    for row in cursor:
        posts.append(row[0])
        size += len(row[0])
        if size > MAX_PAGE_BYTES:
            cursor.close()
            listed = [row[0] for row in db.execute_sql(f"SELECT p.id FROM {page}", params)]
            return posts, listed[len(posts) :]
    return posts, []
