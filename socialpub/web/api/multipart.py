"""A multipart form on its way in: one `payload` and up to 20 file parts (spec 4.2, contract 5.8).

Parts go to the disk as they come, hashed on the way, and nothing of them stays unless the post that they came with is
accepted: leaving the `with` around a form leaves no stray file behind.
"""

import hashlib
import sys
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from types import TracebackType

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from socialpub.core import sizes
from socialpub.core.errors import InvalidRequest, PayloadTooLarge, SocialpubError
from socialpub.media.disk_promises import DiskPromise
from socialpub.media.incoming import IncomingFile
from socialpub.media.types import canonical_type, is_undeclared
from socialpub.publishing import uploads
from socialpub.runtime import Runtime
from socialpub.web.api.requests import MOST_MEDIA
from socialpub.web.endpoint import PAYLOAD
from socialpub.web.request import MOST_BODY_BYTES, Request
from socialpub.web.stream import RequestStream

LONGEST_FILE_NAME = 255


@dataclass(slots=True)
class FormPart:
    """One file part. `incoming` is None when its declared type is not accepted; then nothing of it was stored."""

    field: str
    file_name: str
    declared_type: str
    incoming: IncomingFile | None
    promise: DiskPromise
    most_bytes: int
    size_bytes: int = 0
    _sha256: "hashlib._Hash" = dataclass_field(default_factory=hashlib.sha256)

    @property
    def declared(self) -> str | None:
        """The type that the sender says the file has, if any."""
        return None if is_undeclared(self.declared_type) else self.declared_type

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def add(self, data: bytes) -> None:
        """Take the next bytes. Raises PayloadTooLarge, Unavailable."""
        self.size_bytes += len(data)
        if self.size_bytes > self.most_bytes:
            raise PayloadTooLarge(
                f"The file part {self.field!r} ({self.declared_type}) may have at most {sizes.write(self.most_bytes)}."
            )
        self._sha256.update(data)
        if self.incoming is not None:
            self.promise.spend(len(data))
            self.incoming.write(data)


class MultipartForm:
    """What arrived. Leaving the `with` removes every file that no row names."""

    def __init__(self) -> None:
        self.payload = b""
        """The JSON, not yet parsed."""
        self.parts: list[FormPart] = []

    @property
    def fingerprints(self) -> list[tuple[str, str, str]]:
        """Field name, declared type and SHA-256 of each file part: what makes two forms the same."""
        return [(part.field, part.declared_type, part.sha256) for part in self.parts]

    def __enter__(self) -> "MultipartForm":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self.parts:
            if part.incoming is not None:
                part.incoming.__exit__(kind, error, trace)


async def read_form(rt: Runtime, request: Request) -> MultipartForm | None:
    """The form of a request, on the disk; to be used in a `with`. Returns None when it was refused before it had
    arrived, which has been answered then. Raises InvalidRequest, PayloadTooLarge, Unavailable.
    """
    form = MultipartForm()
    stream = RequestStream(request)
    try:
        length = request.content_length
        _check_length(rt, length)
        # What is no longer than a payload may be one alone, which needs no room: a full disk takes it, too. Then, and
        # where no length is known, room is promised part by part.
        whole = length is not None and length > MOST_BODY_BYTES
        with rt.files.promises.make(length if whole and length else 0) as promise:
            content_type = request.headers.get(b"content-type", b"")
            parser = _FormParser(rt, form, content_type, promise, longest_part=None if whole else length or sys.maxsize)
            await stream.feed(parser.feed)
            parser.finish()
    except BaseException as error:
        form.__exit__(type(error), error, None)
        if not isinstance(error, SocialpubError):
            raise
        await stream.refuse(error)
        return None
    return form


def _check_length(rt: Runtime, length: int | None) -> None:
    most_bytes = MOST_MEDIA * (int(rt.settings.uploads.max_video_bytes) + MOST_BODY_BYTES) + MOST_BODY_BYTES
    if length is not None and length > most_bytes:
        raise PayloadTooLarge(f"No form with at most {MOST_MEDIA} files within their limits has {length} bytes.")


class _FormParser:
    """Fills a form from the bytes of a body, by the callbacks of the library's parser."""

    def __init__(
        self, rt: Runtime, form: MultipartForm, content_type: bytes, promise: DiskPromise, longest_part: int | None
    ) -> None:
        self._rt = rt
        self._form = form
        self._promise = promise
        self._longest_part = longest_part
        """None when there is room for all parts already."""
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._part: FormPart | None = None
        """The file part that is arriving; None while it is the payload."""
        self._payload: bytearray | None = None
        self._ended = False
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise _malformed("its Content-Type names no boundary")
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_end": self._on_end,
                },
            )
        except FormParserError:
            raise _malformed("its boundary is too long") from None

    def feed(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except FormParserError:
            raise _malformed("its parts cannot be separated") from None

    def finish(self) -> None:
        """Everything has arrived. Raises InvalidRequest when the form has no end or no payload."""
        if not self._ended:
            raise _malformed("it ends before its last boundary")
        if self._payload is None:
            raise InvalidRequest.at(PAYLOAD, message="is missing: exactly one text field of this name holds the JSON")
        self._form.payload = bytes(self._payload)

    # --- callbacks, in the order in which the parser calls them ---

    def _on_part_begin(self) -> None:
        self._headers = {}

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name.extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value.extend(data[start:end])

    def _on_header_end(self) -> None:
        self._headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _on_headers_finished(self) -> None:
        disposition, options = parse_options_header(self._headers.get(b"content-disposition"))
        if disposition != b"form-data" or b"name" not in options:
            raise _malformed("a part has no name")
        name = _text(options[b"name"])
        declared_type = _text(self._headers.get(b"content-type", b"")).partition(";")[0].strip().lower()
        if name == PAYLOAD:
            if self._payload is not None:
                raise InvalidRequest.at(PAYLOAD, message="appears twice; only one text field of this name is accepted")
            self._payload, self._part = bytearray(), None
        elif b"filename" in options or (declared_type and _is_welcome(declared_type)):
            file_name = _text(options.get(b"filename", b"")) or name
            self._part = self._add_part(name, file_name[-LONGEST_FILE_NAME:], declared_type)
        else:
            raise InvalidRequest.at(name, message=f"is not a file; the only text field of the form is {PAYLOAD}")

    def _add_part(self, name: str, file_name: str, declared_type: str) -> FormPart:
        if len(self._form.parts) == MOST_MEDIA:
            raise InvalidRequest.at("media", message=f"may come with at most {MOST_MEDIA} files")
        incoming, most_bytes = None, uploads.most_bytes(self._rt.settings, declared_type)
        if _is_welcome(declared_type):
            if self._longest_part is not None:
                self._promise.resize(min(most_bytes, self._longest_part))
            incoming = self._rt.files.receive()
        part = FormPart(name, file_name, declared_type, incoming, self._promise, most_bytes)
        self._form.parts.append(part)
        return part

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part is not None:
            self._part.add(data[start:end])
            return
        assert self._payload is not None
        self._payload += data[start:end]
        if len(self._payload) > MOST_BODY_BYTES:
            raise PayloadTooLarge(f"The field {PAYLOAD} may have at most {sizes.write(MOST_BODY_BYTES)}.")

    def _on_end(self) -> None:
        self._ended = True


def _is_welcome(declared_type: str) -> bool:
    return is_undeclared(declared_type) or canonical_type(declared_type) is not None


def _malformed(reason: str) -> InvalidRequest:
    return InvalidRequest.at(message=f"The form cannot be read: {reason}.")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
