"""Files of Compose: sent with the form, or uploaded earlier by the page's script.

The token is the first field, so that a forged form is refused before a file is stored. An unusable file does not stop
the other files. The script uses the steps of the API: reserve, send the bytes to the signed URL, complete. Its URLs are
relative, so that they work behind a proxy. Its errors are problem responses.
"""

import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response

from socialpub.accounts.api_keys import OWNER
from socialpub.accounts.choices import OptionChoice
from socialpub.core import units
from socialpub.core.errors import FieldCode, Forbidden, InvalidRequest, SocialpubError, UnsupportedMediaType
from socialpub.core.secrets import signed_urls
from socialpub.db.tables import artifact_rows
from socialpub.media.types import UNDECLARED, Facts, position_note
from socialpub.publishing.media import arrivals, thumbnails, uploads
from socialpub.publishing.posts.drafts import DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.api.requests import CompleteRequest, UploadRequest
from socialpub.web.dashboard.browser import forms, security
from socialpub.web.dashboard.browser.forms import Form
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.compose import option_fields
from socialpub.web.dashboard.compose.form import ComposeForm
from socialpub.web.http import limits, multipart, problems, shapes, static
from socialpub.web.http.endpoint import MULTIPART, content_type
from socialpub.web.http.limits import MAX_BODY_BYTES
from socialpub.web.http.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.http.responses import ok
from socialpub.web.http.shapes import Shape

MAX_OFFERED_IMAGES = 12
"""The owner can upload another image for the option."""
MAX_UPLOAD_REQUEST_BYTES = 64 * 1024


class FileToUpload(UploadRequest):
    mime_type: str = ""
    """Ignored."""


Work = Callable[[Runtime, Visit, Any], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """The stored files of a form: artifacts in order, messages about refused files, artifacts of options."""

    artifact_ids: list[str]
    refused: list[str]
    of_options: dict[str, str]


class FilesForm(MultipartForm):
    """Text fields after the token, and files: media and images for options.

    A browser declares a type by the name of the file, so only the bytes count.
    """

    reads_types = False

    def __init__(self, check: Callable[[str], None]) -> None:
        super().__init__()
        self._check = check
        self._is_checked = False
        self._fields: list[tuple[str, str]] = []
        self._text_bytes = 0

    @property
    def form(self) -> Form:
        return Form(self._fields)

    def is_file(self, head: PartHead) -> bool:
        if head.name != security.CSRF_FIELD and not self._is_checked:
            raise Forbidden(security.STALE)
        # An empty file field sends a part without a name.
        return head.file_name is not None and head.file_name != ""

    def check_text(self, name: str, size_bytes: int) -> None:
        super().check_text(name, self._text_bytes + size_bytes)

    def add_text(self, name: str, value: bytes) -> None:
        self._text_bytes += len(value)
        if len(self._fields) == forms.MAX_FIELDS or self._text_bytes > MAX_BODY_BYTES:
            raise InvalidRequest.at(message="This form is not valid. Reload the page and try again.")
        text = value.decode(errors="replace")
        if name == security.CSRF_FIELD:
            self._check(text)
            self._is_checked = True
        self._fields.append((name, text))

    def check_file(self, part: FormPart) -> None:
        """Accept each size here: `keep_files` reports files that are too large."""

    def finish(self) -> None:
        if not self._is_checked:
            raise Forbidden(security.STALE)


async def receive_form(rt: Runtime, visit: Visit) -> FilesForm:
    """Receive the form, for use in a `with`."""
    if content_type(visit.request) != MULTIPART:
        await limits.discard(visit.request)
        raise UnsupportedMediaType("The dashboard accepts only forms that a browser submits.")
    return await multipart.receive_form(rt, visit.request, FilesForm(visit.check_form))


async def keep_files(rt: Runtime, received: FilesForm) -> KeptFiles:
    """Create artifacts of the usable files. Raises Unavailable."""
    refused = [
        f"“{part.file_name}” may have at most {units.size(part.max_bytes)}"
        for part in received.parts
        if part.incoming is None
    ]
    taken = [part for part in received.parts if part.incoming is not None]
    results = await arrivals.examine(rt, taken, OWNER.key_id)
    files, media, of_options = [], [], {}
    for part, result in zip(taken, results, strict=True):
        if not isinstance(result, Facts):
            refused.append(f"“{part.file_name}”: {result.reason}")
            continue
        file = await arrivals.store(rt, part, result)
        files.append(file)
        if part.field.startswith(option_fields.PREFIX):
            of_options[part.field] = file.artifact_id
        else:
            media.append(file.artifact_id)
    if files:
        await rt.write_soon(uploads.insert_arrived, files)
    return KeptFiles(media, refused, of_options)


def attach(form: ComposeForm, kept: KeptFiles) -> ComposeForm:
    """Return the form with these files: media at the end, images of options in their fields."""
    media = (*form.draft.media, *(DraftMedia(artifact_id) for artifact_id in kept.artifact_ids))
    return form.with_draft(media=media, options=option_fields.with_uploads(form.options, kept.of_options))


async def attach_files(rt: Runtime, form: ComposeForm, received: FilesForm) -> ComposeForm:
    return attach(form, await keep_files(rt, received))


@dataclass(frozen=True, slots=True)
class AttachedMedia:
    """A file of the form. `fault` is the reason why the file cannot be used."""

    artifact_id: str
    alt: str
    kind: str
    file_name: str
    size_bytes: int
    seconds: float | None
    note: str | None
    fault: str | None


def list_attached(rt: Runtime, form: ComposeForm) -> list[AttachedMedia]:
    items = []
    for item in form.draft.media:
        row = artifact_rows.find(rt.db, item.artifact_id)
        kind, file_name, size_bytes, facts = "image", "removed file", 0, {}
        if row is not None:
            kind, file_name, size_bytes = row.kind or kind, row.file_name, row.size_bytes or row.declared_bytes
            facts = json.loads(row.facts or "{}")
        seconds, note, fault = facts.get("duration_seconds"), position_note(facts), uploads.explain_unusable(row)
        items.append(AttachedMedia(item.artifact_id, item.alt or "", kind, file_name, size_bytes, seconds, note, fault))
    return items


def offered_images(rt: Runtime, form: ComposeForm, chosen: Collection[str]) -> list[OptionChoice]:
    """Return images that an option can use: from the form, the chosen images, and the newest uploads."""
    named = [
        row
        for artifact_id in (*(item.artifact_id for item in form.draft.media), *chosen)
        if (row := artifact_rows.find(rt.db, artifact_id))
    ]
    images = [row for row in named if row.kind == "image" and uploads.explain_unusable(row) is None]
    choices = {row.id: OptionChoice(row.id, row.file_name) for row in images}
    for image in artifact_rows.newest_images(rt.db, MAX_OFFERED_IMAGES):
        if len(choices) < MAX_OFFERED_IMAGES:
            choices.setdefault(image.id, OptionChoice(image.id, image.file_name))
    return list(choices.values())


def only_photos(rt: Runtime, form: ComposeForm) -> bool:
    rows = [artifact_rows.find(rt.db, item.artifact_id) for item in form.draft.media]
    return {row.kind for row in rows if row is not None} == {"image"}


@page(streams=True)
async def reserve(rt: Runtime, visit: Visit) -> Response:
    """Reserve space for one file, and return the upload URL."""
    return await _answer_script(rt, visit, FileToUpload, _reserve)


@page(streams=True)
async def complete(rt: Runtime, visit: Visit) -> Response:
    """Examine the uploaded bytes and describe the file."""
    return await _answer_script(rt, visit, CompleteRequest, _complete)


async def _answer_script(rt: Runtime, visit: Visit, shape: type[Shape], work: Work) -> Response:
    try:
        visit.request.state.body_limits.max_bytes = MAX_UPLOAD_REQUEST_BYTES
        text = await visit.request.body()
        visit.check_form()
        value, mistakes = shapes.parse_json(text)
        body, more = shape.read(value)
        mistakes.merge(more.errors, more.total)
        if mistakes:
            raise mistakes.refusal()
        response = ok(orjson.dumps(await work(rt, visit, body)))
    except SocialpubError as error:
        if error.status >= 500:
            raise
        response = problems.render_problem(_for_the_owner(error), rt.settings.base_url)
    response.headers["cache-control"] = "no-store"
    return visit.with_headers(response)


def _for_the_owner(error: SocialpubError) -> SocialpubError:
    """Return the error with a message that does not mention API fields."""
    if not isinstance(error, InvalidRequest) or not error.errors:
        return error
    first = error.errors[0]
    match first.path:
        case ("fileSize",):
            detail = f"The file {first.message}."
        case ("artifactId",) if first.code is FieldCode.UPLOAD_REJECTED:
            detail = first.message.removeprefix("was rejected: ").removesuffix(" Reserve another upload")
        case ("artifactId",):
            detail = "The uploaded file is no longer available. Choose it again."
        case _:
            detail = error.detail
    return InvalidRequest(detail, error.errors, total=error.total)


async def _reserve(rt: Runtime, visit: Visit, body: FileToUpload) -> dict[str, Any]:
    artifact_id = await rt.write_soon(uploads.reserve, body.file_name, UNDECLARED, body.file_size)
    url = signed_urls.upload_url(rt.settings, rt.secrets, artifact_id, UNDECLARED, rt.now())
    return {
        "artifactId": artifact_id,
        "uploadUrl": visit.own_href(url),
        "requiredHeaders": signed_urls.required_headers(UNDECLARED),
    }


async def _complete(rt: Runtime, visit: Visit, body: CompleteRequest) -> dict[str, Any]:
    artifact = await uploads.complete(rt, body.artifact_id, OWNER.key_id)
    row = artifact_rows.find(rt.db, artifact.id)
    assert row is not None
    facts = json.loads(row.facts or "{}")
    return {
        "artifactId": artifact.id,
        "url": visit.own_href(signed_urls.media_url(rt.settings, rt.secrets, artifact.storage_key, rt.now())),
        "thumbnailUrl": visit.href(f"/artifacts/{artifact.id}/thumbnail"),
        "kind": artifact.kind,
        "mimeType": artifact.mime_type,
        "sizeBytes": artifact.size_bytes,
        "fileName": row.file_name,
        "durationSeconds": facts.get("duration_seconds"),
        "note": position_note(facts),
    }


@page()
async def thumbnail(rt: Runtime, visit: Visit) -> Response:
    """Send a JPEG of an image or of the first frame of a video, at most 320 pixels wide."""
    made = await thumbnails.load(rt, visit.params["artifactId"])
    if made is None:
        return visit.go(static.static_url("no_image.svg"))
    return visit.show_image(made)
