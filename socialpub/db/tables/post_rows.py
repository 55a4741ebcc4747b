"""Statements about the tables `post`, `former_text`, `media` and `idempotency`.

A post's status follows from the states of its deliveries, and the counters change in the same write.
"""

from collections.abc import Iterable, Sequence

from peewee import fn

from socialpub.db import appliance_state
from socialpub.db.connection import Database, Row, Value, placeholders
from socialpub.db.models import PostRow
from socialpub.db.states import PostStatus, State
from socialpub.db.tables import artifact_rows, counters, delivery_rows

PREPARED = "each request, claim and settle"

FINAL = (PostStatus.SETTLED, PostStatus.CANCELED)

_AT_ONCE = 500
"""The number of parameters that every version of SQLite allows."""


def find(store: Database, post_id: str) -> Row | None:
    return store.one("SELECT * FROM post WHERE id = ?", (post_id,))


def find_audience(store: Database, post_id: str) -> int | None:
    audience: int | None = store.value("SELECT audience_id FROM post WHERE id = ?", (post_id,))
    return audience


def elsewhere_since(store: Database, post_id: str) -> str | None:
    """Return the instant of the earliest backup that contains this post: another installation may publish the post.

    None: other installations do not have the current version of the post.
    """
    row = store.one("SELECT restore_count FROM post WHERE id = ?", (post_id,))
    restores = appliance_state.restores(store)[row[0] :] if row is not None else []
    return min((instant for instant in restores if instant is not None), default=None)


def insert(tx: Database, **columns: Value) -> None:
    tx.insert(PostRow, columns)


def update(tx: Database, post_id: str, **columns: Value) -> None:
    tx.update(PostRow, post_id, **columns)


def change_text(tx: Database, post: Row, body: str | None) -> None:
    """Store a new text. The log entries written so far keep the former text."""
    if body == post.body:
        return
    version = post.text_version
    # The entries of the acceptance have version 0. Later versions have no entry before a delivery ends.
    if version == 0 or set(post.outcomes) != {State.QUEUED.letter}:
        former = (post.id, version, post.body)
        tx.execute_sql("INSERT INTO former_text (post_id, version, body) VALUES (?, ?, ?)", former)
        version += 1
    update(tx, post.id, body=body, text_version=version)


def final_among(reader: Database, post_ids: Sequence[str]) -> list[str]:
    """Return the posts among these that are final."""
    found: list[str] = []
    for start in range(0, len(post_ids), _AT_ONCE):
        some = post_ids[start : start + _AT_ONCE]
        rows = reader.all(
            f"SELECT id FROM post WHERE status IN (?, ?) AND id IN ({placeholders(some)})",
            (*FINAL, *some),
        )
        found += [row[0] for row in rows]
    return found


def scheduled_elsewhere(reader: Database, instant: str, restore_count: int) -> list[tuple[str, str, str | None]]:
    """Return id, scheduled_at and body of the posts from a backup that are scheduled after this instant."""
    post = PostRow
    waits = (post.status == PostStatus.SCHEDULED) & (post.scheduled_at > instant) & (post.restore_count < restore_count)
    query = post.select(post.id, post.scheduled_at, post.body).where(waits)
    return [(id, at, body) for id, at, body in reader.tuples(query.order_by(post.scheduled_at, post.id))]


def final_before(reader: Database, before: str, beyond: tuple[str, str], limit: int) -> list[Row]:
    """Return id, created_at and the number of `deliveries` of unchanged posts, after this creation and id."""
    return reader.all(
        """SELECT id, created_at, length(outcomes) AS deliveries FROM post
            WHERE (created_at, id) > (?, ?) AND created_at <= ? AND updated_at <= ? AND status IN (?, ?)
            ORDER BY created_at, id LIMIT ?""",
        (*beyond, before, before, *FINAL, limit),
    )


def count_final_before(reader: Database, before: str) -> int:
    unchanged = (PostRow.created_at <= before) & (PostRow.updated_at <= before)
    return int(reader.scalar(PostRow.select(fn.COUNT()).where(unchanged & PostRow.status.in_(FINAL))))


def is_final(post: Row, before: str) -> bool:
    """Return whether the post is final, and was neither created nor changed since then."""
    # Both times count: after the clock was set back, a post can change before its creation.
    latest = max(post.created_at, post.updated_at)
    return post.status in FINAL and bool(latest <= before)


def delete(tx: Database, post_id: str) -> None:
    """Delete the post, its media rows and its former texts."""
    delete_media(tx, post_id)
    tx.execute_sql("DELETE FROM former_text WHERE post_id = ?", (post_id,))
    tx.execute_sql("DELETE FROM post WHERE id = ?", (post_id,))


def count(reader: Database) -> int:
    return int(reader.scalar(PostRow.select(fn.COUNT())))


def count_since(reader: Database, at: str) -> tuple[int, int]:
    """Return the number of posts that were created after this instant, and the number of unfinished posts."""
    query = PostRow.select(PostRow.status, fn.COUNT()).where(PostRow.created_at > at).group_by(PostRow.status)
    counts = dict(reader.tuples(query))
    return sum(counts.values()), counts.get(PostStatus.PENDING, 0) + counts.get(PostStatus.SCHEDULED, 0)


def oldest_created_at(reader: Database) -> str | None:
    at: str | None = reader.scalar(PostRow.select(fn.MIN(PostRow.created_at)))
    return at


def count_by_status(reader: Database, statuses: Iterable[PostStatus] = PostStatus) -> list[tuple[str, int]]:
    """Return the number of posts by status. With 1,000,000 posts of these, this takes about 50 ms."""
    post = PostRow
    counted = post.select(post.status, fn.COUNT(post.status)).where(post.status.in_(list(statuses)))
    return [(status, posts) for status, posts in reader.tuples(counted.group_by(post.status).order_by(post.status))]


def has_audience(reader: Database, audience: int) -> bool:
    """Return whether a post has this audience."""
    post = PostRow
    of_audience = post.status.in_(list(PostStatus)) & (post.audience_id == audience)
    return reader.scalar(post.select(post.id).where(of_audience).limit(1)) is not None


def newest_created_at(reader: Database) -> str | None:
    at: str | None = reader.scalar(PostRow.select(fn.MAX(PostRow.created_at)))
    return at


# --- status ----------------------------------------------------------------------------------------------------------


def set_status(tx: Database, post_id: str, status: PostStatus) -> None:
    """Set the status of a post, the outcomes of its deliveries, and the time of the change."""
    post = find(tx, post_id)
    assert post is not None
    _put(tx, post, status, delivery_rows.list_states(tx, post_id))


def begin(tx: Database, post_id: str) -> None:
    """Make a scheduled post pending because its first delivery starts."""
    post = find(tx, post_id)
    if post is not None and post.status == PostStatus.SCHEDULED:
        _put(tx, post, PostStatus.PENDING, delivery_rows.list_states(tx, post_id))


def settle_if_resolved(tx: Database, post_id: str) -> None:
    """Settle a post if all its deliveries are final."""
    post = find(tx, post_id)
    assert post is not None
    states = delivery_rows.list_states(tx, post_id)
    _put(tx, post, PostStatus.SETTLED if all(state.final for _, state in states) else post.status, states)


def _put(tx: Database, post: Row, status: str, states: Sequence[tuple[str, State]]) -> None:
    outcomes = "".join(state.letter for _, state in states)
    update(tx, post.id, status=status, outcomes=outcomes, updated_at=tx.stamp)
    if status in FINAL and post.status not in FINAL:
        # The post keeps its media. Artifacts in its options are unused from now on.
        artifact_rows.drop(tx, delivery_rows.named_in_options(tx, post.id), tx.stamp)
    for before, (provider, state) in zip(post.outcomes, states, strict=True):
        if state.final and before != state.letter:
            counters.count_outcome(tx, provider, state.outcome)


# --- media -----------------------------------------------------------------------------------------------------------


def insert_media(tx: Database, rows: Sequence[tuple[str, str, int, str, str | None]]) -> None:
    """Insert rows of id, post_id, position, artifact_id and alt."""
    tx.many("INSERT INTO media (id, post_id, position, artifact_id, alt) VALUES (?, ?, ?, ?, ?)", rows)


def delete_media(tx: Database, post_id: str) -> None:
    tx.execute_sql("DELETE FROM media WHERE post_id = ?", (post_id,))


def list_media(store: Database, post_id: str) -> list[tuple[str, str | None]]:
    """Return the artifact id and the alt text of each media item in order."""
    rows = store.all("SELECT artifact_id, alt FROM media WHERE post_id = ? ORDER BY position", (post_id,))
    return [(row[0], row[1]) for row in rows]


# --- requests with an Idempotency-Key --------------------------------------------------------------------------------


def find_request(reader: Database, key_id: str, key: str) -> Row | None:
    """Return fingerprint, created_at, and the response (status, location, body)."""
    return reader.one("SELECT * FROM idempotency WHERE key_id = ? AND key = ?", (key_id, key))


def store_response(
    tx: Database, key_id: str, key: str, fingerprint: str, status: int, location: str | None, body: bytes
) -> None:
    tx.execute_sql(
        """INSERT OR REPLACE INTO idempotency (key_id, key, fingerprint, created_at, status, location, body)
        VALUES (?, ?, ?, ?, ?, ?, ?)""",
        (key_id, key, fingerprint, tx.stamp, status, location, body),
    )
