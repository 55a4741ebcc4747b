"""What the API shows, built by SQLite as JSON text: no object per row, one statement per answer.

Every name and order here is the specification's (section 2); a field without a value is left out. Times are stored in
the API's own form, so they go into the JSON as they are. This is the one room of camelCase below the doors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from socialpub.store.database import Database, Reader, Value


def _text(name: str, column: str) -> str:
    """`"name": <column as JSON text>`, for a column that always has a value."""
    return f"""'"{name}":' || json_quote({column})"""


def _plain(name: str, column: str) -> str:
    """The same for ids, enums and stamps, which need no escaping."""
    return f"""'"{name}":"' || {column} || '"'"""


def _maybe(name: str, column: str, plain: bool = False) -> str:
    """The same for a column that may be null: then nothing, comma included."""
    # What SQLite quotes of null is the text null; a string that says so is quoted.
    value = f"""'"' || {column} || '"'""" if plain else f"nullif(json_quote({column}), 'null')"
    return f"""ifnull(',"{name}":' || {value}, '')"""


_MEDIA = (
    " || ',' || ".join((_plain("id", "m.id"), _plain("artifactId", "m.artifact_id")))
    + " || "
    + " || ".join(
        (
            _maybe("artifactStatus", "a.status", plain=True),
            _maybe("contentType", "a.mime_type"),
            _maybe("url", "CASE WHEN a.removed_at IS NULL THEN media_url(a.storage_key) END"),
            _maybe("alt", "m.alt"),
        )
    )
)

_STATE = """CASE d.state WHEN 'queued' THEN 'pending' WHEN 'running' THEN 'pending'
    WHEN 'unconfirmed' THEN 'failed' ELSE d.state END"""

_DELIVERY = (
    " || ',' || ".join(
        (
            _plain("provider", "d.provider"),
            _text("profileName", "d.profile_name"),
            _plain("status", _STATE),
            """'"providerOptions":' || d.options""",
            _plain("profileId", "d.profile_id"),
        )
    )
    + " || "
    + " || ".join(
        (
            _maybe("scheduledAt", "d.scheduled_at", plain=True),
            _maybe("publishedAt", "d.published_at", plain=True),
            _maybe("failedAt", "d.failed_at", plain=True),
            _maybe("providerPostId", "d.provider_post_id"),
            _maybe("url", "d.url"),
            _maybe("errorMessage", "d.error_message"),
        )
    )
)

_MEDIA_OF_POST = f"""(SELECT ifnull(group_concat(j, ','), '') FROM (SELECT '{{' || {_MEDIA} || '}}' AS j
    FROM media m JOIN artifact a ON a.id = m.artifact_id WHERE m.post_id = p.id ORDER BY m.position))"""

_DELIVERIES_OF_POST = f"""(SELECT group_concat(j, ',') FROM (SELECT '{{' || {_DELIVERY} || '}}' AS j
    FROM delivery d WHERE d.post_id = p.id ORDER BY d.position))"""

_POST = (
    "'{' || "
    + " || ',' || ".join(
        (
            _plain("id", "p.id"),
            _plain("status", "p.status"),
            _plain("createdAt", "p.created_at"),
            _plain("updatedAt", "p.updated_at"),
            f"""'"media":[' || {_MEDIA_OF_POST} || ']'""",
            f"""'"deliveries":[' || {_DELIVERIES_OF_POST} || ']'""",
        )
    )
    + " || "
    + " || ".join(
        (
            _maybe("body", "p.body"),
            _maybe("scheduledAt", "p.scheduled_at", plain=True),
            _maybe("canceledAt", "p.canceled_at", plain=True),
        )
    )
    + " || '}'"
)

_ONE_POST = f"SELECT {_POST} FROM post p WHERE p.id = ?"


class Scope(Protocol):
    """What of all this somebody may see."""

    @property
    def limited(self) -> bool: ...

    def sees(self, provider: str, profile_id: str) -> bool: ...


def offer_functions(db: Database, media_url: Callable[[Value], str | None]) -> None:
    """Give the statements below what only the process knows: how a read URL is signed."""
    db.offer("media_url", 1, media_url)


def post(reader: Reader, post_id: str) -> bytes | None:
    """The post as the API shows it, or None."""
    row = reader.one(_ONE_POST, (post_id,))
    return None if row is None else str(row[0]).encode()


# --- lists of posts --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostQuery:
    """Which posts, newest first. `audiences` None: every one. Stamps are inclusive; pages start at 0."""

    audiences: tuple[int, ...] | None = None
    status: str | None = None
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
        return self.windowed or self.page * self.per_page > 2000 or len(self.audiences or ()) > 50


def posts(reader: Reader, query: PostQuery) -> bytes:
    """The page as a JSON array."""
    if query.audiences == ():
        return b"[]"
    ids, params = _page_of_ids(query)
    row = reader.one(
        f"""SELECT ifnull(group_concat(j, ','), '') FROM (SELECT {_POST} AS j FROM ({ids}) page
            JOIN post p ON p.id = page.id ORDER BY page.created_at DESC, page.id DESC)""",
        params,
    )
    assert row is not None
    return b"[" + str(row[0]).encode() + b"]"


def count_posts(reader: Reader, query: PostQuery) -> int:
    """All that match, on every page: a sum of counters, unless a window of time asks for counting."""
    if query.audiences == ():
        return 0
    if query.windowed:
        where, params = _where(query)
        return int(reader.value(f"SELECT count(*) FROM post WHERE {where}", params))
    conditions = ["1"]
    params = []
    if query.audiences is not None:
        conditions.append(f"audience_id IN ({_marks(query.audiences)})")
        params += query.audiences
    if query.status is not None:
        conditions.append("status = ?")
        params.append(query.status)
    counted = reader.value(f"SELECT sum(posts) FROM audience_count WHERE {' AND '.join(conditions)}", params)
    return int(counted or 0)


def _page_of_ids(query: PostQuery) -> tuple[str, list[Value]]:
    last = query.page * query.per_page
    page = f"ORDER BY created_at DESC, id DESC LIMIT {query.per_page} OFFSET {last}"
    if query.windowed or query.audiences is None or len(query.audiences) == 1:
        where, params = _where(query)
        return f"SELECT id, created_at FROM post WHERE {where} {page}", params
    # The newest of each audience come straight from its index; together they hold the newest of all.
    parts, params = [], []
    for audience in query.audiences:
        where, some = _where(PostQuery((audience,), query.status))
        newest = f"ORDER BY created_at DESC, id DESC LIMIT {last + query.per_page}"
        parts.append(f"SELECT * FROM (SELECT id, created_at FROM post WHERE {where} {newest})")
        params += some
    if len(parts) > _MOST_PARTS:
        where, params = _where(query)
        return f"SELECT id, created_at FROM post WHERE {where} {page}", params
    return f"SELECT id, created_at FROM ({' UNION ALL '.join(parts)}) {page}", params


_MOST_PARTS = 200
"""SQLite takes 500 terms in one compound statement; beyond this many a plain search is as good."""


def _where(query: PostQuery) -> tuple[str, list[Value]]:
    conditions, params = ["1"], []
    if query.audiences is not None:
        conditions.append(f"audience_id IN ({_marks(query.audiences)})")
        params += list[Value](query.audiences)
    for condition, value in (
        ("status = ?", query.status),
        ("scheduled_at >= ?", query.scheduled_after),
        ("scheduled_at <= ?", query.scheduled_before),
    ):
        if value is not None:
            conditions.append(condition)
            params.append(value)
    return " AND ".join(conditions), params


def _marks(values: tuple[object, ...]) -> str:
    return ",".join("?" * len(values))


# --- attempts --------------------------------------------------------------------------------------------------------

_ATTEMPT = (
    " || ',' || ".join(
        (
            _plain("deliveryId", "delivery_id"),
            _plain("profileId", "profile_id"),
            _plain("provider", "provider"),
            _text("step", "step"),
            _plain("startedAt", "started_at"),
        )
    )
    + " || "
    + _maybe("endedAt", "ended_at", plain=True)
    + """ || ',' || '"outcome":"' || outcome || '"' || """
    + " || ".join(
        (
            _maybe("message", "message"),
            _maybe("providerCode", "provider_code"),
            _maybe("requestId", "request_id"),
            _maybe("nextAt", "next_at", plain=True),
        )
    )
)

_HELD_BACK = """
    SELECT 9223372036854775807 AS n, d.id AS delivery_id, d.profile_id, d.provider,
        ifnull(json_extract(d.plan, '$[' || d.step || '][0]'), 'start') AS step,
        d.run_at AS started_at, NULL AS ended_at,
        'held' AS outcome, CASE WHEN :paused IS NOT NULL THEN 'Publishing is paused since ' || :paused || '.'
            ELSE h.reason END AS message, h.code AS provider_code, NULL AS request_id,
        CASE WHEN :paused IS NULL THEN h.probe_at END AS next_at
    FROM delivery d LEFT JOIN hold h ON h.provider = d.provider
    WHERE d.post_id = :post AND d.state = 'queued' AND d.run_at <= :now
        AND (:paused IS NOT NULL OR h.provider IS NOT NULL)"""


def attempts(reader: Reader, post_id: str, now: str) -> bytes:
    """Every attempt of the post's deliveries, oldest first; one that is due and kept back says so last."""
    paused = reader.value("SELECT value FROM appliance WHERE name = 'paused_at'")
    row = reader.connection.execute(
        f"""SELECT ifnull(group_concat('{{' || {_ATTEMPT} || '}}', ','), '') FROM (
            SELECT * FROM (SELECT t.n, t.delivery_id, t.profile_id, t.provider, t.step, t.started_at, t.ended_at,
                t.outcome, t.message, t.provider_code, t.request_id, t.next_at
                FROM delivery d JOIN attempt t ON t.delivery_id = d.id WHERE d.post_id = :post
            UNION ALL {_HELD_BACK}) ORDER BY n)""",
        {"post": post_id, "now": now, "paused": paused},
    ).fetchone()
    return b"[" + str(row[0]).encode() + b"]"


# --- profiles --------------------------------------------------------------------------------------------------------

_PROFILE = (
    "'{' || "
    + " || ',' || ".join(
        (
            _plain("id", "id"),
            _text("name", "name"),
            _plain("provider", "provider"),
            _plain("status", "status"),
        )
    )
    + " || "
    + " || ".join(
        (
            _maybe("username", "username"),
            _maybe("pictureUrl", "picture_url"),
            _maybe("expiresAt", "expires_at", plain=True),
        )
    )
    + """ || ',"postsCount":' || posts_count || ',' || """
    + " || ',' || ".join((_plain("createdAt", "created_at"), _plain("updatedAt", "updated_at")))
    + " || '}'"
)


def profile(reader: Reader, profile_id: str) -> bytes | None:
    row = reader.one(f"SELECT {_PROFILE} FROM profile WHERE id = ?", (profile_id,))
    return None if row is None else str(row[0]).encode()


def profiles(reader: Reader, scope: Scope) -> bytes:
    """All that the key sees, oldest first."""
    rows = reader.all(f"SELECT id, provider, {_PROFILE} FROM profile ORDER BY created_at, id")
    return b"[" + b",".join(str(row[2]).encode() for row in rows if scope.sees(row[1], row[0])) + b"]"


# --- publishing logs -------------------------------------------------------------------------------------------------

_LOG_ENTRY = (
    "'{' || "
    + " || ',' || ".join(
        (
            _plain("id", "id"),
            _plain("deliveryId", "delivery_id"),
            _plain("postId", "post_id"),
            _plain("provider", "provider"),
            _plain("type", "type"),
            _plain("occurredAt", "occurred_at"),
        )
    )
    + " || "
    + " || ".join(
        (
            _maybe("postBody", "post_body"),
            _maybe("postScheduledAt", "post_scheduled_at", plain=True),
            _maybe("profileName", "profile_name"),
            _maybe("releaseUrl", "release_url"),
            _maybe("providerPostId", "provider_post_id"),
            _maybe("errorMessage", "error_message"),
        )
    )
    + " || '}'"
)


def log_entries(reader: Reader, scope: Scope, limit: int, offset: int) -> bytes:
    """The newest entries of deliveries that the key sees, as a JSON array."""
    newest = "ORDER BY n DESC LIMIT ? OFFSET ?"
    if not scope.limited:
        numbers, params = f"SELECT n FROM log_entry {newest}", [limit, offset]
    else:
        seen = [row["id"] for row in reader.all("SELECT id, provider FROM profile") if scope.sees(row[1], row[0])]
        if not seen:
            return b"[]"
        if len(seen) > _MOST_PARTS:
            numbers = f"SELECT n FROM log_entry WHERE profile_id IN ({_marks(tuple(seen))}) {newest}"
            params = [*seen, limit, offset]
        else:
            each = "SELECT * FROM (SELECT n FROM log_entry WHERE profile_id = ? ORDER BY n DESC LIMIT ?)"
            numbers = f"SELECT n FROM ({' UNION ALL '.join([each] * len(seen))}) {newest}"
            params = [value for profile_id in seen for value in (profile_id, offset + limit)] + [limit, offset]
    row = reader.one(
        f"""SELECT ifnull(group_concat(j, ','), '') FROM (SELECT {_LOG_ENTRY} AS j FROM log_entry
            WHERE n IN ({numbers}) ORDER BY n DESC)""",
        params,
    )
    assert row is not None
    return b"[" + str(row[0]).encode() + b"]"
