"""A form of the dashboard that brings files: checked before any of them is taken, and made artifacts of.

The token comes first in the form, so that a forged one is refused before a byte of a file is stored. One file that
cannot be used takes nothing of the rest away.
"""

from collections.abc import Callable
from dataclasses import dataclass

from socialpub.accounts.api_keys import OWNER
from socialpub.core import sizes
from socialpub.core.errors import Forbidden, InvalidRequest, SocialpubError, UnsupportedMediaType
from socialpub.media.types import Facts
from socialpub.publishing import uploads
from socialpub.runtime import Runtime
from socialpub.web import arrived_files, multipart
from socialpub.web.answer import Answer
from socialpub.web.dashboard import forgery, forms, option_fields
from socialpub.web.dashboard.forms import Form
from socialpub.web.dashboard.visit import Visit
from socialpub.web.endpoint import MULTIPART
from socialpub.web.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.request import MOST_BODY_BYTES


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """What became of the files of a form: artifacts in their order, and a sentence for each that is none. `of_options`
    are the artifacts that were uploaded for an option, by the name of the field."""

    artifact_ids: list[str]
    refused: list[str]
    of_options: dict[str, str]


class FilesForm(MultipartForm):
    """Texts of any name behind the token, and files: those named `media`, and those of options."""

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
        if head.name != forgery.FIELD and not self._is_checked:
            raise Forbidden(forgery.STALE)
        # A file field in which nothing was chosen sends a part without a name and without content.
        return head.file_name is not None and head.file_name != ""

    def check_text(self, name: str, size_bytes: int) -> None:
        super().check_text(name, self._text_bytes + size_bytes)

    def take_text(self, name: str, value: bytes) -> None:
        self._text_bytes += len(value)
        if len(self._fields) == forms.MOST_FIELDS or self._text_bytes > MOST_BODY_BYTES:
            raise InvalidRequest.at(message="This is no form that a browser makes.")
        text = value.decode(errors="replace")
        if name == forgery.FIELD:
            self._check(text)
            self._is_checked = True
        self._fields.append((name, text))

    def check_file(self, part: FormPart) -> None:
        """One that is too large is told beside the others when all have arrived."""

    def finish(self) -> None:
        if not self._is_checked:
            raise Forbidden(forgery.STALE)


async def receive(rt: Runtime, visit: Visit, refusal: Callable[[SocialpubError], Answer]) -> FilesForm | None:
    """The form, to be used in a `with`; None when it was refused, and answered, while it was arriving. Raises
    Forbidden, and what `multipart.receive` raises."""
    if visit.request.content_type != MULTIPART:
        await visit.request.finish()
        raise UnsupportedMediaType("A form of the dashboard is sent as a browser sends it.")
    return await multipart.receive(rt, visit.request, FilesForm(visit.check_form), refusal)


async def keep(rt: Runtime, received: FilesForm) -> KeptFiles:
    """Examine the files and make artifacts of those that can be used. Raises Unavailable."""
    refused = [_why_not_taken(part) for part in received.parts if part.incoming is None]
    taken = [part for part in received.parts if part.incoming is not None]
    results = await arrived_files.examine(rt, taken, OWNER.key_id)
    files, media, of_options = [], [], {}
    for part, result in zip(taken, results, strict=True):
        if not isinstance(result, Facts):
            refused.append(f"“{part.file_name}”: {result.reason}")
            continue
        file = await arrived_files.keep(rt, part, result)
        files.append(file)
        if part.field.startswith(option_fields.PREFIX):
            of_options[part.field] = file.artifact_id
        else:
            media.append(file.artifact_id)
    if files:
        await rt.write_soon(uploads.adopt, files)
    return KeptFiles(media, refused, of_options)


def _why_not_taken(part: FormPart) -> str:
    if part.is_too_large:
        return f"“{part.file_name}” may have at most {sizes.write(part.most_bytes)}"
    return f"“{part.file_name}”: {uploads.unaccepted(part.declared_type)}"
