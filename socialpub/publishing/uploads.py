"""Artifacts: reserved, and filled by a PUT or together with a post.

Every PUT that arrived whole is a generation of its own, with a file of its own, and the row names the last one. So an
interrupted or repeated PUT harms nothing. What becomes of the bytes is decided in `upload_completion.py`; what nobody
needs any more is removed by `cleanup.py`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from socialpub.core import ids, sizes
from socialpub.core.errors import Conflict, FieldError, Forbidden, InvalidRequest
from socialpub.core.settings.loader import Settings
from socialpub.db import artifact_rows
from socialpub.db.models import ArtifactStatus
from socialpub.db.transaction import Row, Tx
from socialpub.media.incoming import IncomingFile
from socialpub.media.types import ACCEPTED_TYPES, Facts, MediaLimits, canonical_type, kind_of
from socialpub.publishing import storage_quota
from socialpub.runtime import Runtime


def limits(settings: Settings) -> MediaLimits:
    """What one file may measure here."""
    uploads = settings.uploads
    return MediaLimits(
        uploads.max_image_bytes, uploads.max_image_pixels, uploads.max_image_total_pixels, uploads.max_video_bytes
    )


def most_bytes(settings: Settings, mime_type: str) -> int:
    """How large a file of this type may be; of one that says nothing about the file, whatever it is."""
    uploads = settings.uploads
    return {
        "image": int(uploads.max_image_bytes),
        "video": int(uploads.max_video_bytes),
        None: max(uploads.max_image_bytes, uploads.max_video_bytes),
    }[kind_of(mime_type)]


# --- reserving -------------------------------------------------------------------------------------------------------


def reserve(rt: Runtime, tx: Tx, file_name: str, mime_type: str, size_bytes: int) -> str:
    """Make room for one file; the artifact's id. Raises InvalidRequest, Unavailable."""
    errors = []
    if canonical_type(mime_type) is None:
        errors.append(FieldError(("mimeType",), unaccepted(mime_type)))
    elif size_bytes > (most := most_bytes(rt.settings, mime_type)):
        kind = kind_of(mime_type)
        errors.append(
            FieldError(
                ("fileSize",), f"is {sizes.write(size_bytes)}; {kind}s may have at most {sizes.write(most)} here"
            )
        )
    if errors:
        raise InvalidRequest.of(errors)
    storage_quota.check_beside_arriving(rt, tx, size_bytes)
    artifact_id = ids.new(int(tx.now.timestamp() * 1000))
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


def unaccepted(mime_type: str) -> str:
    """The sentence for a media type that cannot be uploaded."""
    return f"{mime_type[:100]} is not accepted; accepted are {', '.join(ACCEPTED_TYPES)}"


def find(rt: Runtime, artifact_id: str) -> Row | None:
    """The artifact's row."""
    return artifact_rows.find(rt.reader, artifact_id)


def newest_images(rt: Runtime, most: int) -> list[Row]:
    """The images that were uploaded last: id and file_name."""
    return artifact_rows.newest_images(rt.reader, most)


def type_of(rt: Runtime, storage_key: str) -> str | None:
    """The media type of the verified artifact under this key, or None."""
    return artifact_rows.verified_type(rt.reader, storage_key)


# --- arriving --------------------------------------------------------------------------------------------------------


def check_open(status: str) -> None:
    """Raises Conflict when an artifact in this status takes no bytes any more."""
    if status == ArtifactStatus.VERIFIED:
        raise Conflict("The upload is complete; its bytes can no longer be replaced. Reserve another one.")
    if status == ArtifactStatus.REJECTED:
        raise Conflict("The upload was rejected. Reserve another one.")


def arrive(rt: Runtime, tx: Tx, artifact_id: str, incoming: IncomingFile, storage_key: str) -> str | None:
    """A PUT arrived whole and lies on the disk: from now on it counts. The storage key that it replaces, if any,
    is the caller's to remove. Raises Conflict, Forbidden, Unavailable."""
    row = artifact_rows.find(tx, artifact_id)
    if row is None:
        raise Forbidden("The reservation has expired. Reserve another one.")
    check_open(row["status"])
    if row["storage_key"] is None:
        storage_quota.check(rt, tx, row["declared_bytes"])
    artifact_rows.put_bytes(tx, row, storage_key, etag_of(storage_key))
    tx.after_commit(incoming.record)
    replaced: str | None = row["storage_key"]
    return replaced


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
    """Make artifacts of them, verified at once: in the write that accepts the post they came with. Raises
    Unavailable."""
    storage_quota.check(rt, tx, sum(file.facts.size_bytes for file in files))
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
