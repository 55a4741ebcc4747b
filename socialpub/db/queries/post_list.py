"""Lists of posts: the posts of a page, and the total.

Three indexes serve every filter: the newest posts, the groups (status, audience, outcomes), and the scheduled times.
The total is counted first. A few matching posts are sorted. More matching posts are found in the order of the newest
index, from the nearer end. With 100,000 posts, a page and its total take at most 22 ms, and with 1,000,000 at most 148.
Only a text search scans posts: a scan of 100,000 posts takes 15 to 50 ms. A text index (FTS5, trigrams) was measured
and rejected: it needs 0.8 ms for each new post, three times the space of the texts, and triggers, which backups do not
allow.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from socialpub.db.connection import Database, Value
from socialpub.db.queries.api_json import POST
from socialpub.db.queries.text_search import contains
from socialpub.db.states import OUTCOME_LETTERS, PostStatus

MAX_PAGE_BYTES = 1 << 19
"""The memory of a page for a slow caller. The other posts of a longer page are read one by one."""

_FEW = 2000
"""Reading, or sorting, this number of posts is fast."""
_MANY = 20_000
"""A list of fewer posts takes less than 5 ms with any filter."""

_GOING_OUT = """rowid IN (SELECT rowid FROM post INDEXED BY post_scheduled
        WHERE scheduled_at IS NOT NULL AND scheduled_at BETWEEN ? AND ?
    UNION ALL SELECT rowid FROM post INDEXED BY post_newest
        WHERE created_at BETWEEN ? AND ? AND scheduled_at IS NULL)"""
_FIRST, _LAST = "", "~"
"""Texts before and after every stamp."""


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

    @property
    def windowed(self) -> bool:
        return self.scheduled_after is not None or self.scheduled_before is not None

    @property
    def skipped(self) -> int:
        return self.page * self.per_page


@dataclass(frozen=True, slots=True)
class PostPage:
    """The posts as JSON objects up to `MAX_PAGE_BYTES`, the ids of the other posts, and the total of all pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


class Totals:
    """The last totals by filter, for as long as no connection commits. Only one thread uses them.

    `version` is the `data_version` of that thread's reader before the posts were counted.
    """

    def __init__(self) -> None:
        self._version = -1
        self._totals: dict[PostFilter, int] = {}

    def find(self, version: int, query: PostFilter) -> int | None:
        if version != self._version:
            self._version, self._totals = version, {}
        return self._totals.get(_of_all_pages(query))

    def keep(self, version: int, query: PostFilter, total: int) -> None:
        if version == self._version:
            self._totals[_of_all_pages(query)] = total


def _of_all_pages(query: PostFilter) -> PostFilter:
    return replace(query, page=0, per_page=1)


def is_slow(reader: Database, query: PostFilter, total: int | None) -> bool:
    """Return whether the query may take too long for the event loop. `total` is the known total."""
    newest = int(reader.value("SELECT max(rowid) FROM post") or 0)
    return newest > _MANY and (total is None or query.text is not None or query.skipped > _FEW)


def load_page(reader: Database, query: PostFilter, total: int | None = None) -> PostPage:
    """Return a page. `total` is the known total."""
    if query.audiences == ():
        return PostPage((), (), 0)
    with reader.atomic():  # the total and the posts of one instant
        where, params = _where(reader, query)
        matching = f"post {_index(query)} WHERE {where}"
        if query.text:
            holding, patterns = contains("body", query.text)
            where, params = f"{where} AND {holding}", [*params, *patterns]
            # One scan finds the few matches. If many posts match, the newest are found soon.
            count = f"SELECT count(*), group_concat(rowid) FROM post NOT INDEXED WHERE {where}"
            total, rowids = reader.all(count, params)[0]
            if total <= _FEW:
                matching, params = "post WHERE rowid IN (SELECT value FROM json_each(?))", [f"[{rowids or ''}]"]
        elif total is None:
            total = int(reader.value(f"SELECT count(*) FROM {matching}", params))
        part = nearer_end(query.skipped, query.per_page, total)
        if not part.size:
            return PostPage((), (), total)
        if total <= _FEW:
            newest = f"ORDER BY +created_at DESC, +id DESC LIMIT {part.size} OFFSET {query.skipped}"
            ids = f"SELECT id FROM {matching} {newest}"
        else:
            ids = f"SELECT id FROM post INDEXED BY post_newest WHERE {where} {part.sql}"
        shown, rest = _show(reader, ids, params)
    return PostPage(shown, rest, total)


@dataclass(frozen=True, slots=True)
class PagePart:
    """The position of a page from the nearer end of the list: `size` posts after `ahead` posts."""

    order: str
    """`DESC`: from the newest post. `ASC`: from the oldest post."""
    ahead: int
    size: int

    @property
    def sql(self) -> str:
        return f"ORDER BY created_at {self.order}, id {self.order} LIMIT {self.size} OFFSET {self.ahead}"


def nearer_end(skipped: int, size: int, total: int) -> PagePart:
    size = max(min(size, total - skipped), 0)
    older = total - skipped - size
    return PagePart("ASC", older, size) if older < skipped else PagePart("DESC", skipped, size)


def _index(query: PostFilter) -> str:
    """Return the index that counts the matching posts without their rows."""
    if query.windowed:
        return "" if query.or_accepted else "INDEXED BY post_scheduled"
    grouped = query.status or query.outcome or query.audiences is not None
    return "INDEXED BY post_groups" if grouped else "INDEXED BY post_newest"


def _where(reader: Database, query: PostFilter) -> tuple[str, list[Value]]:
    conditions, params = ["1"], list[Value]()
    if query.status or query.outcome or query.audiences is not None:
        conditions.append("status IN (SELECT value FROM json_each(?))")  # the first column of the groups
        params.append(json.dumps([query.status] if query.status else list(PostStatus)))
    if query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    if query.outcome:
        conditions.append("instr(outcomes, ?)")
        params.append(OUTCOME_LETTERS[query.outcome])
    if query.outcome and (query.profiles or query.providers):
        groups = _groups_of_members(reader, query, " AND ".join(conditions), params)
        conditions.append("(audience_id, outcomes) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))")
        params.append(json.dumps(groups))
    if query.windowed and query.or_accepted:
        conditions.append(_GOING_OUT)
        params += [query.scheduled_after or _FIRST, query.scheduled_before or _LAST] * 2
    elif query.windowed:
        conditions.append("scheduled_at BETWEEN ? AND ?")
        params += [query.scheduled_after or _FIRST, query.scheduled_before or _LAST]
    return " AND ".join(conditions), params


def _groups_of_members(
    reader: Database, query: PostFilter, where: str, params: Sequence[Value]
) -> list[tuple[int, str]]:
    """Return the audiences and outcomes in which a delivery to these profiles and networks has the outcome.

    There are few groups and many posts.
    """
    member = "m.audience_id = g.audience_id AND substr(g.outcomes, m.position + 1, 1) = ?"
    chosen: list[Value] = [OUTCOME_LETTERS[str(query.outcome)]]
    for column, values in (("profile_id", query.profiles), ("provider", query.providers)):
        if values:
            member += f" AND m.{column} IN (SELECT value FROM json_each(?))"
            chosen.append(json.dumps(values))
    groups = f"SELECT DISTINCT audience_id, outcomes FROM post INDEXED BY post_groups WHERE {where}"
    rows = reader.all(
        f"SELECT audience_id, outcomes FROM ({groups}) g WHERE EXISTS (SELECT 1 FROM audience_member m WHERE {member})",
        [*params, *chosen],
    )
    return [(row[0], row[1]) for row in rows]


def _show(reader: Database, ids: str, params: Sequence[Value]) -> tuple[list[bytes], list[str]]:
    """Return the posts up to `MAX_PAGE_BYTES`, and the ids of the other posts."""
    # The `+` keeps SQLite from scanning an index in order.
    page = f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC"
    cursor = reader.connection().cursor()
    cursor.row_factory = None  # a tuple is smaller than a row
    cursor.execute(f"SELECT CAST({POST} AS BLOB) FROM {page}", params)
    shown: list[bytes] = []
    size = 0
    for (post,) in cursor:
        shown.append(post)
        size += len(post)
        if size > MAX_PAGE_BYTES:
            cursor.close()
            listed = [row[0] for row in reader.all(f"SELECT p.id FROM {page}", params)]
            return shown, listed[len(shown) :]
    return shown, []
