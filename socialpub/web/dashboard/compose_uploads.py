"""`/compose/uploads`: files that the script of Compose sends one by one, before the form is sent.

As in the API a file is reserved, its bytes go straight to the signed address, and it is completed. Addresses are
relative to the one that was asked: they hold whichever way the browser came here. Failures are problems, for a script.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from socialpub.accounts.api_keys import OWNER
from socialpub.core import signed_urls
from socialpub.core.errors import InvalidRequest, SocialpubError
from socialpub.publishing import upload_completion, uploads
from socialpub.runtime import Runtime
from socialpub.web import json_body, problems
from socialpub.web.answer import Answer, ok
from socialpub.web.api.requests import CompleteRequest, UploadRequest
from socialpub.web.dashboard.page import check_header, page
from socialpub.web.dashboard.visit import Visit
from socialpub.web.shapes import Shape

MOST_BYTES = 64 * 1024

Work = Callable[[Runtime, Visit, Any], Awaitable[dict[str, Any]]]


@page(streams=True)
async def reserve(rt: Runtime, visit: Visit) -> Answer:
    """Make room for one file, and say where its bytes go."""
    return await _answer(rt, visit, UploadRequest, _reserve)


@page(streams=True)
async def complete(rt: Runtime, visit: Visit) -> Answer:
    """Examine the bytes that arrived. Of a file that is verified already it tells what it is."""
    return await _answer(rt, visit, CompleteRequest, _complete)


async def _answer(rt: Runtime, visit: Visit, shape: type[Shape], work: Work) -> Answer:
    try:
        visit.request.most_body_bytes = MOST_BYTES
        text = await visit.request.read()
        check_header(visit)
        value, mistakes = json_body.parse(text)
        body, more = shape.read(value)
        mistakes.merge(more.errors, more.total)
        if mistakes:
            raise mistakes.refusal()
        answer = ok(orjson.dumps(await work(rt, visit, body)))
    except SocialpubError as error:
        if error.status >= 500:
            raise
        answer = problems.render(_in_words(error), rt.settings.base_url)
    return answer._replace(headers=(*answer.headers, *visit.headers, (b"cache-control", b"no-store")))


def _in_words(error: SocialpubError) -> SocialpubError:
    """The same with a detail for whoever chose the file: nothing of requests and their fields."""
    if not isinstance(error, InvalidRequest) or not error.errors:
        return error
    first = error.errors[0]
    match first.path:
        case ("fileSize",):
            detail = f"The file {first.message}."
        case ("mimeType",):
            detail = f"{first.message}."
        case ("artifactId",) if " was rejected: " in f" {first.message}":
            detail = first.message.removeprefix("was rejected: ").removesuffix(" Reserve another upload")
        case ("artifactId",):
            detail = "The uploaded file is not here any more. Choose it again."
        case _:
            detail = error.detail
    return InvalidRequest(detail, error.errors, total=error.total)


async def _reserve(rt: Runtime, visit: Visit, body: UploadRequest) -> dict[str, Any]:
    artifact_id = await rt.write_soon(uploads.reserve, body.file_name, body.mime_type, body.file_size)
    declared_type = body.mime_type.strip().lower()
    url = signed_urls.upload_url(rt.settings, rt.secrets, artifact_id, declared_type, rt.now())
    return {
        "artifactId": artifact_id,
        "uploadUrl": visit.own_href(url),
        "requiredHeaders": signed_urls.required_headers(declared_type),
    }


async def _complete(rt: Runtime, visit: Visit, body: CompleteRequest) -> dict[str, Any]:
    artifact = await upload_completion.complete(rt, body.artifact_id, OWNER.key_id)
    row = uploads.find(rt, artifact.id)
    assert row is not None
    return {
        "artifactId": artifact.id,
        "url": visit.own_href(signed_urls.media_url(rt.settings, rt.secrets, artifact.storage_key, rt.now())),
        "thumbnailUrl": visit.href(f"/artifacts/{artifact.id}/thumbnail"),
        "kind": artifact.kind,
        "mimeType": artifact.mime_type,
        "sizeBytes": artifact.size_bytes,
        "fileName": row["file_name"],
        "durationSeconds": json.loads(row["facts"] or "{}").get("duration_seconds"),
    }
