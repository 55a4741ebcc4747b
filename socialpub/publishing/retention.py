"""Data retention (`[retention]`): removes old posts, log entries, attempts, the audit log, and unused media.

It works in short rounds of small writes, so other writes run in between. Old rows stay while they are needed: posts in
progress, posts with a retry or a reply in progress, and network ids while the outcome of an older call is unknown.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from socialpub.core.clock import after, stamp
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.models import AttemptRow, LogEntryRow
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


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Older rows are removed. None: all rows are kept."""

    posts: str | None
    log: str | None
    attempts: str | None
    audit_log: str | None


def retention_limits(rt: Runtime) -> RetentionLimits:
    kept, reader = rt.settings.retention, rt.reader

    def before(age: timedelta | None) -> str | None:
        return None if age is None else clock_jumps.written_before(reader, rt.now(), age)

    posts = before(kept.posts)
    if posts is not None:
        # A read-back searches from the start of the call, or after a restore, from the backup.
        open_calls = (profile_queue.oldest_open_call(reader), appliance_state.restored_from(reader))
        posts = min([posts, *(after(at, -LOOKING_BACK.total_seconds()) for at in open_calls if at is not None)])
    return RetentionLimits(posts, before(kept.log), before(kept.attempts), before(kept.trail))


def count_expired_posts(rt: Runtime) -> int:
    """Return the number of posts to remove next."""
    before = retention_limits(rt).posts
    return 0 if before is None else post_rows.count_final_before(rt.reader, before)


def remove_expired(rt: Runtime) -> int:
    """Continue the round, or begin a due round. Return the number of removed rows. Do not call on the event loop."""
    own = rt.engine
    if own.retention_steps is None:
        if rt.clock.monotonic() < own.retention_again_at:
            return 0
        own.retention_steps = _steps(rt, retention_limits(rt))
    removed, began = 0, rt.clock.monotonic()
    for _ in range(MAX_WRITES):
        if rt.clock.monotonic() - began >= MAX_SECONDS:
            break
        step = None if rt.stopping.is_set() else next(own.retention_steps, None)
        if step is None:
            own.retention_steps, own.retention_again_at = None, rt.clock.monotonic() + EVERY_SECONDS
            break
        removed += rt.write(step)
    return removed


def _steps(rt: Runtime, limits: RetentionLimits) -> Iterator[Step]:
    """Yield small writes."""
    if limits.posts is not None:
        yield from _post_steps(rt.reader, limits.posts)
    oldest_entry = max(filter(None, (limits.log, limits.posts)), default=None)
    if oldest_entry is not None:
        yield from _entry_steps(rt.reader, limits.log or "", oldest_entry)
    if limits.attempts is not None:
        yield from _attempt_steps(rt.reader, limits.attempts)
    if limits.audit_log is not None:
        yield from _audit_log_steps(rt.reader, limits.audit_log)


def _post_steps(reader: Database, before: str) -> Iterator[Step]:
    beyond = ("", "")
    while rows := post_rows.final_before(reader, before, beyond, BATCH_ROWS):
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
    shown = {artifact_id for artifact_id, _ in post_rows.list_media(tx, post_id)}
    artifact_rows.drop(tx, shown | delivery_rows.artifacts_in_options(deliveries), post.updated_at)
    log_entries.delete_attempts_of_post(tx, post_id)
    post_rows.delete(tx, post_id)
    if not post_rows.has_audience(tx, post.audience_id):
        audience_rows.delete(tx, post.audience_id)
    return True


def _entry_steps(reader: Database, before: str, oldest: str) -> Iterator[Step]:
    beyond = 0
    while (found := log_entries.next_batch(reader, LogEntryRow.occurred_at, beyond)) is not None and found[1] <= oldest:
        yield lambda _, tx, beyond=beyond, last=found[0]: _delete_entries(tx, beyond, last, before)  # type: ignore[misc]
        beyond = found[0]


def _delete_entries(tx: Database, beyond: int, last: int, before: str) -> int:
    """Delete old entries, except those that a webhook has not read yet."""
    position = webhooks.oldest_position(tx)
    return log_entries.delete_entries(tx, beyond, last if position is None else min(last, position), before)


def _attempt_steps(reader: Database, before: str) -> Iterator[Step]:
    beyond = 0
    while (found := log_entries.next_batch(reader, AttemptRow.started_at, beyond)) is not None and found[1] <= before:
        yield lambda _, tx, beyond=beyond, last=found[0]: log_entries.delete_attempts(tx, beyond, last, before)  # type: ignore[misc]
        beyond = found[0]


def _audit_log_steps(reader: Database, before: str) -> Iterator[Step]:
    while (oldest := audit_log.oldest_entry_at(reader)) is not None and oldest <= before:
        yield lambda _, tx: audit_log.forget_oldest(tx, before)


# --- unused media ----------------------------------------------------------------------------------------------------

_AT_ONCE = 100
"""The number of artifacts that one short write checks again."""


def remove_unused_media(rt: Runtime) -> int:
    """Remove old reservations, unused artifacts, files of settled posts (`keep_after_settled`) and files without a row.

    Return the number of removed files. Do not call on the event loop.
    """
    now, uploads, keep = rt.clock.now(), rt.settings.uploads, rt.settings.media.keep_after_settled
    reserved, others = stamp(now - uploads.reservation_lifetime), stamp(now - uploads.unreferenced_lifetime)
    unused = artifact_rows.unused(rt.reader, reserved, others)
    removed = _remove_media(rt, unused, lambda tx, some: artifact_rows.delete_unused(tx, some, reserved, others))
    if keep is not None:
        before = stamp(now - keep)
        settled = artifact_rows.settled(rt.reader, before)
        removed += _remove_media(rt, settled, lambda tx, some: artifact_rows.empty_settled(tx, some, before))
    return removed + rt.files.remove_orphans(lambda keys: artifact_rows.named_among(rt.reader, keys))


def _remove_media(rt: Runtime, artifact_ids: list[str], change: Callable[[Database, list[str]], list[str]]) -> int:
    removed = 0
    for start in range(0, len(artifact_ids), _AT_ONCE):
        some = artifact_ids[start : start + _AT_ONCE]
        for storage_key in rt.db.write(lambda tx, some=some: change(tx, some)):
            rt.files.remove(storage_key)
            removed += 1
    return removed
