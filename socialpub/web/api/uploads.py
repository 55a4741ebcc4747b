"""Uploads at the door: reserved, and completed once the bytes have arrived (spec 4.3)."""

import orjson

from socialpub.accounts.api_keys import Caller
from socialpub.db.database import Tx
from socialpub.publishing import uploads
from socialpub.publishing.idempotency import Kept
from socialpub.runtime import Runtime
from socialpub.web.api.requests import CompleteRequest, UploadRequest
from socialpub.web.endpoint import Answer, Request, created, endpoint
from socialpub.web.idempotent import write_once


def _show(rt: Runtime, kept: Kept) -> Answer:
    """The reservation as it was kept, with an upload URL signed now."""
    return created(uploads.reservation(rt, *orjson.loads(kept.body)))


@endpoint(scope="write", body=UploadRequest, replay=_show)
async def reserve(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Make room for one file and say where to send it."""
    body: UploadRequest = request.body

    def keep(_rt: Runtime, _tx: Tx, artifact_id: str) -> Kept:
        return Kept(201, None, orjson.dumps([artifact_id, body.mime_type]))

    artifact_id = await write_once(rt, request, keep, uploads.reserve, body.file_name, body.mime_type, body.file_size)
    return created(uploads.reservation(rt, artifact_id, body.mime_type))


@endpoint(scope="write", body=CompleteRequest)
async def complete(rt: Runtime, caller: Caller, request: Request) -> Answer:  # noqa: ARG001
    """Examine the bytes that arrived; from then on the artifact can be used."""
    body: CompleteRequest = request.body
    return Answer(200, b'{"data":' + await uploads.complete(rt, body.artifact_id) + b"}")
