"""Lists of posts: the posts of a page, and the total.

Posts with the same audience, status and outcomes form a group. Groups are counted (`tables/audience_rows.py`), and an
index has the newest posts of each group. A page is therefore the newest posts of a few groups, and its total a sum of
counts. Only a time window and a text search scan posts: a scan of 100,000 posts takes 15 to 50 ms. A text index (FTS5,
trigrams) was measured and rejected: it needs 0.8 ms for each new post, three times the space of the texts, and
triggers, which backups do not allow.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from socialpub.db.connection import Reader, Value
from socialpub.db.queries.api_json import POST
from socialpub.db.states import OUTCOME_LETTERS

MAX_PAGE_BYTES = 1 << 19
"""The memory of a page for a slow caller. The other posts of a longer page are read one by one."""

_NEWEST = "ORDER BY created_at DESC, id DESC"

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
    def is_slow(self) -> bool:
        """Whether the query may take too long for the event loop."""
        return self.windowed or bool(self.text) or self.page * self.per_page > 2000

    @property
    def grouped(self) -> bool:
        """Whether the filter needs groups, because no index has the order."""
        return self.outcome is not None or self.audiences is not None


@dataclass(frozen=True, slots=True)
class PostPage:
    """The posts as JSON objects up to `MAX_PAGE_BYTES`, the ids of the other posts, and the total of all pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


def load_page(reader: Reader, query: PostFilter) -> PostPage:
    if query.audiences == ():
        return PostPage((), (), 0)
    groups = _groups(reader, query) if query.grouped else None
    if groups is not None and not groups.count:
        return PostPage((), (), 0)
    if query.text:
        return _search_text(reader, query, groups, query.text)
    page, params = _page(query, groups)
    shown, rest = _show(reader, page, params)
    return PostPage(shown, rest, _total(reader, query, groups))


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


def _groups(reader: Reader, query: PostFilter) -> Groups:
    conditions, params = ["1"], list[Value]()
    if query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    if query.status is None and query.outcome is None:
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


_FEW = 2000
"""Sorting at most this number of posts is faster than a search from the newest post on."""


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
    shown, rest = _show(reader, f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC", params)
    return PostPage(shown, rest, total)


def _total(reader: Reader, query: PostFilter, groups: Groups | None) -> int:
    if query.windowed:
        where, params = _where(query, groups)
        return int(reader.value(f"SELECT count(*) FROM post WHERE {where}", params))
    if groups is not None:
        return groups.posts
    if query.status is None:
        return int(reader.value("SELECT sum(posts) FROM post_count") or 0)
    return int(reader.value("SELECT posts FROM post_count WHERE status = ?", (query.status,)) or 0)


def _page(query: PostFilter, groups: Groups | None) -> tuple[str, list[Value]]:
    """Return the SQL text after FROM for the posts of the page as `p`, in order, and its parameters."""
    skipped = query.page * query.per_page
    part = f"LIMIT {query.per_page} OFFSET {skipped}"
    if query.windowed or groups is None or groups.count == 1:
        where, params = _where(query, groups)
        if not skipped and not query.windowed:
            return f"post p WHERE {where} {_NEWEST} LIMIT {query.per_page}", params  # straight from an index
        # Skipped posts and posts to sort are not converted to JSON.
        ids = f"SELECT id FROM post WHERE {where} {_NEWEST} {part}"
    else:
        ids, params = _newest_of(groups, skipped + query.per_page, part), groups.params
    # The `+` keeps SQLite from scanning a whole index in this order.
    return f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC", params


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
    if groups is not None and groups.count == 1:
        conditions = [f"{column} = ?" for column in groups.columns]
        params += groups.one
    elif groups is not None:
        columns = ", ".join(groups.columns)
        conditions.append(f"({columns}) IN (SELECT {columns} FROM {groups.source})")
        params += groups.params
    by_column: list[tuple[str, Value]] = [("status = ?", query.status)]
    if query.windowed and query.or_accepted:
        conditions.append(_GOING_OUT)
        params += [query.scheduled_after or _FIRST, query.scheduled_before or _LAST] * 2
    else:
        by_column += [("scheduled_at >= ?", query.scheduled_after), ("scheduled_at <= ?", query.scheduled_before)]
    for condition, value in by_column:
        if value is not None:
            conditions.append(condition)
            params.append(value)
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


# --- text ------------------------------------------------------------------------------------------------------------
#
# SQLite's LIKE is fast and ignores the case of ASCII letters only. Other letters are searched in both cases. For many
# such letters, the search uses the usual spellings: as given, lower case, capitalized, title case, upper case.

MAX_SEARCH_LENGTH = 10_000
"""A pattern in SQLite may have 50,000 bytes."""

_SIGNS = "\\%_"
_MAX_FOREIGN = 3
"""Up to this number of letters, every combination of cases is searched."""


def contains(column: str, text: str) -> tuple[str, list[str]]:
    """Return the condition that `column` contains `text` in any case, and its parameters.

    `text` does not contain wildcards. The condition is false for a text that no column can contain.
    """
    if len(text) > MAX_SEARCH_LENGTH or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return "0", []
    if text.lower() == text.upper():
        return f"instr({column}, ?)", [text]  # without case, such as 日本 and 🌅
    foreign = [letter for letter in text if _is_foreign(letter)]
    if not foreign:
        return _like(column), [_pattern(text)]
    if _is_foreign(text[0]):
        # LIKE is slow with such a first letter, so it only runs on texts that contain the letter.
        first = _cases(text[0])
        narrow, params = " OR ".join([f"instr({column}, ?)"] * len(first)), [*first]
    else:
        narrow, params = _like(column), [_pattern(text, foreign="_")]
    spellings = _spellings(text, len(foreign))
    spelled = " OR ".join([_like(column)] * len(spellings))
    return f"({narrow}) AND ({spelled})", [*params, *map(_pattern, spellings)]


def _like(column: str) -> str:
    return f"{column} LIKE ? ESCAPE '\\'"


def _pattern(text: str, foreign: str | None = None) -> str:
    """Return the pattern for LIKE. `foreign` replaces each letter whose case LIKE does not ignore."""
    escaped = "".join(f"\\{letter}" if letter in _SIGNS else letter for letter in text)
    return f"%{''.join(foreign if foreign and _is_foreign(letter) else letter for letter in escaped)}%"


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and len(_cases(letter)) > 1


def _cases(letter: str) -> tuple[str, ...]:
    """Return the letter in its cases, lower case first."""
    return tuple(dict.fromkeys(one for one in (letter.lower(), letter.upper(), letter) if len(one) == 1))


def _spellings(text: str, foreign: int) -> list[str]:
    if foreign > _MAX_FOREIGN:
        return list(dict.fromkeys((text.lower(), text, text.capitalize(), text.title(), text.upper())))
    choices = (_cases(letter) if _is_foreign(letter) else (letter,) for letter in text)
    return ["".join(letters) for letters in product(*choices)]
