"""The API's JSON. SQLite builds posts and log entries: one statement per response, and no Python object per row.

Measured with 10,000 posts: one post takes 0.03 ms so, and 2.3 ms with objects of peewee. Names and order are those of
the specification (section 2). A field without a value is absent. Times are stored in the API's form. Only this file of
db/ contains camelCase.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from peewee import SQL, ColumnBase

from socialpub.db.connection import Database
from socialpub.db.models import ProfileRow
from socialpub.db.queries.log_list import entry, numbers_of_profiles
from socialpub.db.states import READ_BACK, READING_BACK, State
from socialpub.db.tables.audience_rows import Scope
from socialpub.db.tables.log_entries import ENTRIES, TEXT


def _text(name: str, column: str) -> tuple[str, str]:
    """Return the template and the value of a text field that always has a value."""
    return f'"{name}":%s', f"json_quote({column})"


def _plain(name: str, column: str) -> tuple[str, str]:
    """Do the same for ids, enums and stamps, which need no escaping."""
    return f'"{name}":"%s"', column


def _raw(name: str, column: str) -> tuple[str, str]:
    """Do the same for JSON and numbers."""
    return f'"{name}":%s', column


def _maybe(name: str, column: str, plain: bool = False) -> tuple[str, str]:
    """Do the same for a column that may be null. Null gives an empty text, without a comma.

    SQLite computes the column once.
    """
    value = f"""'"' || {column} || '"'""" if plain else f"nullif(json_quote({column}), 'null')"
    return "%s", f"""ifnull(',"{name}":' || {value}, '')"""


def _object(*fields: tuple[str, str]) -> str:
    """Return the SQL expression of a JSON object. Optional fields contain their comma and follow a required field.

    One `format` is faster than a chain of `||`, each of which copies the text before it.
    """
    form = ""
    for part, _ in fields:
        form += part if part == "%s" or not form else f",{part}"
    return f"format('{{{form}}}', {', '.join(value for _, value in fields)})"


_MEDIA = _object(
    _plain("id", "m.id"),
    _plain("artifactId", "m.artifact_id"),
    _maybe("artifactStatus", "a.status", plain=True),
    _maybe("contentType", "a.mime_type"),
    _maybe("url", "CASE WHEN a.removed_at IS NULL THEN media_url(a.storage_key) END"),
    _maybe("alt", "m.alt"),
)

_STATE = "CASE d.state " + " ".join(f"WHEN '{state}' THEN '{state.api_status}'" for state in State) + " END"

_DELIVERY = _object(
    _plain("provider", "d.provider"),
    _text("profileName", "d.profile_name"),
    _plain("status", _STATE),
    _raw("providerOptions", "d.options"),
    _plain("profileId", "d.profile_id"),
    _maybe("scheduledAt", "d.scheduled_at", plain=True),
    _maybe("publishedAt", "d.published_at", plain=True),
    _maybe("failedAt", "d.failed_at", plain=True),
    _maybe("providerPostId", "d.provider_post_id"),
    _maybe("url", "d.url"),
    _maybe("errorMessage", "d.error_message"),
)

# The index has the order of the positions, so no sort is needed.
_MEDIA_OF_POST = f"""(SELECT ifnull(group_concat({_MEDIA}, ','), '')
    FROM media m INDEXED BY media_of_post CROSS JOIN artifact a ON a.id = m.artifact_id WHERE m.post_id = p.id)"""

_DELIVERIES_OF_POST = f"""(SELECT ifnull(group_concat({_DELIVERY}, ','), '')
    FROM delivery d INDEXED BY delivery_of_post WHERE d.post_id = p.id)"""

POST = _object(
    _plain("id", "p.id"),
    _plain("status", "p.status"),
    _plain("createdAt", "p.created_at"),
    _plain("updatedAt", "p.updated_at"),
    ('"media":[%s]', _MEDIA_OF_POST),
    ('"deliveries":[%s]', _DELIVERIES_OF_POST),
    _maybe("body", "p.body"),
    _maybe("scheduledAt", "p.scheduled_at", plain=True),
    _maybe("canceledAt", "p.canceled_at", plain=True),
)


def post_with_audience(db: Database, post_id: str) -> tuple[int, bytes] | None:
    """Return the audience and the JSON of the post, or None."""
    # Even a peewee query around this SQL would take 0.35 ms instead of 0.03 ms.
    row = db.execute_sql(f"SELECT audience_id, CAST({POST} AS BLOB) FROM post p WHERE p.id = ?", (post_id,)).fetchone()
    return None if row is None else (row[0], row[1])


def post(db: Database, post_id: str) -> bytes | None:
    """Return the JSON of the post, or None."""
    row = post_with_audience(db, post_id)
    return None if row is None else row[1]


# --- attempts --------------------------------------------------------------------------------------------------------

_ATTEMPT = _object(
    _plain("deliveryId", "delivery_id"),
    _plain("profileId", "profile_id"),
    _plain("provider", "provider"),
    _text("step", "step"),
    _plain("startedAt", "started_at"),
    _maybe("endedAt", "ended_at", plain=True),
    _plain("outcome", "outcome"),
    _maybe("message", "message"),
    _maybe("providerCode", "provider_code"),
    _maybe("requestId", "request_id"),
    _maybe("nextAt", "next_at", plain=True),
)

_WAITS = f"""
    SELECT 9223372036854775807 AS n, d.id AS delivery_id, d.profile_id, d.provider,
        CASE WHEN phase IN ({READING_BACK}) THEN '{READ_BACK}'
            ELSE ifnull(json_extract(plan, '$[' || step || '][0]'), 'start') END AS step,
        max(min(run_at, :now), w.value ->> 'since',
            ifnull((SELECT max(started_at) FROM attempt WHERE delivery_id = d.id), '')) AS started_at, NULL AS ended_at,
        w.value ->> 'outcome' AS outcome, w.value ->> 'message' AS message, w.value ->> 'code' AS provider_code,
        NULL AS request_id, w.value ->> 'until' AS next_at
    FROM json_each(:waits) w JOIN delivery d ON d.id = w.key"""


def attempts(db: Database, post_id: str, now: str, waits: Mapping[str, Mapping[str, str | None]]) -> bytes:
    """Return the attempts of the post's deliveries in the order of their start.

    `waits` are the present waits by delivery, each with since, outcome, message, code and until. A wait is the last
    attempt of its delivery.
    """
    # The same union as a peewee query takes 1.4 ms. This takes 0.02 ms, and a client asks until the post has ended.
    row = db.execute_sql(
        f"""SELECT ifnull(group_concat({_ATTEMPT}, ','), '') FROM (
            SELECT * FROM (SELECT t.n, t.delivery_id, t.profile_id, t.provider, t.step, t.started_at, t.ended_at,
                t.outcome, t.message, t.provider_code, t.request_id, t.next_at
                FROM delivery d JOIN attempt t ON t.delivery_id = d.id WHERE d.post_id = :post
            UNION ALL {_WAITS}) ORDER BY started_at, n, delivery_id)""",
        {"post": post_id, "now": now, "waits": json.dumps(waits)},
    ).fetchone()
    return b"[" + str(row[0]).encode() + b"]"


# --- profiles --------------------------------------------------------------------------------------------------------

_PROFILE = {
    "id": ProfileRow.id,
    "name": ProfileRow.name,
    "provider": ProfileRow.provider,
    "status": ProfileRow.status,
    "username": ProfileRow.username,
    "pictureUrl": ProfileRow.picture_url,
    "expiresAt": ProfileRow.expires_at,
    "postsCount": ProfileRow.posts_count,
    "createdAt": ProfileRow.created_at,
    "updatedAt": ProfileRow.updated_at,
}


def profile(db: Database, profile_id: str) -> bytes | None:
    shapes = _profiles(db, ProfileRow.id == profile_id)
    return orjson.dumps(shapes[0]) if shapes else None


def profiles(db: Database, scope: Scope) -> bytes:
    """Return the profiles in the scope, oldest first."""
    return orjson.dumps(_profiles(db, *_in_scope(scope)))


def _profiles(db: Database, *conditions: ColumnBase) -> list[dict[str, Any]]:
    rows = ProfileRow.select(*_PROFILE.values()).where(SQL("1"), *conditions)
    return [
        {name: value for name, value in zip(_PROFILE, row, strict=True) if value is not None}
        for row in rows.order_by(ProfileRow.created_at, ProfileRow.id).tuples().execute(db)
    ]


def _in_scope(scope: Scope, profile: Any = ProfileRow) -> list[ColumnBase]:
    limits = (profile.provider, scope.providers), (profile.id, scope.profiles)
    return [column.in_(values) for column, values in limits if values is not None]


# --- publishing logs -------------------------------------------------------------------------------------------------

_LOG_FIELDS = (
    _plain("id", "log_entry.id"),
    _plain("deliveryId", "delivery_id"),
    _plain("postId", "post_id"),
    _plain("provider", "provider"),
    _plain("type", "type"),
    _plain("occurredAt", "occurred_at"),
    _maybe("postBody", TEXT),
    _maybe("postScheduledAt", "post_scheduled_at", plain=True),
    _maybe("profileName", "profile_name"),
    _maybe("releaseUrl", "release_url"),
    _maybe("providerPostId", "provider_post_id"),
    _maybe("errorMessage", "error_message"),
)
_LOG_ENTRY = _object(*_LOG_FIELDS)

_EVENT = _object(
    _plain("type", "'delivery.' || type"),
    _plain("timestamp", "occurred_at"),
    _raw(
        "data",
        _object(*_LOG_FIELDS, _plain("profileId", "profile_id"), _raw("last", "iif(ends_post, 'true', 'false')")),
    ),
)


def event(db: Database, number: int) -> tuple[str, bytes] | None:
    """Return the id of the log entry with this number, and the body of its webhook event (contract 10.6.3)."""
    query = entry.select(entry.id, SQL(f"CAST({_EVENT} AS BLOB)")).from_(SQL(ENTRIES))
    row: tuple[str, bytes] | None = query.where(entry.n == number).tuples().first(db)
    return row


def log_number(db: Database, scope: Scope, entry_id: str) -> int | None:
    """Return the number of an entry in the order of writing. None: the scope has no such entry."""
    query = entry.select(entry.n, entry.provider, entry.profile_id).where(entry.id == entry_id)
    rows = query.tuples().execute(db)
    return next((number for number, provider, profile_id in rows if scope.sees(provider, profile_id)), None)


def log_entries(db: Database, scope: Scope, limit: int, offset: int) -> bytes:
    """Return the newest entries of the profiles in the scope."""
    return _log_page(db, scope, 0, "DESC", limit, offset)


def log_entries_after(db: Database, scope: Scope, number: int, limit: int) -> bytes:
    """Return the entries of the profiles in the scope that were written after this one, oldest first."""
    return _log_page(db, scope, number, "ASC", limit, 0)


def _log_page(db: Database, scope: Scope, beyond: int, order: str, limit: int, offset: int) -> bytes:
    numbers: Any = entry.select(entry.n).where(entry.n > beyond).order_by(SQL(f"n {order}"))
    if scope.limited:
        profiles = _in_scope(scope, ProfileRow.alias("profile"))
        numbers = numbers_of_profiles(profiles, numbers.limit(offset + limit)).order_by(SQL(f"e.value {order}"))
    sql, params = numbers.limit(limit).offset(offset).sql()
    entries = f"SELECT {_LOG_ENTRY} AS j FROM {ENTRIES} WHERE n IN ({sql}) ORDER BY n {order}"
    # 20 entries as objects take 1.2 ms, and this 0.3 ms. SQLite returns bytes: a text would become a Python string and
    # then bytes again.
    array = f"SELECT CAST('[' || ifnull(group_concat(j, ','), '') || ']' AS BLOB) FROM ({entries})"
    page: bytes = db.execute_sql(array, params).fetchone()[0]
    return page
