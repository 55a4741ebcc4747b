"""Lists of posts: the posts of a page, and the total.

Posts with the same audience, status and outcomes form a group. Groups are counted, in all and by day
(`tables/audience_rows.py`), and an index has the newest posts of each group. A first page is therefore the newest posts
of a few groups, and its total a sum of counts. For a deep page, the counters by day show the days of its posts, so the
query reads only these days. A time window counts the scheduled times of each group in an index, and sorts the matching
posts or filters the newest posts. Only a text search scans posts: a scan of 100,000 posts takes 15 to 50 ms. A text
index (FTS5, trigrams) was measured and rejected: it needs 0.8 ms for each new post, three times the space of the texts,
and triggers, which backups do not allow.
"""

import json
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from socialpub.db.connection import Reader, Value
from socialpub.db.queries.api_json import POST
from socialpub.db.queries.text_search import contains
from socialpub.db.states import OUTCOME_LETTERS
from socialpub.db.tables import audience_rows

MAX_PAGE_BYTES = 1 << 19
"""The memory of a page for a slow caller. The other posts of a longer page are read one by one."""

_NEWEST = "ORDER BY created_at DESC, id DESC"

_GOING_OUT = """rowid IN (SELECT rowid FROM post INDEXED BY post_scheduled
        WHERE scheduled_at IS NOT NULL AND scheduled_at BETWEEN ? AND ?
    UNION ALL SELECT rowid FROM post INDEXED BY post_newest
        WHERE created_at BETWEEN ? AND ? AND scheduled_at IS NULL)"""
_COVERING = "post INDEXED BY post_scheduled"
"""The index of scheduled times that has all columns of a filter and of the order."""
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
    def last(self) -> int:
        """The number of posts up to the end of the page."""
        return (self.page + 1) * self.per_page

    @property
    def grouped(self) -> bool:
        """Whether the filter needs groups, because no index has the order."""
        return self.outcome is not None or self.audiences is not None

    @property
    def is_short(self) -> bool:
        """Whether the page has few posts before its end, also in each group."""
        return not (self.windowed or self.text) and self.last <= _SHORT


_FEW = 2000
"""Reading, or sorting, this number of posts is fast."""
_SHORT = 40
"""Reading this number of the newest posts of several groups is fast."""


def is_slow(reader: Reader, query: PostFilter, *, limited: bool = False) -> bool:
    """Return whether the query may take too long for the event loop. `limited`: the caller does not see all posts."""
    if query.windowed or query.text or query.last > _FEW:
        return True
    grouped = limited or bool(query.grouped or query.profiles or query.providers)
    return grouped and (not query.is_short or audience_rows.are_many(reader))


@dataclass(frozen=True, slots=True)
class PostPage:
    """The posts as JSON objects up to `MAX_PAGE_BYTES`, the ids of the other posts, and the total of all pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


def load_page(reader: Reader, query: PostFilter) -> PostPage:
    if query.audiences == ():
        return PostPage((), (), 0)
    with nullcontext() if query.is_short else reader.snapshot():  # counters and posts of one instant
        groups = _groups(reader, query) if query.grouped else None
        if groups is not None and not groups.count:
            return PostPage((), (), 0)
        if query.text:
            return _search_text(reader, query, groups, query.text)
        if query.windowed:
            return _search_window(reader, query, groups)
        total = _total(reader, query, groups)
        part = nearer_end(query.page * query.per_page, query.per_page, total)
        if not part.size:
            return PostPage((), (), total)
        if reads_days(query.last, total, 1 if groups is None else groups.count):
            page, params = _of_days(reader, query, groups, part)
        else:
            page, params = _newest(query, groups)
        shown, rest = _show(reader, page, params)
    return PostPage(shown, rest, total)


# --- the way to a page: decisions without the database ---------------------------------------------------------------


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


def reads_days(last: int, posts: int, groups: int) -> bool:
    """Return whether the counters by day find the posts up to `last` with less work than the newest posts of groups.

    One group has its posts in order in an index. Several groups have up to `last` candidates each.
    """
    return (last if groups == 1 else groups + min(posts, min(groups, last) * last)) > _FEW


def filters_days(matching: int, posts: int) -> bool:
    """Return whether filtering the posts of some days in order takes less time than sorting the matching posts."""
    return posts < 3 * matching


def filters_newest(matching: int, tried: int) -> bool:
    """Return whether filtering this number of posts in order takes less time than sorting the matching posts.

    If the matching posts are elsewhere, the sort follows, so the factor is smaller.
    """
    return tried < matching


def counts_others(matching: int, posts: int) -> bool:
    """Return whether to count all posts of a window and those of other groups, and not those of the matching groups.

    The index of all times is read more than twice as fast as the index of the groups.
    """
    return 3 * matching > 2 * posts


# --- groups ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that match a filter, apart from its time window.

    There may be as many groups as posts, so they stay in the database. `source` is the SQL text after FROM, and
    `columns` are the columns that groups share with posts.
    """

    columns: tuple[str, ...]
    source: str
    params: list[Value]
    count: int
    one: Sequence[Value]
    """The values of the only group if `count` is 1."""
    posts: int


def _groups(reader: Reader, query: PostFilter, *, by_outcomes: bool = False) -> Groups:
    """`by_outcomes`: each group has one status and outcomes, even if the filter does not need them."""
    conditions, params = ["1"], list[Value]()
    if query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    if query.status is None and query.outcome is None and not by_outcomes:
        # The index has the posts of an audience in order, also across status and outcomes.
        audiences, source = query.audiences or (), "(SELECT value AS audience_id FROM json_each(?))"
        counted = f"SELECT ifnull(sum(posts), 0) FROM audience_count WHERE {conditions[1]}"
        return Groups(("audience_id",), source, params, len(audiences), audiences[:1], reader.value(counted, params))
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
    columns = ("audience_id", "status", "outcomes")
    source = f"audience_count c WHERE {' AND '.join(conditions)}"
    least = ", ".join(f"min({column})" for column in columns)
    row = reader.one(f"SELECT count(*), ifnull(sum(posts), 0), {least} FROM {source}", params)
    assert row is not None
    return Groups(columns, source, params, row[0], tuple(row)[2:], row[1])


def _search_text(reader: Reader, query: PostFilter, groups: Groups | None, text: str) -> PostPage:
    """Scan the posts once. If many posts match, a second search finds the newest soon."""
    where, params = _where(query, groups)
    holding, patterns = contains("body", text)
    found = reader.one(
        f"SELECT count(*), group_concat(rowid) FROM post NOT INDEXED WHERE {where} AND {holding}", [*params, *patterns]
    )
    assert found is not None
    total, skipped = int(found[0]), query.page * query.per_page
    if skipped >= total:
        return PostPage((), (), total)
    part = f"{_NEWEST} LIMIT {query.per_page} OFFSET {skipped}"
    if total <= _FEW:
        ids, params = f"SELECT id FROM post WHERE rowid IN (SELECT value FROM json_each(?)) {part}", [f"[{found[1]}]"]
    else:
        ids = f"SELECT id FROM post INDEXED BY post_newest WHERE {where} AND {holding} {part}"
        params += patterns
    shown, rest = _show(reader, _SHOWN.format(ids), params)
    return PostPage(shown, rest, total)


def _search_window(reader: Reader, query: PostFilter, groups: Groups | None) -> PostPage:
    """Filter the newest or the oldest posts if enough of them match. Otherwise, sort all matching posts."""
    where, params = _where(query, groups)
    counted = _counted_groups(reader, query, groups)
    if counted is not None:
        matching, of_matching = _times_of(counted, query)
    else:
        has_filter = query.grouped or query.status is not None
        source = "post" if query.or_accepted else _COVERING if has_filter else "post INDEXED BY post_all_times"
        matching, of_matching = f"{source} WHERE {where}", params
    if counted is not None and _are_most(reader, counted):
        total = _count_without_others(reader, counted, query)
    else:
        total = int(reader.value(f"SELECT count(*) FROM {matching}", of_matching))
    part = nearer_end(query.page * query.per_page, query.per_page, total)
    if not part.size:
        return PostPage((), (), total)
    # Twice the posts that are necessary if the matching posts are spread evenly. They may all be elsewhere.
    tried = 2 * (part.ahead + part.size) * _count_all(reader) // total
    ids = list[str]()
    if filters_newest(total, tried):
        border = f"SELECT created_at FROM post ORDER BY created_at {part.order} LIMIT 1 OFFSET ?"
        newest = f"created_at {'>=' if part.order == 'DESC' else '<='} ({border})"
        filtered = f"SELECT id FROM post INDEXED BY post_newest WHERE {where} AND {newest} {part.sql}"
        ids = [row[0] for row in reader.all(filtered, [*params, tried])]
    if len(ids) < part.size:
        if total > _FEW and not query.or_accepted:
            matching, of_matching = f"{_COVERING} WHERE {where}", params  # without reading the row of each post
        ids = [row[0] for row in reader.all(f"SELECT id FROM {matching} {part.sql}", of_matching)]
    shown, rest = _show(reader, _SHOWN.format("SELECT value FROM json_each(?)"), [json.dumps(ids)])
    return PostPage(shown, rest, total)


def _counted_groups(reader: Reader, query: PostFilter, groups: Groups | None) -> Groups | None:
    """Return the groups whose scheduled times an index has in order. None: another index finds the posts sooner."""
    if query.or_accepted or (groups is None and query.status is None):
        return None
    if groups is None or "outcomes" not in groups.columns:
        groups = _groups(reader, query, by_outcomes=True)
    return groups if groups.count <= _FEW else None


def _times_of(groups: Groups, query: PostFilter) -> tuple[str, list[Value]]:
    """Return the SQL text after FROM, and its parameters, that reads only the posts of these groups in the window."""
    columns = ", ".join(groups.columns)
    joined = f"(SELECT {columns} FROM {groups.source}) CROSS JOIN post INDEXED BY post_times USING ({columns})"
    bounds = _bounds(query)
    return f"{joined} WHERE {' AND '.join(bounds)}", [*groups.params, *bounds.values()]


def _bounds(query: PostFilter) -> dict[str, Value]:
    """Return the conditions of a window and their values. An upper bound doubles the time of a count."""
    bounds = {"scheduled_at >= ?": query.scheduled_after, "scheduled_at <= ?": query.scheduled_before}
    return {condition: bound for condition, bound in bounds.items() if bound is not None}


def _are_most(reader: Reader, groups: Groups) -> bool:
    return counts_others(groups.posts, _count_all(reader)) and not audience_rows.are_many(reader)


def _count_without_others(reader: Reader, groups: Groups, query: PostFilter) -> int:
    """Subtract the posts of all other groups from all posts of the window."""
    columns = ", ".join(groups.columns)
    others = replace(groups, source=f"audience_count WHERE ({columns}) NOT IN (SELECT {columns} FROM {groups.source})")
    source, params = _times_of(others, query)
    bounds = _bounds(query)
    every = f"SELECT count(*) FROM post INDEXED BY post_all_times WHERE {' AND '.join(bounds)}"
    return int(reader.value(f"SELECT ({every}) - count(*) FROM {source}", [*bounds.values(), *params]))


def _total(reader: Reader, query: PostFilter, groups: Groups | None) -> int:
    if groups is not None:
        return groups.posts
    if query.status is None:
        return _count_all(reader)
    return int(reader.value("SELECT posts FROM post_count WHERE status = ?", (query.status,)) or 0)


def _count_all(reader: Reader) -> int:
    return int(reader.value("SELECT sum(posts) FROM post_count") or 0)


# The next functions return the SQL text after FROM for the posts of the page as `p`, in order, and its parameters.

_SHOWN = "post p WHERE id IN ({}) ORDER BY +created_at DESC, +id DESC"
"""Skipped posts and posts to sort are not converted to JSON. The `+` keeps SQLite from scanning an index in order."""


def _newest(query: PostFilter, groups: Groups | None) -> tuple[str, list[Value]]:
    """Skip the posts of the former pages: in the index of one group, or in the newest posts of all groups."""
    skipped = query.page * query.per_page
    part = f"LIMIT {query.per_page} OFFSET {skipped}"
    if groups is not None and groups.count > 1:
        return _SHOWN.format(_newest_of(groups, query.last, part)), groups.params
    where, params = _where(query, groups)
    if not skipped:
        return f"post p WHERE {where} {_NEWEST} LIMIT {query.per_page}", params  # straight from an index
    return _SHOWN.format(f"SELECT id FROM post WHERE {where} {_NEWEST} {part}"), params


def _of_days(reader: Reader, query: PostFilter, groups: Groups | None, part: PagePart) -> tuple[str, list[Value]]:
    """Find the days of the page by their counters, and read only the posts of these days."""
    where, params = _where(query, groups)
    counted = f"SELECT day, sum(posts) FROM post_day WHERE {where} GROUP BY day ORDER BY day {part.order}"
    days = reader.connection.execute(counted, params)
    first, last, matching, ahead = "", "", 0, part.ahead
    for day, posts in days:
        if not first and posts <= ahead:
            ahead -= posts
            continue
        first, last, matching = first or day, day, matching + posts
        if matching >= ahead + part.size:
            break
    days.close()
    span: list[Value] = [min(first, last), max(first, last)]
    part = PagePart(part.order, ahead, part.size)
    source = "post"
    if groups is not None and groups.count > 1:
        in_all = reader.value("SELECT sum(posts) FROM post_day WHERE day BETWEEN ? AND ?", span)
        if not filters_days(matching, in_all):
            found = f"""SELECT id FROM (SELECT * FROM post_day WHERE day BETWEEN ? AND ? AND {where}) d
                CROSS JOIN post INDEXED BY post_by_outcomes USING (audience_id, status, outcomes)
                WHERE created_at BETWEEN d.day AND d.day || '~' {part.sql}"""
            return _SHOWN.format(found), [*span, *params]
        source = "post INDEXED BY post_newest"
    found = f"SELECT id FROM {source} WHERE {where} AND created_at BETWEEN ? AND ? || '~' {part.sql}"
    return _SHOWN.format(found), [*params, *span]


def _newest_of(groups: Groups, last: int, part: str) -> str:
    """Return the SQL text for the ids of a part of the `last` newest posts of all groups.

    An index has the newest posts of each group. At most `last` groups matter: those with the newest posts.
    """
    columns = ", ".join(groups.columns)
    some = f"SELECT {columns} FROM {groups.source}"
    of_group = " AND ".join(f"{column} = {{0}}.{column}" for column in groups.columns)
    if groups.count > last:
        newest = f"SELECT created_at || id FROM post WHERE {of_group.format('h')} {_NEWEST} LIMIT 1"
        some = f"SELECT {columns} FROM ({some}) h ORDER BY ({newest}) DESC LIMIT {last}"
    return f"""SELECT n.id FROM ({some}) g CROSS JOIN post n
        ON n.rowid IN (SELECT rowid FROM post WHERE {of_group.format("g")} {_NEWEST} LIMIT {last})
        ORDER BY n.created_at DESC, n.id DESC {part}"""


def _where(query: PostFilter, groups: Groups | None) -> tuple[str, list[Value]]:
    conditions, params = ["1"], list[Value]()
    letter = OUTCOME_LETTERS[query.outcome] if query.outcome else None
    # These conditions exclude most posts before the slower search in the groups.
    by_column: list[tuple[str, Value]] = [("status = ?", query.status), ("instr(outcomes, ?)", letter)]
    if query.windowed and query.or_accepted:
        conditions.append(_GOING_OUT)
        params += [query.scheduled_after or _FIRST, query.scheduled_before or _LAST] * 2
    else:
        by_column += _bounds(query).items()
    for condition, value in by_column:
        if value is not None:
            conditions.append(condition)
            params.append(value)
    if groups is not None and groups.count == 1:
        conditions += [f"{column} = ?" for column in groups.columns]
        params += groups.one
    elif groups is not None:
        columns = ", ".join(groups.columns)
        conditions.append(f"({columns}) IN (SELECT {columns} FROM {groups.source})")
        params += groups.params
    return " AND ".join(conditions), params


def _show(reader: Reader, page: str, params: Sequence[Value]) -> tuple[list[bytes], list[str]]:
    """Return the posts up to `MAX_PAGE_BYTES`, and the ids of the other posts."""
    cursor = reader.connection.cursor()
    cursor.row_factory = None  # a tuple is smaller than a row
    cursor.execute(f"SELECT CAST({POST} AS BLOB) FROM {page}", params)
    shown: list[bytes] = []
    size = 0
    for (post,) in cursor:
        shown.append(post)
        size += len(post)
        if size > MAX_PAGE_BYTES:
            cursor.close()
            ids = [row[0] for row in reader.all(f"SELECT p.id FROM {page}", params)]
            return shown, ids[len(shown) :]
    return shown, []
