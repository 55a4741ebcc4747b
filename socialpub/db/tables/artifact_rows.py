"""Statements about the table `artifact` and the count of stored files. `queries/api_json.py` has the API's view."""

from collections.abc import Iterable, Iterator, Sequence

from socialpub.core.clock import after
from socialpub.db.connection import SHIFTED, Database, Row, Value, placeholders, shift_by
from socialpub.db.models import ArtifactRow
from socialpub.db.states import ArtifactStatus

PREPARED = "each upload; the clean-up needs json_each"

# --- one -------------------------------------------------------------------------------------------------------------


def find(store: Database, artifact_id: str) -> Row | None:
    return store.one("SELECT * FROM artifact WHERE id = ?", (artifact_id,))


_NEWEST_READ = 200
"""The search for images reads only this number of the newest artifacts."""


def newest_images(reader: Database, limit: int) -> list[ArtifactRow]:
    """Return the newest verified images whose bytes are stored: id and file_name."""
    newest = ArtifactRow.select(ArtifactRow.id).order_by(ArtifactRow.id.desc()).limit(_NEWEST_READ)
    is_image = (ArtifactRow.status == ArtifactStatus.VERIFIED) & (ArtifactRow.kind == "image")
    query = ArtifactRow.select(ArtifactRow.id, ArtifactRow.file_name).where(ArtifactRow.id.in_(newest), is_image)
    return reader.rows(query.where(~ArtifactRow.storage_key.is_null()).order_by(ArtifactRow.id.desc()).limit(limit))


def verified_type(reader: Database, storage_key: str) -> str | None:
    """Return the media type of the verified artifact under this key, or None."""
    mime_type: str | None = reader.value(
        "SELECT mime_type FROM artifact WHERE storage_key = ? AND status = 'verified'", (storage_key,)
    )
    return mime_type


def verified_id(reader: Database, storage_key: str) -> str | None:
    """Return the id of the verified artifact under this key, or None."""
    artifact_id: str | None = reader.value(
        "SELECT id FROM artifact WHERE storage_key = ? AND status = 'verified'", (storage_key,)
    )
    return artifact_id


def insert(tx: Database, *, declared_bytes: int, storage_key: str | None = None, **columns: Value) -> None:
    tx.insert(ArtifactRow, {"declared_bytes": declared_bytes, "storage_key": storage_key, **columns})
    if storage_key is not None:
        _count(tx, 1, declared_bytes)


def put_bytes(tx: Database, artifact: Row, storage_key: str, etag: str) -> None:
    """Record that bytes have arrived for this row."""
    generation = artifact.generation + 1
    columns = {"generation": generation, "stored_generation": generation, "storage_key": storage_key, "etag": etag}
    tx.update(ArtifactRow, artifact.id, **columns)
    if artifact.storage_key is None:
        _count(tx, 1, artifact.declared_bytes)


def verify(
    tx: Database, artifact_id: str, generation: int, *, kind: str, mime_type: str, size_bytes: int, facts: str
) -> None:
    """Store the facts about the bytes of this generation, unless newer bytes have arrived."""
    tx.execute_sql(
        """UPDATE artifact SET status = 'verified', kind = ?, mime_type = ?, size_bytes = ?, facts = ?, verified_at = ?
           WHERE id = ? AND status = 'reserved' AND stored_generation = ?""",
        (kind, mime_type, size_bytes, facts, tx.stamp, artifact_id, generation),
    )


def reject(tx: Database, artifact_id: str, generation: int, reason: str) -> bool:
    """Reject the bytes of this generation. Return False if newer bytes have arrived."""
    row = find(tx, artifact_id)
    if row is None or (row.status, row.stored_generation) != (ArtifactStatus.RESERVED, generation):
        return False
    tx.update(
        ArtifactRow, artifact_id, status=ArtifactStatus.REJECTED, reason=reason, removed_at=tx.stamp, storage_key=None
    )
    _count(tx, -1, -row.declared_bytes)
    return True


# --- unused media ----------------------------------------------------------------------------------------------------

_UNUSED = """
    (a.status = 'reserved' AND a.created_at <= ?
     OR a.status = 'rejected' AND a.created_at <= ?
     OR a.status = 'verified' AND max(a.verified_at, ifnull(a.dropped_at, '')) <= ?)
    AND NOT EXISTS (SELECT 1 FROM media m WHERE m.artifact_id = a.id)"""

_SETTLED = """
    a.status = 'verified' AND a.removed_at IS NULL AND a.verified_at <= ?
    AND EXISTS (SELECT 1 FROM media m WHERE m.artifact_id = a.id)
    AND NOT EXISTS (
        SELECT 1 FROM media m JOIN post p ON p.id = m.post_id
        WHERE m.artifact_id = a.id AND (p.status IN ('pending', 'scheduled') OR p.updated_at > ?))"""


_EARLIER_OF_OPEN = """
    (SELECT progress FROM delivery WHERE state = 'queued'
     UNION ALL SELECT progress FROM delivery WHERE state = 'running') d,
    json_each(coalesce(json_extract(d.progress, '$.earlier'), json_extract(d.progress, '$.resumes.earlier'))) e,
    json_each(e.value, '$.media') m"""
"""The media (id and alt text) with which another installation may have published open deliveries."""

_OPTIONS_OF_OPEN = """
    (SELECT options FROM delivery WHERE state = 'queued'
     UNION ALL SELECT options FROM delivery WHERE state = 'running') d, json_each(d.options) o"""
"""Every value in the options of open deliveries, including ids of artifacts."""


def drop(tx: Database, artifact_ids: Iterable[str], at: str) -> None:
    """Record that these artifacts are unused since then, unless another post uses them. Ignore unknown ids."""
    tx.many(
        "UPDATE artifact SET dropped_at = max(ifnull(dropped_at, ''), ?) WHERE id = ?",
        [(at, artifact_id) for artifact_id in sorted(artifact_ids)],
    )


def unused(reader: Database, reserved_before: str, others_before: str) -> list[str]:
    """Return the artifacts of this age that no post references."""
    rows = reader.all(f"SELECT a.id FROM artifact a WHERE {_UNUSED}", (reserved_before, others_before, others_before))
    return _without_named(reader, [row[0] for row in rows])


def delete_unused(tx: Database, artifact_ids: Sequence[str], reserved_before: str, others_before: str) -> list[str]:
    """Delete the artifacts among these that are still unused. Return the storage keys of their bytes."""
    times = (reserved_before, others_before, others_before)
    return _change_if_still(tx, artifact_ids, _UNUSED, times, "DELETE FROM artifact WHERE id = ?")


def settled(reader: Database, before: str) -> list[str]:
    """Return the artifacts with stored bytes whose posts all settled before that."""
    rows = reader.all(f"SELECT a.id FROM artifact a WHERE {_SETTLED}", (before, before))
    return _without_named(reader, [row[0] for row in rows])


def empty_settled(tx: Database, artifact_ids: Sequence[str], before: str) -> list[str]:
    """Record that the bytes of the artifacts that are still settled are removed. Return their storage keys."""
    change = "UPDATE artifact SET removed_at = ?, storage_key = NULL WHERE id = ?"
    return _change_if_still(tx, artifact_ids, _SETTLED, (before, before), change, tx.stamp)


def _change_if_still(
    tx: Database, artifact_ids: Sequence[str], condition: str, times: tuple[str, ...], change: str, *values: str
) -> list[str]:
    keys = []
    for artifact_id in _without_named(tx, artifact_ids):
        row = tx.one(f"SELECT * FROM artifact a WHERE a.id = ? AND ({condition})", (artifact_id, *times))
        if row is not None:
            tx.execute_sql(change, (*values, artifact_id))
            if row.storage_key is not None:
                _count(tx, -1, -row.declared_bytes)
                keys.append(row.storage_key)
    return keys


def _without_named(store: Database, artifact_ids: Sequence[str]) -> list[str]:
    """Leave out artifacts in the options or the earlier versions of open deliveries."""
    if not artifact_ids:
        return []
    rows = store.all(
        f"""SELECT o.value FROM {_OPTIONS_OF_OPEN}
            UNION ALL SELECT json_extract(m.value, '$[0]') FROM {_EARLIER_OF_OPEN}"""
    )
    named = {row[0] for row in rows}
    return [artifact_id for artifact_id in artifact_ids if artifact_id not in named]


LATELY_SECONDS = 31 * 86400.0


def shift_timestamps(tx: Database, seconds: float) -> None:
    """Shift the times of recent uploads after the clock was set by this number of seconds."""
    moved = SHIFTED.format("created_at")
    tx.execute_sql(f"UPDATE artifact SET created_at = {moved} WHERE status = 'reserved'", (shift_by(seconds),))
    tx.execute_sql(
        f"""UPDATE artifact
            SET verified_at = {SHIFTED.format("verified_at")}, dropped_at = {SHIFTED.format("dropped_at")}
            WHERE status = 'verified' AND removed_at IS NULL AND max(verified_at, ifnull(dropped_at, '')) > ?""",
        (shift_by(seconds), shift_by(seconds), after(tx.stamp, -abs(seconds) - LATELY_SECONDS)),
    )


# --- bytes -----------------------------------------------------------------------------------------------------------


def storage_keys(reader: Database) -> Iterator[str]:
    """Yield the storage keys of all rows, which may be many."""
    for row in reader.execute_sql("SELECT storage_key FROM artifact WHERE storage_key IS NOT NULL ORDER BY id"):
        yield row[0]


def stored(store: Database) -> tuple[int, int]:
    """Return the number of stored files, and their total declared size, which is also their real size."""
    row = store.one("SELECT files, size_bytes FROM stored_media")
    assert row is not None
    return row.files, row.size_bytes


def named_among(reader: Database, keys: Sequence[str]) -> list[str]:
    """Return the storage keys among these that a row contains."""
    rows = reader.all(f"SELECT storage_key FROM artifact WHERE storage_key IN ({placeholders(keys)})", keys)
    return [row[0] for row in rows]


def note_removed(tx: Database, storage_key: str) -> bool:
    """Record that these bytes are removed. Return False without a change if an open post needs them."""
    row = tx.one(
        f"""UPDATE artifact SET storage_key = NULL,
            removed_at = CASE status WHEN 'verified' THEN ? ELSE removed_at END,
            stored_generation = CASE status WHEN 'reserved' THEN NULL ELSE stored_generation END,
            etag = CASE status WHEN 'reserved' THEN NULL ELSE etag END
            WHERE storage_key = ? AND NOT EXISTS (SELECT 1 FROM media m JOIN post p ON p.id = m.post_id
                WHERE m.artifact_id = artifact.id AND p.status IN ('pending', 'scheduled'))
            AND id NOT IN (SELECT o.value FROM {_OPTIONS_OF_OPEN} WHERE o.type = 'text')
            RETURNING declared_bytes""",
        (tx.stamp, storage_key),
    )
    if row is not None:
        _count(tx, -1, -row[0])
    return row is not None


def _count(tx: Database, files: int, size_bytes: int) -> None:
    tx.execute_sql("UPDATE stored_media SET files = files + ?, size_bytes = size_bytes + ?", (files, size_bytes))
