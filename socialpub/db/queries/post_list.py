"""Lists of posts: which posts a page shows, and how many there are in all.

A post belongs to a group: its audience, its status, and what became of its deliveries. Groups are counted
(`tables/audience_rows.py`), and within each one the newest come straight from an index: a page of what any filter lets
through is the newest of a few groups, and its total a sum of their counts. Only a window of time is searched through,
and so is what holds a text: looking into 100,000 posts takes 15 to 50 milliseconds. An index of texts (FTS5, trigrams)
was measured and left: it made each new post 0.8 milliseconds dearer, took three times the room of the texts, and no
copy could hold it, since nothing may run by itself in one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from socialpub.db.connection import Reader, Value
from socialpub.db.queries.api_json import POST
from socialpub.db.states import OUTCOME_LETTERS

MAX_PAGE_BYTES = 1 << 19
"""What a page may take at once, and keep in memory for a reader who is slow; the rest of a longer one is read post by
post."""

_NEWEST = "ORDER BY created_at DESC, id DESC"

_GOING_OUT = """rowid IN (SELECT rowid FROM post INDEXED BY post_scheduled
        WHERE scheduled_at IS NOT NULL AND scheduled_at BETWEEN ? AND ?
    UNION ALL SELECT rowid FROM post INDEXED BY post_newest
        WHERE created_at BETWEEN ? AND ? AND scheduled_at IS NULL)"""
_FIRST, _LAST = "", "~"
"""Before and behind every stamp."""


@dataclass(frozen=True, slots=True)
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
    or_accepted: bool = False
    """The window also holds what was to go out at once, by when it was accepted: the time of a calendar."""
    text: str | None = None
    """What the post's text must hold, capitals or not; a text of its user, in which nothing has a meaning."""
    page: int = 0
    per_page: int = 20

    @property
    def windowed(self) -> bool:
        return self.scheduled_after is not None or self.scheduled_before is not None

    @property
    def long(self) -> bool:
        """Whether answering may take more than a moment: then it belongs off the event loop."""
        return self.windowed or bool(self.text) or self.page * self.per_page > 2000

    @property
    def grouped(self) -> bool:
        """Whether groups have to be looked up: what no index has in order by itself."""
        return self.outcome is not None or self.audiences is not None


@dataclass(frozen=True, slots=True)
class PostPage:
    """The posts as JSON objects as far as they fit into `MOST_BYTES`, the ids of the others, and the count of all
    pages."""

    shown: Sequence[bytes]
    rest: Sequence[str]
    total: int


def load_page(reader: Reader, query: PostFilter) -> PostPage:
    """A page and its total."""
    if query.audiences == ():
        return PostPage((), (), 0)
    groups = _groups(reader, query) if query.grouped else None
    if groups is not None and not groups.count:
        return PostPage((), (), 0)
    if query.text:
        return _read_holding(reader, query, groups, query.text)
    page, params = _page(query, groups)
    shown, rest = _show(reader, page, params)
    return PostPage(shown, rest, _total(reader, query, groups))


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups whose posts a filter lets through, windows aside. They may be as many as the posts, so they stay in
    the database: `source` is what follows FROM to have them, by the columns that they share with their posts."""

    columns: tuple[str, ...]
    source: str
    params: list[Value]
    count: int
    one: Sequence[Value]
    """The only one, where `count` is 1."""
    posts: int


def _groups(reader: Reader, query: PostFilter) -> Groups:
    conditions, params = ["1"], list[Value]()
    if query.audiences is not None:
        conditions.append("audience_id IN (SELECT value FROM json_each(?))")
        params.append(json.dumps(query.audiences))
    if query.status is None and query.outcome is None:
        # Whatever its status and outcomes are, the posts of an audience are in order.
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
"""Sorting this number of posts is faster than searching the newest of them backwards in time."""


def _read_holding(reader: Reader, query: PostFilter, groups: Groups | None, text: str) -> PostPage:
    """The posts are looked through once; where many hold the text, the newest are met soon."""
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
    """What follows FROM to have the posts of the page as `p`, in their order."""
    skipped = query.page * query.per_page
    part = f"LIMIT {query.per_page} OFFSET {skipped}"
    if query.windowed or groups is None or groups.count == 1:
        where, params = _where(query, groups)
        if not skipped and not query.windowed:
            return f"post p WHERE {where} {_NEWEST} LIMIT {query.per_page}", params  # straight from an index
        # What is skipped or has to be sorted is looked at without showing it.
        ids = f"SELECT id FROM post WHERE {where} {_NEWEST} {part}"
    else:
        ids, params = _newest_of(groups, skipped + query.per_page, part), groups.params
    # The `+` keeps SQLite from walking a whole index in this order to find the few.
    return f"post p WHERE id IN ({ids}) ORDER BY +created_at DESC, +id DESC", params


def _newest_of(groups: Groups, last: int, part: str) -> str:
    """The ids of a part of the `last` newest posts of all groups. The newest of each group come straight from its
    index, and only as many groups as posts can have one among them: those whose newest post is newest."""
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
    """The posts as far as they fit, and the ids of the others."""
    cursor = reader.connection.cursor()
    cursor.row_factory = None  # a tuple is less than a row
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
# SQLite's LIKE is fast and folds the case of ASCII letters only. Every other letter that has a case is searched in both
# cases. If there are many such letters, the search uses the ways in which people write: as given, lower case,
# capitalized, title case, upper case.

MAX_SEARCH_LENGTH = 10_000
"""A pattern of SQLite may have 50,000 bytes."""

_SIGNS = "\\%_"
_MAX_FOREIGN = 3
"""Up to this number of letters, every mixture of their cases is searched."""


def contains(column: str, text: str) -> tuple[str, list[str]]:
    """Return the condition that `column` contains `text`, whatever its case, and the parameters of the condition.

    No letter of `text` has a meaning. The condition is false for a text that no column can contain.
    """
    if len(text) > MAX_SEARCH_LENGTH or "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        return "0", []
    if text.lower() == text.upper():
        return f"instr({column}, ?)", [text]  # without capitals, such as 日本 and 🌅
    foreign = [letter for letter in text if _is_foreign(letter)]
    if not foreign:
        return _like(column), [_pattern(text)]
    if _is_foreign(text[0]):
        # LIKE is slow with such a beginning, so it is only tried where that letter is met.
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
    """Return the pattern. `foreign` replaces each letter that LIKE does not fold."""
    escaped = "".join(f"\\{letter}" if letter in _SIGNS else letter for letter in text)
    return f"%{''.join(foreign if foreign and _is_foreign(letter) else letter for letter in escaped)}%"


def _is_foreign(letter: str) -> bool:
    return not letter.isascii() and len(_cases(letter)) > 1


def _cases(letter: str) -> tuple[str, ...]:
    """Return the letter in each case that is one letter, lower case first."""
    return tuple(dict.fromkeys(one for one in (letter.lower(), letter.upper(), letter) if len(one) == 1))


def _spellings(text: str, foreign: int) -> list[str]:
    if foreign > _MAX_FOREIGN:
        return list(dict.fromkeys((text.lower(), text, text.capitalize(), text.title(), text.upper())))
    choices = (_cases(letter) if _is_foreign(letter) else (letter,) for letter in text)
    return ["".join(letters) for letters in product(*choices)]
