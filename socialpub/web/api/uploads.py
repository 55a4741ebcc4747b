"""The endpoints of uploads: reserve, and complete once the bytes have arrived (spec 4.3)."""

import orjson

from socialpub.accounts.api_keys import Caller
from socialpub.core.secrets import signed_urls
from socialpub.db.connection import Tx
from socialpub.publishing.media import uploads
from socialpub.publishing.media.uploads import VerifiedArtifact
from socialpub.publishing.posts.idempotency import StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.api.requests import CompleteRequest, UploadRequest
from socialpub.web.http.answer import Answer, created, ok
from socialpub.web.http.endpoint import endpoint, write_once
from socialpub.web.http.request import Request


def _replay(rt: Runtime, stored: StoredResponse) -> Answer:
    """Answer with the same reservation, and an upload URL that is signed now."""
    return created(_reservation(rt, *orjson.loads(stored.body)))


@endpoint(scope="write", body=UploadRequest, replay=_replay)
async def reserve(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Reserve room for one file and say where to send it."""
    body: UploadRequest = request.body

    def store(_rt: Runtime, _tx: Tx, artifact_id: str) -> StoredResponse:
        return StoredResponse(201, None, orjson.dumps([artifact_id, body.mime_type]))

    artifact_id = await write_once(rt, request, store, uploads.reserve, body.file_name, body.mime_type, body.file_size)
    return created(_reservation(rt, artifact_id, body.mime_type))


@endpoint(scope="write", body=CompleteRequest)
async def complete(rt: Runtime, caller: Caller, request: Request) -> Answer:
    """Examine the bytes that arrived; from then on the artifact can be used."""
    body: CompleteRequest = request.body
    return ok(_artifact(rt, await uploads.complete(rt, body.artifact_id, caller.key_id)))


def _reservation(rt: Runtime, artifact_id: str, mime_type: str) -> bytes:
    """A reservation as the API shows it (spec 2.5)."""
    declared_type = mime_type.strip().lower()
    return orjson.dumps(
        {
            "artifactId": artifact_id,
            "uploadUrl": signed_urls.upload_url(rt.settings, rt.secrets, artifact_id, declared_type, rt.clock.now()),
            "requiredHeaders": signed_urls.required_headers(declared_type),
        }
    )


def _artifact(rt: Runtime, artifact: VerifiedArtifact) -> bytes:
    """A verified artifact as the API shows it (spec 2.6)."""
    return orjson.dumps(
        {
            "artifactId": artifact.id,
            "storageKey": artifact.storage_key,
            "url": signed_urls.media_url(rt.settings, rt.secrets, artifact.storage_key, rt.clock.now()),
            "createdAt": artifact.verified_at,
            "kind": artifact.kind,
            "mimeType": artifact.mime_type,
            "sizeBytes": artifact.size_bytes,
        }
    )
