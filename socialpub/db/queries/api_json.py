"""The API's JSON, built by SQLite: one statement per response, and no Python object per row.

Names and order are those of the specification (section 2). A field without a value is absent. Times are stored in the
API's form. Only this file of db/ contains camelCase.
"""

from collections.abc import Sequence

from socialpub.db import appliance_state
from socialpub.db.connection import Database, Value, placeholders
from socialpub.db.queries.profile_queue import WAIT_APPLIES
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

_ONE_POST = f"SELECT audience_id, CAST({POST} AS BLOB) FROM post p WHERE p.id = ?"


def post_with_audience(reader: Database, post_id: str) -> tuple[int, bytes] | None:
    """Return the audience and the JSON of the post, or None."""
    row = reader.one(_ONE_POST, (post_id,))
    return None if row is None else (row[0], row[1])


def post(reader: Database, post_id: str) -> bytes | None:
    """Return the JSON of the post, or None."""
    found = post_with_audience(reader, post_id)
    return None if found is None else found[1]


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

_STARTED = "ifnull((SELECT max(started_at) FROM attempt WHERE delivery_id = waiting.id), '')"

_KEPT_BACK = f"""
    SELECT 9223372036854775807 AS n, waiting.id AS delivery_id, waiting.profile_id, waiting.provider,
        CASE WHEN phase IN ({READING_BACK}) THEN '{READ_BACK}'
            ELSE ifnull(json_extract(plan, '$[' || step || '][0]'), 'start') END AS step,
        max(run_at, {_STARTED}) AS started_at, NULL AS ended_at,
        iif(:paused IS NOT NULL OR h.provider IS NOT NULL, 'held', 'waiting') AS outcome,
        CASE WHEN :paused IS NOT NULL THEN 'Publishing is paused since ' || :paused || '.'
            ELSE ifnull(h.reason, n.reason) END AS message, h.code AS provider_code, NULL AS request_id,
        CASE WHEN :paused IS NULL THEN ifnull(h.probe_at, n.until) END AS next_at
    FROM delivery waiting LEFT JOIN hold h ON h.provider = waiting.provider
        AND h.scope = (SELECT max(scope) FROM hold WHERE provider = waiting.provider
            AND (scope = next_scope OR (scope = '' AND next_scope <> 'questions')))
    LEFT JOIN not_before n ON n.profile_id = waiting.profile_id
        AND n.endpoint = (SELECT endpoint FROM not_before w JOIN profile p ON p.id = w.profile_id
            WHERE w.profile_id = waiting.profile_id AND p.status = 'active' AND until > :now AND {WAIT_APPLIES}
            ORDER BY until DESC LIMIT 1)
    WHERE waiting.post_id = :post AND state = 'queued' AND run_at <= :now
        AND (:paused IS NOT NULL OR h.provider IS NOT NULL OR n.endpoint IS NOT NULL)"""


def attempts(reader: Database, post_id: str, now: str) -> bytes:
    """Return the attempts of the post's deliveries in the order of their start.

    The last attempt of a due delivery shows why it waits: a pause, a hold, or a wait of its profile's queue.
    """
    paused = appliance_state.paused_at(reader)
    row = reader.execute_sql(
        f"""SELECT ifnull(group_concat({_ATTEMPT}, ','), '') FROM (
            SELECT * FROM (SELECT t.n, t.delivery_id, t.profile_id, t.provider, t.step, t.started_at, t.ended_at,
                t.outcome, t.message, t.provider_code, t.request_id, t.next_at
                FROM delivery d JOIN attempt t ON t.delivery_id = d.id WHERE d.post_id = :post
            UNION ALL {_KEPT_BACK}) ORDER BY started_at, n, delivery_id)""",
        {"post": post_id, "now": now, "paused": paused},
    ).fetchone()
    return b"[" + str(row[0]).encode() + b"]"


# --- profiles --------------------------------------------------------------------------------------------------------

_PROFILE = _object(
    _plain("id", "id"),
    _text("name", "name"),
    _plain("provider", "provider"),
    _plain("status", "status"),
    _maybe("username", "username"),
    _maybe("pictureUrl", "picture_url"),
    _maybe("expiresAt", "expires_at", plain=True),
    _raw("postsCount", "posts_count"),
    _plain("createdAt", "created_at"),
    _plain("updatedAt", "updated_at"),
)


def profile(reader: Database, profile_id: str) -> bytes | None:
    row = reader.one(f"SELECT {_PROFILE} FROM profile WHERE id = ?", (profile_id,))
    return None if row is None else str(row[0]).encode()


def profiles(reader: Database, scope: Scope) -> bytes:
    """Return the profiles in the scope, oldest first."""
    rows = reader.all(f"SELECT id, provider, {_PROFILE} FROM profile ORDER BY created_at, id")
    return b"[" + b",".join(str(row[2]).encode() for row in rows if scope.sees(row[1], row[0])) + b"]"


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


def event(reader: Database, number: int) -> tuple[str, bytes] | None:
    """Return the id of the log entry with this number, and the body of its webhook event (contract 10.6.3)."""
    row = reader.one(f"SELECT log_entry.id, CAST({_EVENT} AS BLOB) FROM {ENTRIES} WHERE n = ?", (number,))
    return None if row is None else (row[0], row[1])


_MAX_PARTS = 200
"""SQLite allows 500 terms in a compound statement. Above this number, a plain search is as fast."""


def log_entries(reader: Database, scope: Scope, limit: int, offset: int) -> bytes:
    """Return the newest entries of the profiles in the scope."""
    return _log_page(reader, scope, 0, "DESC", limit, offset)


def log_entries_after(reader: Database, scope: Scope, number: int, limit: int) -> bytes:
    """Return the entries of the profiles in the scope that were written after this one, oldest first."""
    return _log_page(reader, scope, number, "ASC", limit, 0)


def log_number(reader: Database, scope: Scope, entry_id: str) -> int | None:
    """Return the number of an entry in the order of writing. None: the scope has no such entry."""
    row = reader.one("SELECT n, provider, profile_id FROM log_entry WHERE id = ?", (entry_id,))
    return row.n if row is not None and scope.sees(row.provider, row.profile_id) else None


def _log_page(reader: Database, scope: Scope, beyond: int, order: str, limit: int, offset: int) -> bytes:
    # The end is read before the profiles: another process may connect a profile and write its entries between the two
    # statements, and the page must not skip these entries.
    bounds = (beyond, reader.value("SELECT ifnull(max(n), 0) FROM log_entry"))
    within, page = "n > ? AND n <= ?", f"ORDER BY n {order} LIMIT ? OFFSET ?"
    if not scope.limited:
        # Only a page that begins with the newest entry has an offset. SQLite skips entries without a join.
        first = "SELECT n FROM log_entry WHERE n <= ? ORDER BY n DESC LIMIT 1 OFFSET ?"
        found, params = f"WHERE n > ? AND n <= ({first}) ORDER BY n {order} LIMIT ?", [*bounds, offset, limit]
    else:
        seen = [row.id for row in reader.all("SELECT id, provider FROM profile") if scope.sees(row[1], row[0])]
        if not seen:
            return b"[]"
        if len(seen) > _MAX_PARTS:
            numbers = f"SELECT n FROM log_entry WHERE profile_id IN ({placeholders(tuple(seen))}) AND {within} {page}"
            params = [*seen, *bounds, limit, offset]
        else:
            each = (
                f"SELECT * FROM (SELECT n FROM log_entry WHERE profile_id = ? AND {within} ORDER BY n {order} LIMIT ?)"
            )
            numbers = f"SELECT n FROM ({' UNION ALL '.join([each] * len(seen))}) {page}"
            params = [value for profile_id in seen for value in (profile_id, *bounds, offset + limit)] + [limit, offset]
        found = f"WHERE n IN ({numbers}) ORDER BY n {order}"
    return _array(reader, f"SELECT {_LOG_ENTRY} AS j FROM {ENTRIES} {found}", params)


def _array(reader: Database, objects: str, params: Sequence[Value]) -> bytes:
    """Return the JSON array of the column `j` of this statement.

    SQLite returns bytes: a text would become a Python string and then bytes again.
    """
    sql = f"SELECT CAST('[' || ifnull(group_concat(j, ','), '') || ']' AS BLOB) FROM ({objects})"
    shown: bytes = reader.value(sql, params)
    return shown
