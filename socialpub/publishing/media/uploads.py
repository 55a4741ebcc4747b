"""Uploads: reserve an artifact, receive its file by a PUT or with a post, verify it, and keep the storage quota.

Each whole PUT is a generation with its own file, and the row refers to the last generation, so a repeated PUT is
harmless. A verdict is stored only for the examined generation. The write that counts a file also checks the quota.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from socialpub.core import logging, units
from socialpub.core.clock import new_id
from socialpub.core.errors import Conflict, FieldCode, FieldError, Forbidden, InvalidRequest, Unavailable
from socialpub.core.settings.loader import Settings
from socialpub.db.connection import Database
from socialpub.db.models import ArtifactRow
from socialpub.db.states import ArtifactStatus
from socialpub.db.tables import artifact_rows
from socialpub.media.decoder import client
from socialpub.media.files import IncomingFile
from socialpub.media.types import (
    ACCEPTED_TYPES,
    Facts,
    MediaLimits,
    MediaRejected,
    canonical_type,
    how_to_convert,
    is_undeclared,
    media_kind,
)
from socialpub.runtime import Runtime

# --- quota -----------------------------------------------------------------------------------------------------------

QUOTA_RETRY_SECONDS = 3600
"""Unused files are removed hourly."""


def check_quota(rt: Runtime, db: Database, size_bytes: int, beside_bytes: int = 0) -> None:
    """Raise Unavailable unless these bytes can be stored. `beside_bytes` are arriving and not counted yet."""
    quota = rt.settings.storage.quota
    if quota is None or not size_bytes:
        return
    used = artifact_rows.stored(db)[1] + beside_bytes
    if used + size_bytes > quota:
        raise Unavailable(
            f"Media storage is full: {units.size(used)} of {units.size(quota)} used (storage.quota). "
            f"The new files need {units.size(size_bytes)}. Raise storage.quota, or set "
            "media.keep_after_settled to remove the files of settled posts. Posts without new files are accepted.",
            retry_after_seconds=QUOTA_RETRY_SECONDS,
        )


def check_quota_with_arriving(rt: Runtime, db: Database, size_bytes: int) -> None:
    """Check the quota before the bytes arrive. Arriving bytes count as stored. Raises Unavailable."""
    check_quota(rt, db, size_bytes, rt.media.arriving_bytes)


@contextmanager
def count_arriving(rt: Runtime, size_bytes: int) -> Iterator[None]:
    """Count these bytes as stored while they arrive. Only on the event loop. Raises Unavailable."""
    check_quota_with_arriving(rt, rt.db, size_bytes)
    with rt.media.count_arriving(size_bytes):
        yield


# --- limits of one file ----------------------------------------------------------------------------------------------


def media_limits(settings: Settings) -> MediaLimits:
    uploads = settings.uploads
    return MediaLimits(
        uploads.max_image_bytes, uploads.max_image_pixels, 5 * uploads.max_image_pixels, uploads.max_video_bytes
    )


def max_bytes(settings: Settings, mime_type: str) -> int:
    """Return the size limit of this type. An unspecific type has the largest limit."""
    uploads = settings.uploads
    return {
        "image": int(uploads.max_image_bytes),
        "video": int(uploads.max_video_bytes),
        None: max(uploads.max_image_bytes, uploads.max_video_bytes),
    }[media_kind(mime_type)]


# --- reserving -------------------------------------------------------------------------------------------------------


def reserve(rt: Runtime, tx: Database, file_name: str, mime_type: str, size_bytes: int) -> str:
    """Reserve an artifact for one file. Return its id. For `UNDECLARED`, the bytes decide.

    Raises InvalidRequest, Unavailable.
    """
    errors = []
    if canonical_type(mime_type) is None and not is_undeclared(mime_type):
        errors.append(FieldError(("mimeType",), explain_unaccepted(mime_type)))
    elif size_bytes > (most := max_bytes(rt.settings, mime_type)):
        kind = media_kind(mime_type) or "file"
        errors.append(
            FieldError(("fileSize",), f"is {units.size(size_bytes)}; the limit for {kind}s is {units.size(most)}")
        )
    if errors:
        raise InvalidRequest.from_errors(errors)
    check_quota_with_arriving(rt, tx, size_bytes)
    artifact_id = new_id(tx.now)
    artifact_rows.insert(
        tx,
        id=artifact_id,
        status=ArtifactStatus.RESERVED,
        file_name=file_name,
        declared_type=mime_type.strip().lower(),
        declared_bytes=size_bytes,
        created_at=tx.stamp,
    )
    return artifact_id


def explain_unaccepted(mime_type: str) -> str:
    hint = how_to_convert(mime_type).rstrip(".")
    return f"{mime_type[:100]} is not accepted; use one of {', '.join(ACCEPTED_TYPES)}{hint and f'.{hint}'}"


def explain_unusable(artifact: ArtifactRow | None) -> str | None:
    """Return the reason why posts cannot use this artifact. None: posts can use it."""
    if artifact is None:
        return "is not the id of an artifact; reserve and complete an upload first"
    if artifact.status != "verified":
        return f"refers to an artifact that is {artifact.status}; use a verified artifact"
    return (
        None if artifact.removed_at is None else "refers to an artifact whose bytes were removed; upload the file again"
    )


# --- arriving --------------------------------------------------------------------------------------------------------


def check_open(status: str) -> None:
    """Raise Conflict if an artifact in this status does not accept bytes."""
    if status == ArtifactStatus.VERIFIED:
        raise Conflict("The upload is complete. Its bytes can no longer be replaced. Reserve another upload.")
    if status == ArtifactStatus.REJECTED:
        raise Conflict("The upload was rejected. Reserve another upload.")


def arrive(rt: Runtime, tx: Database, artifact_id: str, incoming: IncomingFile, storage_key: str) -> str | None:
    """Store that a whole PUT arrived. Return the replaced storage key, whose file the caller removes.

    Raises Conflict, Forbidden, Unavailable.
    """
    row = artifact_rows.find(tx, artifact_id)
    if row is None:
        raise Forbidden("The reservation has expired. Reserve another upload.")
    check_open(row.status)
    if row.storage_key is None:
        check_quota(rt, tx, row.declared_bytes)
    artifact_rows.put_bytes(tx, row, storage_key, etag(storage_key))
    tx.call_after_commit(incoming.record)
    replaced: str | None = row.storage_key
    return replaced


# --- arriving together with a post -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Examined:
    """An examined file that came with a post. It has no row yet."""

    artifact_id: str
    file_name: str
    declared_type: str
    storage_key: str
    facts: Facts
    incoming: IncomingFile


def insert_arrived(rt: Runtime, tx: Database, files: Sequence[Examined]) -> None:
    """Insert verified artifacts in the write that accepts their post. Raises Unavailable."""
    check_quota(rt, tx, sum(file.facts.size_bytes for file in files))
    for file in files:
        artifact_rows.insert(
            tx,
            id=file.artifact_id,
            status=ArtifactStatus.VERIFIED,
            file_name=file.file_name,
            declared_type=file.declared_type,
            declared_bytes=file.facts.size_bytes,
            created_at=tx.stamp,
            generation=1,
            stored_generation=1,
            etag=etag(file.storage_key),
            kind=file.facts.kind,
            mime_type=file.facts.mime_type,
            size_bytes=file.facts.size_bytes,
            storage_key=file.storage_key,
            facts=json.dumps(file.facts.facts),
            verified_at=tx.stamp,
        )
        tx.call_after_commit(file.incoming.record)


def etag(storage_key: str) -> str:
    """Return a strong ETag. The bytes of a storage key never change."""
    return f'"{storage_key.rpartition("/")[2].partition(".")[0][-16:]}"'


# --- completing ------------------------------------------------------------------------------------------------------

log = logging.get_logger(__name__)

_MAX_ROUNDS = 5
"""The maximum number of times that `complete` starts again after another PUT arrived during the examination."""


@dataclass(frozen=True, slots=True)
class VerifiedArtifact:
    """A usable artifact."""

    id: str
    storage_key: str
    verified_at: str
    kind: str
    mime_type: str
    size_bytes: int


async def complete(rt: Runtime, artifact_id: str, key_id: str) -> VerifiedArtifact:
    """Examine the file and store the verdict. API keys take turns.

    Raises InvalidRequest when the file is missing or rejected, Unavailable when it cannot be examined now.
    """
    for _ in range(_MAX_ROUNDS):
        row = artifact_rows.find(rt.db, artifact_id)
        if row is None:
            raise _failing("is not the id of an upload; use an id from POST /uploads (reservations expire after a day)")
        if row.status == ArtifactStatus.VERIFIED:
            return _verified_artifact(row)
        if row.status == ArtifactStatus.REJECTED:
            raise _failing(f"was rejected: {row.reason} Reserve another upload", FieldCode.UPLOAD_REJECTED)
        if row.storage_key is None:
            raise _failing("does not have bytes yet; first send the bytes with one PUT to uploadUrl")
        try:
            facts = await _examine(rt, row, key_id)
        except MediaRejected as rejected:
            if await rt.write_soon(_reject, artifact_id, row.stored_generation, rejected.reason):
                await asyncio.to_thread(rt.files.remove, row.storage_key)
            continue
        except (FileNotFoundError, client.DecoderFailed) as error:
            now = artifact_rows.find(rt.db, artifact_id)
            if now is not None and now.stored_generation != row.stored_generation:
                continue
            if isinstance(error, FileNotFoundError):
                raise _failing("has lost its bytes; send the bytes again with a PUT to uploadUrl") from error
            log.error("an artifact could not be examined", artifact=artifact_id, reason=str(error))
            raise Unavailable("The file cannot be examined at the moment. Send the request again.") from error
        await rt.write_soon(_verify, artifact_id, row.stored_generation, facts)
    raise Conflict("New bytes keep arriving for this upload. Complete the upload after the last PUT has ended.")


async def _examine(rt: Runtime, row: Any, key_id: str) -> Facts:
    path = rt.files.path(row.storage_key)
    if path.stat().st_size != row.declared_bytes:
        raise MediaRejected(f"The file has {path.stat().st_size} bytes; {row.declared_bytes} were declared.")
    limits = media_limits(rt.settings)
    declared = None if is_undeclared(row.declared_type) else row.declared_type
    return await client.inspect_file_async(path, declared, limits, key_id=key_id)


def _verify(rt: Runtime, tx: Database, artifact_id: str, generation: int, found: Facts) -> None:
    columns = {"kind": found.kind, "mime_type": found.mime_type, "facts": json.dumps(found.facts)}
    artifact_rows.verify(tx, artifact_id, generation, size_bytes=found.size_bytes, **columns)


def _reject(rt: Runtime, tx: Database, artifact_id: str, generation: int, reason: str) -> bool:
    return artifact_rows.reject(tx, artifact_id, generation, reason)


def _failing(message: str, code: FieldCode | None = None) -> InvalidRequest:
    return InvalidRequest.from_errors([FieldError(("artifactId",), message, code)])


def get_verified(db: Database, artifact_id: str) -> VerifiedArtifact:
    """Return an artifact that is verified. Raises InvalidRequest if its bytes were removed."""
    row = artifact_rows.find(db, artifact_id)
    assert row is not None
    return _verified_artifact(row)


def _verified_artifact(row: Any) -> VerifiedArtifact:
    if row.removed_at is not None:
        raise _failing(
            "refers to an artifact whose bytes were removed after its posts had settled; upload the file again"
        )
    return VerifiedArtifact(row.id, row.storage_key, row.verified_at, row.kind, row.mime_type, row.size_bytes)
