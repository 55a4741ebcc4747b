"""Multipart `POST /posts`: a post and its files in one request, all of it or nothing (spec 4.2, contract 5.8)."""

from collections.abc import Mapping, Sequence

from socialpub.accounts.api_keys import Caller
from socialpub.core import units
from socialpub.core.errors import FieldError, InvalidRequest, PayloadTooLarge, cut
from socialpub.db.connection import Tx
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing.media import uploads
from socialpub.publishing.media.uploads import Examined
from socialpub.publishing.posts import posts
from socialpub.publishing.posts.drafts import Draft, DraftMedia
from socialpub.runtime import Runtime
from socialpub.web.api.drafts import accept, be_strict, to_options
from socialpub.web.api.requests import FormDraft
from socialpub.web.http import multipart
from socialpub.web.http.answer import Answer
from socialpub.web.http.endpoint import PAYLOAD, FormBody
from socialpub.web.http.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.http.request import Request

# MERGED from web/api/multipart.py: The form of a multipart `POST /posts`: one `payload` and up to 20 file parts (s


class PayloadForm(MultipartForm):
    """Every file has a name of its own, and the payload says what it is for."""

    def __init__(self) -> None:
        super().__init__()
        self.payload = b""
        """The JSON, not yet parsed."""
        self._has_payload = False

    def is_file(self, head: PartHead) -> bool:
        if head.name == PAYLOAD:
            if self._has_payload:
                raise InvalidRequest.at(PAYLOAD, message="appears twice; only one text field of this name is accepted")
            self._has_payload = True
            return False
        if head.file_name is None and not (head.declared_type and multipart.is_accepted_type(head.declared_type)):
            raise InvalidRequest.at(head.name, message=f"is not a file; the only text field of the form is {PAYLOAD}")
        return True

    def take_text(self, name: str, value: bytes) -> None:  # noqa: ARG002  there is but one
        self.payload = value

    def check_file(self, part: FormPart) -> None:
        if part.is_too_large:
            raise PayloadTooLarge(
                f"The file part {cut(part.field)!r} ({cut(part.declared_type)}) may have at most "
                f"{units.size(part.most_bytes)}."
            )

    def finish(self) -> None:
        if not self._has_payload:
            raise InvalidRequest.at(PAYLOAD, message="is missing: exactly one text field of this name holds the JSON")


async def read_form(rt: Runtime, request: Request) -> PayloadForm | None:
    """The form of a request, as `multipart.receive` does it."""
    return await multipart.receive_form(rt, request, PayloadForm())


# MERGED from web/api/multipart_files.py: The file parts of a form: matched with the media items that name them, ex


async def verify_files(
    rt: Runtime, form: MultipartForm, fields: Sequence[str | None], key_id: str
) -> dict[str, Examined]:
    """Match the parts with the media items, examine them, and have them on the disk under their own names.

    `fields` holds the `fileField` of each media item, None for one that has an `artifactId`. Returns the files by
    field; `uploads.adopt` makes them stay. Raises InvalidRequest with all that is wrong at the first stage that fails
    (names, types, contents), and Unavailable.
    """
    paths = _match(form, fields)
    errors = [
        FieldError(paths[part.field], uploads.unaccepted(part.declared_type))
        for part in form.parts
        if part.incoming is None
    ]
    if errors:
        raise _unacceptable(errors)
    results = await multipart.examine_files(rt, form.parts, key_id)
    errors = [
        FieldError(paths[part.field], result.reason)
        for part, result in zip(form.parts, results, strict=True)
        if isinstance(result, MediaRejected)
    ]
    if errors:
        raise _unacceptable(errors)
    files = {}
    for part, result in zip(form.parts, results, strict=True):
        assert isinstance(result, Facts)
        files[part.field] = await multipart.keep_file(rt, part, result)
    return files


def _match(form: MultipartForm, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Where in the payload each part is named. Raises InvalidRequest unless each is named exactly once."""
    paths: dict[str, tuple[str | int, ...]] = {}
    errors = []
    names = [part.field for part in form.parts]
    for index, name in enumerate(fields):
        if name is None:
            continue
        path = ("media", index, "fileField")
        if name in paths:
            errors.append(FieldError(path, f"names {cut(name)!r}, as an earlier media item does already"))
        elif names.count(name) == 0:
            errors.append(FieldError(path, f"names {cut(name)!r}, and the form has no such file part"))
        elif names.count(name) > 1:
            errors.append(
                FieldError(
                    path,
                    f"names {cut(name)!r}. The form has {names.count(name)} file parts of this name; names must differ",
                )
            )
        paths.setdefault(name, path)
    errors += [
        FieldError(("media",), f"has no item that names the file part {cut(name)!r}")
        for name in dict.fromkeys(names)
        if name not in paths
    ]
    if errors:
        raise InvalidRequest.of(errors)
    return paths


def _unacceptable(errors: Sequence[FieldError]) -> InvalidRequest:
    return InvalidRequest.of(errors)


# MERGED from web/api/multipart_posts.py: Multipart `POST /posts`: a post and its files in one request, all of it o


async def create_from_form(rt: Runtime, caller: Caller, request: Request, form: PayloadForm) -> Answer:
    """Accept a post together with its files."""
    body: FormDraft = request.body
    fields = [item.file_field for item in body.media or ()]
    files = await verify_files(rt, form, fields, caller.key_id)
    draft = _to_draft(body, files)
    await be_strict(rt, request, draft, caller)
    return await accept(rt, request, _write_post, list(files.values()), draft, caller)


MULTIPART_POST = FormBody(read=read_form, shape=FormDraft, handler=create_from_form)


def _write_post(rt: Runtime, tx: Tx, files: Sequence[Examined], draft: Draft, caller: Caller) -> str:
    uploads.adopt(rt, tx, files)
    return posts.create(rt, tx, draft, caller)


def _to_draft(body: FormDraft, files: Mapping[str, Examined]) -> Draft:
    arriving = [(item, files[item.file_field] if item.file_field else None) for item in body.media or ()]
    media = tuple(DraftMedia(file.artifact_id if file else item.artifact_id, item.alt, file) for item, file in arriving)
    return Draft(
        body=body.post.body,
        scheduled_at=body.post.scheduled_at,
        profiles=tuple(body.profiles),
        media=media,
        options=to_options(body.provider_options),
    )
