"""The form of a multipart `POST /posts`: one `payload` and up to 20 file parts (spec 4.2, contract 5.8)."""

from socialpub.core import sizes
from socialpub.core.errors import InvalidRequest, PayloadTooLarge, cut
from socialpub.runtime import Runtime
from socialpub.web import multipart
from socialpub.web.endpoint import PAYLOAD
from socialpub.web.multipart import FormPart, MultipartForm, PartHead
from socialpub.web.request import Request


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
        if head.file_name is None and not (head.declared_type and multipart.is_welcome(head.declared_type)):
            raise InvalidRequest.at(head.name, message=f"is not a file; the only text field of the form is {PAYLOAD}")
        return True

    def take_text(self, name: str, value: bytes) -> None:  # noqa: ARG002  there is but one
        self.payload = value

    def check_file(self, part: FormPart) -> None:
        if part.is_too_large:
            raise PayloadTooLarge(
                f"The file part {cut(part.field)!r} ({cut(part.declared_type)}) may have at most "
                f"{sizes.write(part.most_bytes)}."
            )

    def finish(self) -> None:
        if not self._has_payload:
            raise InvalidRequest.at(PAYLOAD, message="is missing: exactly one text field of this name holds the JSON")


async def read_form(rt: Runtime, request: Request) -> PayloadForm | None:
    """The form of a request, as `multipart.receive` does it."""
    return await multipart.receive(rt, request, PayloadForm())
