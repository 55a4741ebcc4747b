"""Posts by day: what stands in a calendar.

A post's time is the one it is scheduled for, or else when it was accepted, which is when it goes out. Which instants
begin a day is the reader's matter: theirs is the time zone, and a day may have 23 or 25 hours.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

from socialpub.db.connection import Reader, Value
from socialpub.db.states import State

MAX_TEXT = 100
MAX_COUNTED = 1000
"""Of more posts than that are not shown only so many are counted: counting them all takes long."""


@dataclass(frozen=True, slots=True)
class CalendarDelivery:
    provider: str
    profile_name: str
    outcome: str
    """`State.outcome`: pending, published, failed, unknown, canceled."""
    mode: str | None = None
    """Its option `mode`."""
    provider_post_id: str | None = None


@dataclass(frozen=True, slots=True)
class CalendarPost:
    id: str
    status: str
    at: str
    text: str | None
    """Its first 100 characters."""
    deliveries: tuple[CalendarDelivery, ...]
    media: int
    """How many there are."""
    artifact_id: str | None
    """The first of them."""
    kind: str | None
    """`image` or `video`."""
    storage_key: str | None
    """Under which the bytes of the first lie, as long as they are here."""
    updated_at: str


@dataclass(frozen=True, slots=True)
class CalendarDay:
    begins_at: str
    posts: tuple[CalendarPost, ...]
    """Oldest first."""
    more: int
    """How many later ones are not shown; the most that is counted stands for so many or more."""


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
        WHERE status = 'pending' ORDER BY created_at DESC, id DESC LIMIT :most)"""

_NAMED = "SELECT id, ifnull(scheduled_at, created_at) AS at FROM post WHERE id IN (SELECT value FROM json_each(:ids))"

_SHOWN = f"""
    SELECT p.id, p.status, c.at, substr(p.body, 1, {MAX_TEXT}) AS text,
        (SELECT count(*) FROM media WHERE post_id = p.id) AS media,
        a.id AS artifact_id, a.kind, CASE WHEN a.removed_at IS NULL THEN a.storage_key END AS storage_key, p.updated_at
    FROM ({{}} ORDER BY at, id LIMIT :most) c CROSS JOIN post p ON p.id = c.id
        LEFT JOIN media m ON m.post_id = p.id AND m.position = 0 LEFT JOIN artifact a ON a.id = m.artifact_id
    ORDER BY c.at, p.id"""

_DELIVERIES = """
    SELECT post_id, provider, profile_name, state, json_extract(options, '$.mode') AS mode, provider_post_id
    FROM delivery WHERE post_id IN (SELECT value FROM json_each(?)) ORDER BY post_id, position"""


def read(
    reader: Reader, midnights: Sequence[str], most: int = 20, most_counted: int = MAX_COUNTED
) -> list[CalendarDay]:
    """The days between these instants (stamps, in their order: one more than there are days), each with at most so
    many posts. Many days with thousands of posts take some ten milliseconds: off the event loop."""
    return [_day(reader, begin, end, most, most_counted) for begin, end in pairwise(midnights)]


def _day(reader: Reader, begin: str, end: str, most: int, most_counted: int) -> CalendarDay:
    span = {"begin": begin, "end": end}
    posts = _posts(reader, _IN_TIME, {**span, "most": most})
    more = 0
    if len(posts) == most:
        counted = reader.one(f"SELECT count(*) FROM ({_IN_TIME} LIMIT :most)", {**span, "most": most + most_counted})
        more = int(counted[0]) - most if counted else 0
    return CalendarDay(begin, posts, more)


def upcoming(reader: Reader, since: str, most: int) -> tuple[CalendarPost, ...]:
    """The next posts that wait for their time, from this instant on."""
    return _posts(reader, _UPCOMING, {"begin": since, "most": most})


def pending(reader: Reader, most: int) -> tuple[CalendarPost, ...]:
    """The last posts that are on their way, oldest first."""
    return _posts(reader, _PENDING, {"most": most})


def named(reader: Reader, post_ids: Sequence[str]) -> dict[str, CalendarPost]:
    """The posts with these ids, by id."""
    params: dict[str, Value] = {"ids": json.dumps(post_ids), "most": len(post_ids)}
    return {post.id: post for post in _posts(reader, _NAMED, params)}


def _posts(reader: Reader, found: str, params: Mapping[str, Value]) -> tuple[CalendarPost, ...]:
    rows = reader.all(_SHOWN.format(found), params)
    deliveries = _deliveries(reader, [row.id for row in rows])
    return tuple(
        CalendarPost(
            row.id,
            row.status,
            row.at,
            row.text,
            deliveries.get(row.id, ()),
            row.media,
            row.artifact_id,
            row.kind,
            row.storage_key,
            row.updated_at,
        )
        for row in rows
    )


def _deliveries(reader: Reader, post_ids: Sequence[str]) -> dict[str, tuple[CalendarDelivery, ...]]:
    rows = reader.all(_DELIVERIES, (json.dumps(post_ids),))
    return {
        post_id: tuple(
            CalendarDelivery(
                row.provider,
                row.profile_name,
                State(row.state).outcome,
                row.mode,
                row.provider_post_id,
            )
            for row in of_post
        )
        for post_id, of_post in groupby(rows, key=itemgetter("post_id"))
    }
