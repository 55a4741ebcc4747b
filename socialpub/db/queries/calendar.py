"""Posts by day, for the calendar.

A post's time is its scheduled time, or the time at which it was accepted. The caller passes the instants at which days
begin, in the caller's time zone. A day may have 23 or 25 hours.
"""

import json
from collections.abc import Collection, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from peewee import JOIN, SQL, Case, ModelSelect, Select, fn

from socialpub.db.connection import Database
from socialpub.db.models import ArtifactRow, DeliveryRow, MediaRow, PostRow
from socialpub.db.states import PostStatus, State
from socialpub.db.tables.waits import IS_UNAPPROVED

UNAPPROVED = "unapproved"
"""The outcome of an open delivery that waits for the owner's approval."""
MAX_TEXT = 100
MAX_COUNTED = 1000
"""Counting all posts that are not shown would take too long."""


class CalendarDelivery(NamedTuple):
    provider: str
    profile_name: str
    outcome: str
    """`State.outcome` (pending, published, failed, unknown, canceled), or `UNAPPROVED`."""
    mode: str | None = None  # the option
    provider_post_id: str | None = None


class CalendarPost(NamedTuple):
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


class CalendarDay(NamedTuple):
    begins_at: str
    posts: tuple[CalendarPost, ...]
    """Oldest first."""
    more: int
    """The number of later posts that are not shown, counted up to `MAX_COUNTED`."""


post = PostRow.alias("post")
_by_time = attrgetter("at", "id")


def load_days(
    db: Database, midnights: Sequence[str], limit: int = 20, max_counted: int = MAX_COUNTED
) -> list[CalendarDay]:
    """Return the days between these stamps, each with at most `limit` posts.

    Many days with thousands of posts take tens of milliseconds. Do not call this on the event loop.
    """
    days = _read_days(db, midnights, limit, max_counted)
    posts = load_posts(db, [post_id for ids, _ in days for post_id in ids])
    return [
        CalendarDay(begin, tuple(posts[post_id] for post_id in ids if post_id in posts), max(count - limit, 0))
        for begin, (ids, count) in zip(midnights, days, strict=False)
    ]


def _read_days(db: Database, midnights: Sequence[str], limit: int, max_counted: int) -> list[tuple[list[str], int]]:
    """Return for each day the ids of the first posts, oldest first, and the number of posts."""
    day: Any = fn.json_each(json.dumps(list(pairwise(midnights)))).alias("day")
    begin, end = fn.json_extract(day.c.value, "$[0]"), fn.json_extract(day.c.value, "$[1]")
    scheduled = post.select(post.id, post.scheduled_at.alias("at")).from_(SQL("post INDEXED BY post_scheduled"))
    scheduled = scheduled.where(post.scheduled_at >= begin, post.scheduled_at < end)
    accepted = post.select(post.id, post.created_at).from_(SQL("post INDEXED BY post_newest"))
    accepted = accepted.where(post.created_at >= begin, post.created_at < end, post.scheduled_at.is_null())
    of_day = (scheduled + accepted).order_by(SQL("at"), SQL("id"))
    ids = Select([of_day.limit(limit)], [fn.json_group_array(SQL("id"))])
    count = Select([of_day.limit(limit + max_counted)], [fn.COUNT(SQL("*"))])
    rows = Select([day], [ids, count]).order_by(day.c.key).tuples().execute(db)
    return [(json.loads(ids_of_day), count_of_day) for ids_of_day, count_of_day in rows]


def upcoming_posts(db: Database, since: str, limit: int) -> tuple[CalendarPost, ...]:
    """Return the next scheduled posts after this instant."""
    upcoming = post.select(post.id).from_(SQL("post INDEXED BY post_scheduled"))
    upcoming = upcoming.where(post.scheduled_at > since, post.status == PostStatus.SCHEDULED)
    return _in_order(db, upcoming.order_by(post.scheduled_at, post.id).limit(limit))


def pending_posts(db: Database, limit: int) -> tuple[CalendarPost, ...]:
    """Return the newest pending posts, oldest first."""
    pending = post.select(post.id).where(post.status == PostStatus.PENDING)
    return _in_order(db, pending.order_by(post.created_at.desc(), post.id.desc()).limit(limit))


def _in_order(db: Database, ids: "ModelSelect[PostRow]") -> tuple[CalendarPost, ...]:
    return tuple(sorted(load_posts(db, [post_id for (post_id,) in ids.tuples().execute(db)]).values(), key=_by_time))


def load_posts(db: Database, post_ids: Collection[str]) -> dict[str, CalendarPost]:
    """Return the posts with these ids, by id."""
    if not post_ids:
        return {}
    delivery, media, artifact, first = DeliveryRow, MediaRow, ArtifactRow, MediaRow.alias("first")
    deliveries: dict[str, list[CalendarDelivery]] = {post_id: [] for post_id in post_ids}
    columns = (delivery.provider, delivery.profile_name, delivery.state, fn.json_extract(delivery.options, "$.mode"))
    of_posts = delivery.select(delivery.post_id, IS_UNAPPROVED, delivery.provider_post_id, *columns)
    of_posts = of_posts.where(delivery.post_id.in_(post_ids)).order_by(delivery.post_id, delivery.position)
    for post_id, is_unapproved, provider_post_id, provider, name, state, mode in of_posts.tuples().execute(db):
        outcome = UNAPPROVED if is_unapproved else State(state).outcome
        deliveries[post_id].append(CalendarDelivery(provider, name, outcome, mode, provider_post_id))
    posts = post.select(
        post.id,
        post.status,
        fn.IFNULL(post.scheduled_at, post.created_at),
        fn.substr(post.body, 1, MAX_TEXT),
        media.select(fn.COUNT(SQL("*"))).where(media.post_id == post.id),
        artifact.id,
        artifact.kind,
        Case(None, ((artifact.removed_at.is_null(), artifact.storage_key),)),
        post.updated_at,
    )
    posts = posts.join(first, JOIN.LEFT_OUTER, on=(first.post_id == post.id) & (first.position == 0))
    posts = posts.join(artifact, JOIN.LEFT_OUTER, on=artifact.id == first.artifact_id)
    rows = posts.where(post.id.in_(post_ids)).tuples().execute(db)
    return {row[0]: CalendarPost(tuple(deliveries[row[0]]), *row) for row in rows}
