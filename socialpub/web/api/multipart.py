"""The form of a multipart `POST /posts`: one `payload` and up to 20 file parts (spec 4.2, contract 5.8)."""

from collections.abc import Sequence

from socialpub.core import units
from socialpub.core.errors import FieldError, InvalidRequest, PayloadTooLarge, cut
from socialpub.media.types import Facts, MediaRejected
from socialpub.publishing.media import uploads
from socialpub.publishing.media.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web.http import multipart
from socialpub.web.http.endpoint import PAYLOAD
from socialpub.web.http.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.http.request import Request


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
    """Receive the form of a request (`multipart.receive_form`)."""
    return await multipart.receive_form(rt, request, PayloadForm())


async def verify_files(
    rt: Runtime, form: MultipartForm, fields: Sequence[str | None], key_id: str
) -> dict[str, Examined]:
    """Match the parts with the media items, examine them, store them under their own names, and return them by field.

    `fields` contains the `fileField` of each media item, None for an item with an `artifactId`. `posts.create` makes
    them stay. Raises InvalidRequest with every error of the first stage that fails (names, types,
    contents), and Unavailable.
    """
    paths = _match(form, fields)
    refused = [part for part in form.parts if part.incoming is None]
    if refused:
        raise InvalidRequest.of(
            [FieldError(paths[part.field], uploads.unaccepted(part.declared_type)) for part in refused]
        )
    results = await multipart.examine_files(rt, form.parts, key_id)
    errors = [
        FieldError(paths[part.field], result.reason)
        for part, result in zip(form.parts, results, strict=True)
        if isinstance(result, MediaRejected)
    ]
    if errors:
        raise InvalidRequest.of(errors)
    files = {}
    for part, result in zip(form.parts, results, strict=True):
        assert isinstance(result, Facts)
        files[part.field] = await multipart.keep_file(rt, part, result)
    return files


def _match(form: MultipartForm, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Return where the payload names each part. Raises InvalidRequest unless it names each exactly once."""
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
