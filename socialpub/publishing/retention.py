"""Data retention (`[retention]`): removes old posts and their log entries, old audit log entries, and unused media.

It works in short rounds of small writes, so other writes run in between. Old rows stay while they are needed: posts in
progress, posts with a retry or a reply in progress, and network ids while the outcome of an older call is unknown.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta

from socialpub.core import units
from socialpub.core.clock import after, stamp
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.queries import profile_queue
from socialpub.db.tables import (
    artifact_rows,
    audience_rows,
    audit_log,
    delivery_rows,
    log_entries,
    post_rows,
    webhooks,
)
from socialpub.runtime import Runtime

EVERY_SECONDS = 3600.0
MAX_WRITES = 50
MAX_SECONDS = 2.0
"""The length of a round, so that other periodic tasks run."""
MAX_DELIVERIES = 100
"""The deliveries of the posts that one write removes. A single post can have more."""
LOOKING_BACK = timedelta(days=1)
"""The result of a call may appear this much older than the call, because clocks differ."""

Step = Callable[[Runtime, Database], int]


def retention_limit(rt: Runtime) -> str | None:
    """Return the instant before which posts and audit log entries are removed. None: all are kept."""
    age, db = rt.settings.retention.posts, rt.db
    if age is None:
        return None
    # A read-back searches from the start of the call, or after a restore, from the backup.
    open_calls = (profile_queue.oldest_open_call(db), appliance_state.restored_from(db))
    searched = (after(at, -LOOKING_BACK.total_seconds()) for at in open_calls if at is not None)
    return min([clock_jumps.written_before(db, rt.now(), age), *searched])


def describe(rt: Runtime) -> str:
    """Return the sentence about how long posts are kept. Counts posts, so do not call it on the event loop."""
    period = rt.settings.retention.posts
    if period is None:
        return "Posts and their history are kept forever."
    due = units.count(count_expired_posts(rt), "post is", "posts are")
    return f"Posts and their history are kept for {units.duration(period)}. {due} due for removal."


def count_expired_posts(rt: Runtime) -> int:
    """Return the number of posts to remove next."""
    before = retention_limit(rt)
    return 0 if before is None else post_rows.count_final_before(rt.db, before)


class Retention:
    """The rounds of one process. A round continues over several calls of `remove_expired`."""

    def __init__(self) -> None:
        self._steps: Iterator[Step] | None = None
        self._again_at = 0.0
        """The next round, on the monotonic clock."""

    @property
    def is_under_way(self) -> bool:
        return self._steps is not None

    def remove_expired(self, rt: Runtime) -> int:
        """Continue the round, or begin a due round. Return the number of removed rows.

        Do not call on the event loop.
        """
        if self._steps is None:
            if rt.clock.monotonic() < self._again_at:
                return 0
            self._steps = _steps(rt.db, retention_limit(rt))
        removed, began = 0, rt.clock.monotonic()
        for _ in range(MAX_WRITES):
            if rt.clock.monotonic() - began >= MAX_SECONDS:
                break
            step = None if rt.stopping.is_set() else next(self._steps, None)
            if step is None:
                self._steps, self._again_at = None, rt.clock.monotonic() + EVERY_SECONDS
                break
            removed += rt.write(step)
        return removed


def _steps(db: Database, before: str | None) -> Iterator[Step]:
    """Yield small writes."""
    if before is not None:
        yield from _post_steps(db, before)
        yield from _entry_steps(db, before)
        yield from _audit_log_steps(db, before)


def _post_steps(db: Database, before: str) -> Iterator[Step]:
    beyond = ("", "")
    while rows := post_rows.final_before(db, before, beyond, BATCH_ROWS):
        some, deliveries = list[str](), 0
        for row in rows:
            if some and deliveries + row.deliveries > MAX_DELIVERIES:
                yield _removal_of_posts(some, before)
                some, deliveries = [], 0
            some.append(row.id)
            deliveries += row.deliveries
        yield _removal_of_posts(some, before)
        beyond = (rows[-1].created_at, rows[-1].id)


def _removal_of_posts(post_ids: list[str], before: str) -> Step:
    return lambda _, tx: sum(remove_post(tx, post_id, before) for post_id in post_ids)


def remove_post(tx: Database, post_id: str, before: str) -> bool:
    """Remove a post with its deliveries, unless it, a retry of it, or a reply to it, has changed since `before`."""
    post = post_rows.find(tx, post_id)
    if post is None or not post_rows.is_final(post, before):
        return False
    deliveries = delivery_rows.list_of_post(tx, post_id)
    for delivery in deliveries:
        others = {other.post_id for other in delivery_rows.list_tries(tx, delivery.first_id)}
        for other in others.union(delivery_rows.list_replies(tx, delivery.first_id)) - {post_id}:
            another = post_rows.find(tx, other)
            if another is not None and not post_rows.is_final(another, before):
                return False  # the retry or the reply needs this post
    artifact_ids = {artifact_id for artifact_id, _ in post_rows.list_media(tx, post_id)}
    artifact_ids |= delivery_rows.artifacts_in_options(delivery.options for delivery in deliveries)
    artifact_rows.drop(tx, artifact_ids, post.updated_at)
    log_entries.delete_attempts_of_post(tx, post_id)
    post_rows.delete(tx, post_id)
    if not post_rows.has_audience(tx, post.audience_id):
        audience_rows.delete(tx, post.audience_id)
    return True


def _entry_steps(db: Database, before: str) -> Iterator[Step]:
    beyond = 0
    while (batch := log_entries.next_batch(db, beyond)) is not None:
        last, oldest = batch
        if oldest > before:
            break
        yield lambda _, tx, beyond=beyond, last=last: _delete_entries(tx, beyond, last)  # type: ignore[misc]
        beyond = last


def _delete_entries(tx: Database, beyond: int, last: int) -> int:
    """Delete entries of removed posts, except those that a webhook has not read yet."""
    position = webhooks.oldest_position(tx)
    return log_entries.delete_entries(tx, beyond, last if position is None else min(last, position))


def _audit_log_steps(db: Database, before: str) -> Iterator[Step]:
    while (oldest := audit_log.oldest_entry_at(db)) is not None and oldest <= before:
        yield lambda _, tx: audit_log.forget_oldest(tx, before)


# --- unused media ----------------------------------------------------------------------------------------------------

RESERVATION_LIFETIME = timedelta(days=1)
"""An upload URL is valid for an hour. Clients resume an interrupted upload within a day."""
UNREFERENCED_LIFETIME = timedelta(days=30)
"""A draft or a script may use an artifact weeks after its upload."""
_AT_ONCE = 100
"""The number of artifacts that one short write checks again."""


def remove_unused_media(rt: Runtime) -> int:
    """Remove old reservations, unused artifacts, files of settled posts (`keep_after_settled`) and files without a row.

    Return the number of removed files. Do not call on the event loop.
    """
    now, keep = rt.clock.now(), rt.settings.media.keep_after_settled
    reserved, others = stamp(now - RESERVATION_LIFETIME), stamp(now - UNREFERENCED_LIFETIME)
    unused = artifact_rows.unused(rt.db, reserved, others)
    removed = _remove_media(rt, unused, lambda tx, some: artifact_rows.delete_unused(tx, some, reserved, others))
    if keep is not None:
        before = stamp(now - keep)
        settled = artifact_rows.settled(rt.db, before)
        removed += _remove_media(rt, settled, lambda tx, some: artifact_rows.empty_settled(tx, some, before))
    return removed + rt.files.remove_orphans(lambda keys: artifact_rows.named_among(rt.db, keys))


def _remove_media(rt: Runtime, artifact_ids: list[str], change: Callable[[Database, list[str]], list[str]]) -> int:
    removed = 0
    for start in range(0, len(artifact_ids), _AT_ONCE):
        some = artifact_ids[start : start + _AT_ONCE]
        for storage_key in rt.db.write(lambda tx, some=some: change(tx, some)):
            rt.files.remove(storage_key)
            removed += 1
    return removed
