"""Posts by day, for the calendar.

A post's time is its scheduled time, or the time at which it was accepted. The caller passes the instants at which days
begin, in the caller's time zone. A day may have 23 or 25 hours.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from socialpub.db.connection import Database, Value
from socialpub.db.states import State
from socialpub.db.tables.delivery_rows import IS_UNAPPROVED

UNAPPROVED = "unapproved"
"""The outcome of an open delivery that waits for the owner's approval."""
MAX_TEXT = 100
MAX_COUNTED = 1000
"""Counting all posts that are not shown would take too long."""


@dataclass(frozen=True, slots=True)
class CalendarDelivery:
    provider: str
    profile_name: str
    outcome: str
    """`State.outcome` (pending, published, failed, unknown, canceled), or `UNAPPROVED`."""
    mode: str | None = None  # the option
    provider_post_id: str | None = None


@dataclass(frozen=True, slots=True)
class CalendarPost:
    deliveries: tuple[CalendarDelivery, ...]
    id: str
    status: str
    at: str
    text: str | None
    """The first 100 characters."""
    media: int
    """The number of media. The next three fields describe the first one."""
    artifact_id: str | None
    kind: str | None
    storage_key: str | None
    """None: the bytes were removed."""
    updated_at: str


@dataclass(frozen=True, slots=True)
class CalendarDay:
    begins_at: str
    posts: tuple[CalendarPost, ...]
    """Oldest first."""
    more: int
    """The number of later posts that are not shown, counted up to `MAX_COUNTED`."""


_IN_TIME = """
    SELECT id, scheduled_at AS at FROM post INDEXED BY post_scheduled
        WHERE scheduled_at IS NOT NULL AND scheduled_at >= :begin AND scheduled_at < :end
    UNION ALL SELECT id, created_at FROM post INDEXED BY post_newest
        WHERE created_at >= :begin AND created_at < :end AND scheduled_at IS NULL"""

_UPCOMING = """
    SELECT id, scheduled_at AS at FROM post INDEXED BY post_scheduled
        WHERE scheduled_at IS NOT NULL AND scheduled_at > :begin AND status = 'scheduled'"""

_PENDING = """
    SELECT id, ifnull(scheduled_at, created_at) AS at FROM (SELECT id, scheduled_at, created_at FROM post
        WHERE status = 'pending' ORDER BY created_at DESC, id DESC LIMIT :limit)"""

_NAMED = "SELECT id, ifnull(scheduled_at, created_at) AS at FROM post WHERE id IN (SELECT value FROM json_each(:ids))"

_SHOWN = f"""
    SELECT p.id, p.status, c.at, substr(p.body, 1, {MAX_TEXT}) AS text,
        (SELECT count(*) FROM media WHERE post_id = p.id) AS media,
        a.id AS artifact_id, a.kind, CASE WHEN a.removed_at IS NULL THEN a.storage_key END AS storage_key, p.updated_at
    FROM ({{}} ORDER BY at, id LIMIT :limit) c CROSS JOIN post p ON p.id = c.id
        LEFT JOIN media m ON m.post_id = p.id AND m.position = 0 LEFT JOIN artifact a ON a.id = m.artifact_id
    ORDER BY c.at, p.id"""

_OUTCOME = (
    f"CASE WHEN {IS_UNAPPROVED} THEN '{UNAPPROVED}' ELSE CASE state "
    + " ".join(f"WHEN '{state}' THEN '{state.outcome}'" for state in State)
    + " END END"
)

_DELIVERIES = f"""
    SELECT post_id, provider, profile_name, {_OUTCOME}, json_extract(options, '$.mode'), provider_post_id
    FROM delivery WHERE post_id IN (SELECT value FROM json_each(?)) ORDER BY post_id, position"""


def load_days(
    reader: Database, midnights: Sequence[str], limit: int = 20, max_counted: int = MAX_COUNTED
) -> list[CalendarDay]:
    """Return the days between these stamps, each with at most `limit` posts.

    Many days with thousands of posts take tens of milliseconds. Do not call this on the event loop.
    """
    return [_day(reader, begin, end, limit, max_counted) for begin, end in pairwise(midnights)]


def _day(reader: Database, begin: str, end: str, limit: int, max_counted: int) -> CalendarDay:
    span = {"begin": begin, "end": end}
    posts = _posts(reader, _IN_TIME, {**span, "limit": limit})
    more = 0
    if len(posts) == limit:
        counted = f"SELECT count(*) FROM ({_IN_TIME} LIMIT :limit)"
        more = int(reader.value(counted, {**span, "limit": limit + max_counted})) - limit
    return CalendarDay(begin, posts, more)


def upcoming_posts(reader: Database, since: str, limit: int) -> tuple[CalendarPost, ...]:
    """Return the next scheduled posts after this instant."""
    return _posts(reader, _UPCOMING, {"begin": since, "limit": limit})


def pending_posts(reader: Database, limit: int) -> tuple[CalendarPost, ...]:
    """Return the newest pending posts, oldest first."""
    return _posts(reader, _PENDING, {"limit": limit})


def load_posts(reader: Database, post_ids: Sequence[str]) -> dict[str, CalendarPost]:
    """Return the posts with these ids, by id."""
    params: dict[str, Value] = {"ids": json.dumps(post_ids), "limit": len(post_ids)}
    return {post.id: post for post in _posts(reader, _NAMED, params)}


def _posts(reader: Database, found: str, params: Mapping[str, Value]) -> tuple[CalendarPost, ...]:
    rows = reader.all(_SHOWN.format(found), params)
    deliveries: dict[str, list[CalendarDelivery]] = {row.id: [] for row in rows}
    for post_id, *delivery in reader.all(_DELIVERIES, (json.dumps(list(deliveries)),)):
        deliveries[post_id].append(CalendarDelivery(*delivery))
    return tuple(CalendarPost(tuple(deliveries[row.id]), *row) for row in rows)
