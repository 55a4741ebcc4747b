"""Artifacts: reserved, filled, examined, used, forgotten.

Every PUT that arrived whole is a generation of its own, with a file of its own, and the row names the last one. So an
interrupted or repeated PUT harms nothing, and a verdict is written only for the generation that was examined: what is
verified is always one PUT, never a mixture of two.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from socialpub.core import ids, logging
from socialpub.core.clock import stamp
from socialpub.core.errors import Conflict, FieldError, Forbidden, InvalidRequest, Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.db.database import Row, Tx
from socialpub.db.models import ArtifactStatus
from socialpub.media import decoder_client
from socialpub.media.incoming import IncomingFile
from socialpub.media.types import ACCEPTED_TYPES, Facts, MediaLimits, MediaRejected, canonical_type, kind_of
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.artifacts")

_ROUNDS = 5
"""So often `complete` begins again because another PUT arrived while it was looking."""


def limits(settings: Settings) -> MediaLimits:
    """What one file may measure here."""
    uploads = settings.uploads
    return MediaLimits(
        uploads.max_image_bytes, uploads.max_image_pixels, uploads.max_image_total_pixels, uploads.max_video_bytes
    )


def most_bytes(settings: Settings, mime_type: str) -> int:
    """How large a file of this accepted type may be."""
    uploads = settings.uploads
    return uploads.max_image_bytes if kind_of(mime_type) == "image" else uploads.max_video_bytes


# --- reserving -------------------------------------------------------------------------------------------------------


def reserve(rt: Runtime, tx: Tx, file_name: str, mime_type: str, size_bytes: int) -> str:
    """Make room for one file; the artifact's id. Raises InvalidRequest."""
    errors = []
    if canonical_type(mime_type) is None:
        errors.append(FieldError(("mimeType",), unaccepted(mime_type)))
    elif size_bytes > (most := most_bytes(rt.settings, mime_type)):
        kind = kind_of(mime_type)
        errors.append(
            FieldError(("fileSize",), f"{kind}s may have at most {most} bytes here; this one has {size_bytes}")
        )
    if errors:
        raise InvalidRequest("The file cannot be accepted.", errors)
    artifact_id = ids.new(int(tx.now.timestamp() * 1000))
    tx.insert(
        "artifact",
        id=artifact_id,
        status=ArtifactStatus.RESERVED,
        file_name=file_name,
        declared_type=mime_type.strip().lower(),
        declared_bytes=size_bytes,
        created_at=tx.stamp,
    )
    return artifact_id


def unaccepted(mime_type: str) -> str:
    """The sentence for a media type that cannot be uploaded."""
    return f"{mime_type[:100]} is not accepted; accepted are {', '.join(ACCEPTED_TYPES)}"


def find(rt: Runtime, artifact_id: str) -> Row | None:
    """The artifact's row."""
    return rt.reader.one("SELECT * FROM artifact WHERE id = ?", (artifact_id,))


def type_of(rt: Runtime, storage_key: str) -> str | None:
    """The media type of the verified artifact under this key, or None."""
    mime_type: str | None = rt.reader.value(
        "SELECT mime_type FROM artifact WHERE storage_key = ? AND status = 'verified'", (storage_key,)
    )
    return mime_type


# --- arriving --------------------------------------------------------------------------------------------------------


def check_open(status: str) -> None:
    """Raises Conflict when an artifact in this status takes no bytes any more."""
    if status == ArtifactStatus.VERIFIED:
        raise Conflict("The upload is complete; its bytes can no longer be replaced. Reserve another one.")
    if status == ArtifactStatus.REJECTED:
        raise Conflict("The upload was rejected. Reserve another one.")


def arrive(rt: Runtime, tx: Tx, artifact_id: str, incoming: IncomingFile, storage_key: str) -> str | None:
    """A PUT arrived whole and lies on the disk: from now on it counts. The storage key that it replaces, if any,
    is the caller's to remove. Raises Conflict, Forbidden."""
    row = tx.one("SELECT status, generation, storage_key FROM artifact WHERE id = ?", (artifact_id,))
    if row is None:
        raise Forbidden("The reservation has expired. Reserve another one.")
    check_open(row["status"])
    generation = row["generation"] + 1
    tx.update(
        "artifact",
        artifact_id,
        generation=generation,
        stored_generation=generation,
        storage_key=storage_key,
        etag=etag_of(storage_key),
    )
    tx.after_commit(incoming.record)
    replaced: str | None = row["storage_key"]
    return replaced


# --- examining -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifiedArtifact:
    """An artifact that can be used, its bytes still there."""

    id: str
    storage_key: str
    verified_at: str
    kind: str
    mime_type: str
    size_bytes: int


async def complete(rt: Runtime, artifact_id: str) -> VerifiedArtifact:
    """Examine what arrived and settle what it is.

    Raises InvalidRequest when there is nothing to examine or it was rejected, Unavailable when it cannot be examined
    now. No transaction is open while the child looks; a verdict on bytes that were replaced meanwhile is dropped.
    """
    for _ in range(_ROUNDS):
        row = find(rt, artifact_id)
        if row is None:
            raise _failing("is not the id of an upload; take it from POST /uploads (reservations end after a day)")
        if row["status"] == ArtifactStatus.VERIFIED:
            return _verified(row)
        if row["status"] == ArtifactStatus.REJECTED:
            raise _failing(f"was rejected: {row['reason']} Reserve another upload")
        if row["storage_key"] is None:
            raise _failing("its bytes have not arrived; send them with one PUT to uploadUrl first")
        try:
            facts = await _examine(rt, row)
        except MediaRejected as rejected:
            if await rt.write_soon(_reject, artifact_id, row["stored_generation"], rejected.reason):
                await asyncio.to_thread(rt.files.remove, row["storage_key"])
            continue
        except (FileNotFoundError, decoder_client.DecoderFailed) as error:
            now = find(rt, artifact_id)
            if now is not None and now["stored_generation"] != row["stored_generation"]:
                continue
            if isinstance(error, FileNotFoundError):
                raise _failing("its bytes are gone; send them again with a PUT to uploadUrl") from error
            log.error("an artifact could not be examined", artifact=artifact_id, reason=str(error))
            raise Unavailable("The file cannot be examined at the moment. Send the request again.") from error
        await rt.write_soon(_verify, artifact_id, row["stored_generation"], facts)
    raise Conflict("Other bytes keep arriving for this upload. Complete it when the last PUT has been answered.")


async def _examine(rt: Runtime, row: Row) -> Facts:
    path = rt.files.path(row["storage_key"])
    if path.stat().st_size != row["declared_bytes"]:
        raise MediaRejected(f"The file has {path.stat().st_size} bytes; {row['declared_bytes']} were declared.")
    return await decoder_client.inspect_file_async(path, row["declared_type"], limits(rt.settings))


def _verify(rt: Runtime, tx: Tx, artifact_id: str, generation: int, facts: Facts) -> None:
    tx.execute(
        """UPDATE artifact SET status = ?, kind = ?, mime_type = ?, size_bytes = ?, facts = ?, verified_at = ?
           WHERE id = ? AND status = ? AND stored_generation = ?""",
        (
            ArtifactStatus.VERIFIED,
            facts.kind,
            facts.mime_type,
            facts.size_bytes,
            json.dumps(facts.facts),
            tx.stamp,
            artifact_id,
            ArtifactStatus.RESERVED,
            generation,
        ),
    )


def _reject(rt: Runtime, tx: Tx, artifact_id: str, generation: int, reason: str) -> bool:
    """Whether it was this generation's verdict that was written."""
    changed = tx.execute(
        """UPDATE artifact SET status = ?, reason = ?, removed_at = ?, storage_key = NULL
           WHERE id = ? AND status = ? AND stored_generation = ?""",
        (ArtifactStatus.REJECTED, reason, tx.stamp, artifact_id, ArtifactStatus.RESERVED, generation),
    )
    return changed.rowcount == 1


def _failing(message: str) -> InvalidRequest:
    return InvalidRequest.at("artifactId", message=message)


def _verified(row: Row) -> VerifiedArtifact:
    if row["removed_at"] is not None:
        raise _failing("its bytes were removed after its posts had settled; upload the file again")
    return VerifiedArtifact(
        row["id"], row["storage_key"], row["verified_at"], row["kind"], row["mime_type"], row["size_bytes"]
    )


# --- arriving together with a post -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examined:
    """A file that came with a post: examined, on the disk under its own name, and named by no row yet."""

    artifact_id: str
    file_name: str
    declared_type: str
    storage_key: str
    facts: Facts
    incoming: IncomingFile


def adopt(rt: Runtime, tx: Tx, files: Sequence[Examined]) -> None:
    """Make artifacts of them, verified at once: in the write that accepts the post they came with."""
    for file in files:
        tx.insert(
            "artifact",
            id=file.artifact_id,
            status=ArtifactStatus.VERIFIED,
            file_name=file.file_name,
            declared_type=file.declared_type,
            declared_bytes=file.facts.size_bytes,
            created_at=tx.stamp,
            generation=1,
            stored_generation=1,
            etag=etag_of(file.storage_key),
            kind=file.facts.kind,
            mime_type=file.facts.mime_type,
            size_bytes=file.facts.size_bytes,
            storage_key=file.storage_key,
            facts=json.dumps(file.facts.facts),
            verified_at=tx.stamp,
        )
        tx.after_commit(file.incoming.record)


def etag_of(storage_key: str) -> str:
    """A strong ETag: a storage key never gets other bytes."""
    return f'"{storage_key.rpartition("/")[2].partition(".")[0][-16:]}"'


# --- forgetting ------------------------------------------------------------------------------------------------------

_FORGOTTEN = """
    (a.status = 'reserved' AND a.created_at <= ?
     OR a.status = 'rejected' AND a.created_at <= ?
     OR a.status = 'verified' AND a.verified_at <= ?)
    AND NOT EXISTS (SELECT 1 FROM media m WHERE m.artifact_id = a.id)"""

_EMPTIED = """
    a.status = 'verified' AND a.removed_at IS NULL AND a.verified_at <= ?
    AND EXISTS (SELECT 1 FROM media m WHERE m.artifact_id = a.id)
    AND NOT EXISTS (
        SELECT 1 FROM media m JOIN post p ON p.id = m.post_id
        WHERE m.artifact_id = a.id AND (p.status IN ('pending', 'scheduled') OR p.updated_at > ?))"""

_AT_ONCE = 100


def clean(rt: Runtime) -> int:
    """Remove what nobody needs any more: old reservations, artifacts that no post references, bytes of settled posts if
    the owner wants that, and files that no row names. How many files went. May take long: not on the event loop."""
    now, uploads, keep = rt.clock.now(), rt.settings.uploads, rt.settings.media.keep_after_settled
    reserved, unused = stamp(now - uploads.reservation_lifetime), stamp(now - uploads.unreferenced_lifetime)
    removed = _clean(rt, _FORGOTTEN, (reserved, unused, unused), "DELETE FROM artifact WHERE id = ?")
    if keep is not None:
        settled = stamp(now - keep)
        gone = "UPDATE artifact SET removed_at = ?, storage_key = NULL WHERE id = ?"
        removed += _clean(rt, _EMPTIED, (settled, settled), gone, rt.stamp())
    return removed + rt.files.remove_orphans(lambda keys: _recorded(rt, keys))


def _clean(rt: Runtime, condition: str, times: tuple[str, ...], change: str, *values: str) -> int:
    """Change every row for which `condition` holds, then remove its file."""
    # Finding them may take long and is a read; only what was found is asked again inside the short writes.
    found = [row[0] for row in rt.reader.all(f"SELECT a.id FROM artifact a WHERE {condition}", times)]
    removed = 0
    for start in range(0, len(found), _AT_ONCE):
        some = found[start : start + _AT_ONCE]
        for storage_key in rt.write(_change_if_still, some, condition, times, change, values):
            rt.files.remove(storage_key)
            removed += 1
    return removed


def _change_if_still(
    rt: Runtime,
    tx: Tx,
    found: list[str],
    condition: str,
    times: tuple[str, ...],
    change: str,
    values: tuple[str, ...],
) -> list[str]:
    keys = []
    for artifact_id in found:
        row = tx.one(
            f"SELECT a.storage_key FROM artifact a WHERE a.id = ? AND ({condition})",
            (artifact_id, *times),
        )
        if row is not None:
            tx.execute(change, (*values, artifact_id))
            if row["storage_key"] is not None:
                keys.append(row["storage_key"])
    return keys


def _recorded(rt: Runtime, keys: list[str]) -> list[str]:
    marks = ",".join("?" * len(keys))
    rows = rt.reader.all(f"SELECT storage_key FROM artifact WHERE storage_key IN ({marks})", keys)
    return [row[0] for row in rows]
