"""Statements about the table `artifact` and the count of stored files. `queries/api_json.py` has the API's view."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from peewee import Expression, fn

from socialpub.core.clock import after
from socialpub.db.connection import Database, shifted
from socialpub.db.models import IS_QUEUED, IS_RUNNING, ArtifactRow, DeliveryRow, MediaRow, PostRow, StoredMediaRow
from socialpub.db.states import ArtifactStatus, PostStatus

_OPEN_POSTS = (PostStatus.PENDING, PostStatus.SCHEDULED)
_IS_VERIFIED = ArtifactRow.status == ArtifactStatus.VERIFIED

# --- one -------------------------------------------------------------------------------------------------------------


def find(db: Database, artifact_id: str) -> Any:
    """Return the `ArtifactRow`, or None."""
    return db.get(ArtifactRow, artifact_id)


_NEWEST_READ = 200
"""The search for images reads only this number of the newest artifacts."""


def newest_images(db: Database, limit: int) -> list[ArtifactRow]:
    """Return the newest verified images whose bytes are stored: id and file_name."""
    newest = ArtifactRow.select(ArtifactRow.id).order_by(ArtifactRow.id.desc()).limit(_NEWEST_READ)
    is_image = _IS_VERIFIED & (ArtifactRow.kind == "image") & ~ArtifactRow.storage_key.is_null()
    query = ArtifactRow.select(ArtifactRow.id, ArtifactRow.file_name).where(ArtifactRow.id.in_(newest), is_image)
    return list(query.order_by(ArtifactRow.id.desc()).limit(limit).execute(db))


def verified_type(db: Database, storage_key: str) -> str | None:
    """Return the media type of the verified artifact under this key, or None."""
    query = ArtifactRow.select(ArtifactRow.mime_type).where(ArtifactRow.storage_key == storage_key, _IS_VERIFIED)
    mime_type: str | None = query.scalar(db)
    return mime_type


def verified_id(db: Database, storage_key: str) -> str | None:
    """Return the id of the verified artifact under this key, or None."""
    query = ArtifactRow.select(ArtifactRow.id).where(ArtifactRow.storage_key == storage_key, _IS_VERIFIED)
    artifact_id: str | None = query.scalar(db)
    return artifact_id


def insert(tx: Database, *, declared_bytes: int, storage_key: str | None = None, **columns: Any) -> None:
    tx.insert(ArtifactRow, {"declared_bytes": declared_bytes, "storage_key": storage_key, **columns})
    if storage_key is not None:
        _count(tx, 1, declared_bytes)


def put_bytes(tx: Database, artifact: ArtifactRow, storage_key: str, etag: str) -> None:
    """Record that bytes have arrived for this row."""
    generation = artifact.generation + 1
    columns = {"generation": generation, "stored_generation": generation, "storage_key": storage_key, "etag": etag}
    tx.update(ArtifactRow, artifact.id, **columns)
    if artifact.storage_key is None:
        _count(tx, 1, artifact.declared_bytes)


def _is_current(row: ArtifactRow | None, generation: int) -> bool:
    """Return whether the row waits for the examination of the bytes of this generation."""
    return row is not None and (row.status, row.stored_generation) == (ArtifactStatus.RESERVED, generation)


def verify(tx: Database, artifact_id: str, generation: int, **facts: Any) -> None:
    """Store the facts about the bytes of this generation, unless newer bytes have arrived.

    They are kind, mime_type, size_bytes and facts (JSON).
    """
    if _is_current(find(tx, artifact_id), generation):
        tx.update(ArtifactRow, artifact_id, status=ArtifactStatus.VERIFIED, verified_at=tx.stamp, **facts)


def reject(tx: Database, artifact_id: str, generation: int, reason: str) -> bool:
    """Reject the bytes of this generation. Return False if newer bytes have arrived."""
    row = find(tx, artifact_id)
    if row is None or not _is_current(row, generation):
        return False
    tx.update(
        ArtifactRow, artifact_id, status=ArtifactStatus.REJECTED, reason=reason, removed_at=tx.stamp, storage_key=None
    )
    _count(tx, -1, -row.declared_bytes)
    return True


# --- unused media ----------------------------------------------------------------------------------------------------


def drop(tx: Database, artifact_ids: Iterable[str], at: str) -> None:
    """Record that these artifacts are unused since then, unless another post uses them. Ignore unknown ids."""
    if ids := sorted(artifact_ids):
        dropped_at = fn.MAX(fn.IFNULL(ArtifactRow.dropped_at, ""), at)
        ArtifactRow.update(dropped_at=dropped_at).where(ArtifactRow.id.in_(ids)).execute(tx)


def _is_unused(reserved_before: str, others_before: str) -> Any:
    row = ArtifactRow
    used_at = fn.MAX(row.verified_at, fn.IFNULL(row.dropped_at, ""))
    is_old = (
        ((row.status == ArtifactStatus.RESERVED) & (row.created_at <= reserved_before))
        | ((row.status == ArtifactStatus.REJECTED) & (row.created_at <= others_before))
        | (_IS_VERIFIED & (used_at <= others_before))
    )
    return is_old & ~fn.EXISTS(MediaRow.select(MediaRow.id).where(MediaRow.artifact_id == row.id))


def _is_settled(before: str) -> Any:
    row, media, post = ArtifactRow, MediaRow, PostRow
    has_bytes = _IS_VERIFIED & row.removed_at.is_null() & (row.verified_at <= before)
    of_posts = media.select(media.id).where(media.artifact_id == row.id)
    is_needed = post.status.in_(_OPEN_POSTS) | (post.updated_at > before)
    return (
        has_bytes & fn.EXISTS(of_posts) & ~fn.EXISTS(of_posts.join(post, on=post.id == media.post_id).where(is_needed))
    )


def unused(db: Database, reserved_before: str, others_before: str) -> list[str]:
    """Return the artifacts of this age that no post references."""
    return _unnamed(db, _is_unused(reserved_before, others_before))


def delete_unused(tx: Database, artifact_ids: Sequence[str], reserved_before: str, others_before: str) -> list[str]:
    """Delete the artifacts among these that are still unused. Return the storage keys of their bytes."""
    keys = []
    for row in _still(tx, artifact_ids, _is_unused(reserved_before, others_before)):
        tx.delete(ArtifactRow, ArtifactRow.id == row.id)
        keys += _release(tx, row)
    return keys


def settled(db: Database, before: str) -> list[str]:
    """Return the artifacts with stored bytes whose posts all settled before that."""
    return _unnamed(db, _is_settled(before))


def empty_settled(tx: Database, artifact_ids: Sequence[str], before: str) -> list[str]:
    """Record that the bytes of the artifacts that are still settled are removed. Return their storage keys."""
    keys = []
    for row in _still(tx, artifact_ids, _is_settled(before)):
        tx.update(ArtifactRow, row.id, removed_at=tx.stamp, storage_key=None)
        keys += _release(tx, row)
    return keys


def _unnamed(db: Database, condition: Expression) -> list[str]:
    ids = [artifact_id for (artifact_id,) in ArtifactRow.select(ArtifactRow.id).where(condition).tuples().execute(db)]
    named = _named_in_options(db) | _named_in_earlier(db) if ids else ()
    return [artifact_id for artifact_id in ids if artifact_id not in named]


def _still(tx: Database, artifact_ids: Sequence[str], condition: Expression) -> list[ArtifactRow]:
    """Return the artifacts among these that meet the condition and that no open delivery names."""
    named = _named_in_options(tx) | _named_in_earlier(tx)
    ids = [artifact_id for artifact_id in artifact_ids if artifact_id not in named]
    return list(ArtifactRow.select().where(ArtifactRow.id.in_(ids), condition).execute(tx))


def _named_in_options(db: Database) -> set[str]:
    """Return every value in the options of open deliveries, including ids of artifacts."""
    option: Any = fn.JSON_EACH(DeliveryRow.options).alias("option")
    query = DeliveryRow.select(option.c.value).from_(DeliveryRow, option)
    return {value for is_open in (IS_QUEUED, IS_RUNNING) for (value,) in query.where(is_open).tuples().execute(db)}


def _named_in_earlier(db: Database) -> set[str]:
    """Return the artifacts with which another installation may have published open deliveries."""
    earlier: Any = fn.JSON_EACH(DeliveryRow.progress, "$.contents").alias("earlier")
    media: Any = fn.JSON_EACH(earlier.c.value, "$.media").alias("media")  # pairs of an id and an alt text
    query = DeliveryRow.select(fn.JSON_EXTRACT(media.c.value, "$[0]")).from_(DeliveryRow, earlier, media)
    return {value for is_open in (IS_QUEUED, IS_RUNNING) for (value,) in query.where(is_open).tuples().execute(db)}


def _release(tx: Database, row: ArtifactRow) -> list[str]:
    """Return the storage key of a row that has just lost its bytes."""
    if row.storage_key is None:
        return []
    _count(tx, -1, -row.declared_bytes)
    return [row.storage_key]


LATELY_SECONDS = 31 * 86400.0


def shift_timestamps(tx: Database, seconds: float) -> None:
    """Shift the times of recent uploads after the clock was set by this number of seconds."""
    row = ArtifactRow
    row.update(created_at=shifted(row.created_at, seconds)).where(row.status == ArtifactStatus.RESERVED).execute(tx)
    times = {"verified_at": shifted(row.verified_at, seconds), "dropped_at": shifted(row.dropped_at, seconds)}
    used_at = fn.MAX(row.verified_at, fn.IFNULL(row.dropped_at, ""))
    is_recent = used_at > after(tx.stamp, -abs(seconds) - LATELY_SECONDS)
    row.update(**times).where(_IS_VERIFIED & row.removed_at.is_null() & is_recent).execute(tx)


# --- bytes -----------------------------------------------------------------------------------------------------------


def storage_keys(db: Database) -> Iterator[str]:
    """Yield the storage keys of all rows, which may be many."""
    query = ArtifactRow.select(ArtifactRow.storage_key).where(~ArtifactRow.storage_key.is_null())
    for (storage_key,) in query.order_by(ArtifactRow.id).tuples().iterator(db):
        yield storage_key


def stored(db: Database) -> tuple[int, int]:
    """Return the number of stored files, and their total declared size, which is also their real size."""
    row = StoredMediaRow.select().first(db)
    assert row is not None
    return row.files, row.size_bytes


def named_among(db: Database, keys: Sequence[str]) -> list[str]:
    """Return the storage keys among these that a row contains."""
    query = ArtifactRow.select(ArtifactRow.storage_key).where(ArtifactRow.storage_key.in_(keys))
    return [storage_key for (storage_key,) in query.tuples().execute(db)]


def note_removed(tx: Database, storage_key: str) -> bool:
    """Record that these bytes are removed. Return False without a change if an open post needs them."""
    row = ArtifactRow.select().where(ArtifactRow.storage_key == storage_key).first(tx)
    if row is None or row.id in _named_in_options(tx):
        return False
    posts = MediaRow.select(MediaRow.id).join(PostRow, on=PostRow.id == MediaRow.post_id)
    if posts.where((MediaRow.artifact_id == row.id) & PostRow.status.in_(_OPEN_POSTS)).first(tx) is not None:
        return False
    changes: dict[str, Any] = {}
    if row.status == ArtifactStatus.VERIFIED:
        changes = {"removed_at": tx.stamp}
    elif row.status == ArtifactStatus.RESERVED:
        changes = {"stored_generation": None, "etag": None}
    tx.update(ArtifactRow, row.id, storage_key=None, **changes)
    _release(tx, row)
    return True


def _count(tx: Database, files: int, size_bytes: int) -> None:
    total = StoredMediaRow
    total.update(files=total.files + files, size_bytes=total.size_bytes + size_bytes).execute(tx)
