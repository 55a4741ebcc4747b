"""Completing an upload: what arrived is examined, and the artifact is verified or rejected.

A verdict is written only for the generation of bytes that was examined: what is verified is always one PUT, never a
mixture of two.
"""

import asyncio
import json
from dataclasses import dataclass

from socialpub.core import logging
from socialpub.core.errors import Conflict, InvalidRequest, Unavailable
from socialpub.db import artifact_rows
from socialpub.db.models import ArtifactStatus
from socialpub.db.transaction import Row, Tx
from socialpub.media import decoder_client
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing import uploads
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.artifacts")

_ROUNDS = 5
"""So often `complete` begins again because another PUT arrived while it was looking."""


@dataclass(frozen=True, slots=True)
class VerifiedArtifact:
    """An artifact that can be used, its bytes still there."""

    id: str
    storage_key: str
    verified_at: str
    kind: str
    mime_type: str
    size_bytes: int


async def complete(rt: Runtime, artifact_id: str, key_id: str) -> VerifiedArtifact:
    """Examine what arrived and settle what it is, in turn with what other keys want examined.

    Raises InvalidRequest when there is nothing to examine or it was rejected, Unavailable when it cannot be examined
    now. No transaction is open while the child looks; a verdict on bytes that were replaced meanwhile is dropped.
    """
    for _ in range(_ROUNDS):
        row = uploads.find(rt, artifact_id)
        if row is None:
            raise _failing("is not the id of an upload; take it from POST /uploads (reservations end after a day)")
        if row["status"] == ArtifactStatus.VERIFIED:
            return _verified(row)
        if row["status"] == ArtifactStatus.REJECTED:
            raise _failing(f"was rejected: {row['reason']} Reserve another upload")
        if row["storage_key"] is None:
            raise _failing("has no bytes yet; send them with one PUT to uploadUrl first")
        try:
            facts = await _examine(rt, row, key_id)
        except MediaRejected as rejected:
            if await rt.write_soon(_reject, artifact_id, row["stored_generation"], rejected.reason):
                await asyncio.to_thread(rt.files.remove, row["storage_key"])
            continue
        except (FileNotFoundError, decoder_client.DecoderFailed) as error:
            now = uploads.find(rt, artifact_id)
            if now is not None and now["stored_generation"] != row["stored_generation"]:
                continue
            if isinstance(error, FileNotFoundError):
                raise _failing("has lost its bytes; send them again with a PUT to uploadUrl") from error
            log.error("an artifact could not be examined", artifact=artifact_id, reason=str(error))
            raise Unavailable("The file cannot be examined at the moment. Send the request again.") from error
        await rt.write_soon(_verify, artifact_id, row["stored_generation"], facts)
    raise Conflict("Other bytes keep arriving for this upload. Complete it when the last PUT has been answered.")


async def _examine(rt: Runtime, row: Row, key_id: str) -> Facts:
    path = rt.files.path(row["storage_key"])
    if path.stat().st_size != row["declared_bytes"]:
        raise MediaRejected(f"The file has {path.stat().st_size} bytes; {row['declared_bytes']} were declared.")
    limits = uploads.limits(rt.settings)
    return await decoder_client.inspect_file_async(path, row["declared_type"], limits, key_id=key_id)


def _verify(rt: Runtime, tx: Tx, artifact_id: str, generation: int, facts: Facts) -> None:
    artifact_rows.verify(
        tx,
        artifact_id,
        generation,
        kind=facts.kind,
        mime_type=facts.mime_type,
        size_bytes=facts.size_bytes,
        facts=json.dumps(facts.facts),
    )


def _reject(rt: Runtime, tx: Tx, artifact_id: str, generation: int, reason: str) -> bool:
    return artifact_rows.reject(tx, artifact_id, generation, reason)


def _failing(message: str) -> InvalidRequest:
    return InvalidRequest.at("artifactId", message=message)


def _verified(row: Row) -> VerifiedArtifact:
    if row["removed_at"] is not None:
        raise _failing("names an artifact whose bytes were removed after its posts had settled; upload the file again")
    return VerifiedArtifact(
        row["id"], row["storage_key"], row["verified_at"], row["kind"], row["mime_type"], row["size_bytes"]
    )
