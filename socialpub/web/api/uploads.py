"""Uploads: reserve, PUT the bytes, complete, import from a URL, and GET stored files (spec 4.3, contract 10.2).

PUT and GET need a signed URL instead of a key. Pieces go directly to the disk, so memory use does not depend on the
size. A PUT that is too large or late, or signed for another purpose, is never stored. All
uploads together never use the space below the disk floor.
"""

import asyncio
from contextlib import ExitStack

import orjson
from starlette.requests import Request
from starlette.responses import Response

from socialpub.accounts.api_keys import Caller
from socialpub.core.clock import parse_id
from socialpub.core.errors import Forbidden, InvalidRequest, NotFound, PayloadTooLarge
from socialpub.core.secrets import signed_urls
from socialpub.db.connection import Database
from socialpub.db.models import ArtifactRow
from socialpub.db.tables import artifact_rows
from socialpub.media.types import canonical_type, guess_type
from socialpub.publishing.media import imports, renditions, uploads
from socialpub.publishing.media.imports import REQUEST_SECONDS, MediaUrl
from socialpub.publishing.media.uploads import VerifiedArtifact
from socialpub.publishing.posts.idempotency import StoredResponse
from socialpub.runtime import Runtime
from socialpub.web.api.requests import CompleteRequest, ImportRequest, UploadRequest
from socialpub.web.http.endpoint import content_type, endpoint, public, write_once
from socialpub.web.http.limits import RequestBody
from socialpub.web.http.long_poll import while_connected
from socialpub.web.http.responses import created, ok
from socialpub.web.http.static import FileResponse


def _render_reserved(rt: Runtime, stored: StoredResponse) -> Response:
    """Render a reservation with a newly signed upload URL."""
    return created(_render_reservation(rt, *orjson.loads(stored.body)))


@endpoint(scope="write", body=UploadRequest, replay=_render_reserved)
async def reserve(rt: Runtime, caller: Caller, request: Request) -> Response:
    body: UploadRequest = request.state.body

    def show(_rt: Runtime, _tx: Database, artifact_id: str) -> StoredResponse:
        return StoredResponse(201, None, orjson.dumps([artifact_id, body.mime_type]))

    reserved = await write_once(rt, request, show, uploads.reserve, body.file_name, body.mime_type, body.file_size)
    return _render_reserved(rt, reserved)


@endpoint(scope="write", body=CompleteRequest)
async def complete(rt: Runtime, caller: Caller, request: Request) -> Response:
    body: CompleteRequest = request.state.body
    return ok(_render_artifact(rt, await uploads.complete(rt, body.artifact_id, caller.key_id)))


# --- media by URL ----------------------------------------------------------------------------------------------------


def _render_import(rt: Runtime, stored: StoredResponse) -> Response:
    """Render an artifact with a newly signed URL."""
    return ok(_render_artifact(rt, VerifiedArtifact(**orjson.loads(stored.body))))


@endpoint(scope="write", body=ImportRequest, replay=_render_import)
async def import_url(rt: Runtime, caller: Caller, request: Request) -> Response:
    def show(_rt: Runtime, _tx: Database, artifact: VerifiedArtifact) -> StoredResponse:
        return StoredResponse(200, None, orjson.dumps(artifact))

    wanted = [MediaUrl(("url",), request.state.body.url)]
    seconds = getattr(request.state, "fetch_seconds", REQUEST_SECONDS)
    with ExitStack() as files:
        (result,) = await while_connected(request, imports.fetch(rt, wanted, files, caller.key_id, seconds=seconds))
        return _render_import(rt, await write_once(rt, request, show, imports.accept, result))


# --- responses -------------------------------------------------------------------------------------------------------


def _render_reservation(rt: Runtime, artifact_id: str, mime_type: str) -> bytes:
    declared_type = mime_type.strip().lower()
    return orjson.dumps(
        {
            "artifactId": artifact_id,
            "uploadUrl": signed_urls.upload_url(rt.settings, rt.secrets, artifact_id, declared_type, rt.clock.now()),
            "requiredHeaders": signed_urls.required_headers(declared_type),
        }
    )


def _render_artifact(rt: Runtime, artifact: VerifiedArtifact) -> bytes:
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


# --- the PUT of the bytes --------------------------------------------------------------------------------------------


async def put(request: Request) -> Response:
    rt: Runtime = request.app.state.rt
    body: RequestBody = request.state.body_limits
    row = _find_reservation(rt, request)
    _check_head(row, request)
    expected_bytes: int = row.declared_bytes
    more_bytes = expected_bytes if row.storage_key is None else 0  # a repeated PUT replaces the stored bytes
    with (
        uploads.count_arriving(rt, more_bytes),
        rt.files.receive(row.id) as incoming,
        rt.files.reservations.reserve(expected_bytes) as reservation,
    ):
        body.goes_to_file = True
        async for piece in request.stream():
            if incoming.size_bytes + len(piece) > expected_bytes:
                raise _too_many(expected_bytes)
            reservation.spend(len(piece))
            incoming.write(piece)
        if incoming.size_bytes < expected_bytes:
            raise _too_few(incoming.size_bytes, expected_bytes)
        mime_type = canonical_type(row.declared_type) or guess_type(incoming.path)
        storage_key = rt.files.new_key(row.id, mime_type)
        await asyncio.to_thread(incoming.keep, storage_key)
        replaced = await rt.write_soon(uploads.arrive, row.id, incoming, storage_key)
    if replaced is not None:
        await asyncio.to_thread(rt.files.remove, replaced)
    return Response(headers={"etag": uploads.etag(storage_key)})


def _find_reservation(rt: Runtime, request: Request) -> ArtifactRow:
    """Return the reservation of the URL. Raises Forbidden."""
    artifact_id = request.path_params["artifactId"]
    row: ArtifactRow | None = artifact_rows.find(rt.db, artifact_id) if parse_id(artifact_id) else None
    # Without a row, no signature is valid.
    declared_type = row.declared_type if row else ""
    query = request.scope["query_string"].decode("latin-1")
    signed_urls.check_upload(rt.secrets, artifact_id, declared_type, query, rt.clock.now())
    if row is None:
        raise Forbidden("The reservation has expired. Reserve the upload again.")
    return row


def _check_head(row: ArtifactRow, request: Request) -> None:
    """Compare the headers with the reservation before the body is read."""
    sent = content_type(request)
    if canonical_type(sent) != canonical_type(row.declared_type):
        was = f"is {sent[:100]}" if sent else "is missing"
        message = f"{was}, but the upload was reserved as {row.declared_type}; send requiredHeaders unchanged"
        raise InvalidRequest.at("content-type", message=message)
    uploads.check_open(row.status)
    length = request.state.body_limits.declared_bytes
    if length is not None and length > row.declared_bytes:
        raise _too_many(row.declared_bytes)
    if length is not None and length < row.declared_bytes:
        raise _too_few(length, row.declared_bytes)


def _too_many(expected_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The upload was reserved for {expected_bytes} bytes, but the request sends more.")


def _too_few(got_bytes: int, expected_bytes: int) -> InvalidRequest:
    return InvalidRequest.at(
        message=f"The upload was reserved for {expected_bytes} bytes, but the request sent only {got_bytes}."
    )


# --- the GET of a file -----------------------------------------------------------------------------------------------


@public
async def read_file(rt: Runtime, request: Request) -> Response:
    storage_key = request.path_params["key"]
    query = request.scope["query_string"].decode("latin-1")
    left_seconds = signed_urls.check_media(rt.secrets, storage_key, query, rt.clock.now())
    mime_type = artifact_rows.verified_type(rt.db, storage_key) or renditions.rendition_type(rt, storage_key)
    path = rt.files.path(storage_key)
    try:
        stat = path.stat()
    except FileNotFoundError:
        mime_type = None
    if mime_type is None:
        raise NotFound("This file no longer exists.")
    headers = {
        "etag": uploads.etag(storage_key),
        "cache-control": f"private, max-age={left_seconds}",
        # A browser must not run scripts of a file or send requests for it.
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox; default-src 'none'",
    }
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return FileResponse(path, headers=headers, media_type=mime_type, stat_result=stat)
