"""Streaming multipart forms: files go to the disk as they arrive, text fields into memory.

Each form decides which parts it accepts; the rules for files are the same. Leaving the `with` of a form removes every
file to which no row refers.
"""

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from socialpub.core import units
from socialpub.core.errors import InvalidRequest, PayloadTooLarge, RequestTimeout, cut
from socialpub.media.reservations import DiskReservation
from socialpub.media.types import canonical_type, is_undeclared, type_name
from socialpub.publishing.media import uploads
from socialpub.publishing.media.arrivals import ArrivingFile
from socialpub.publishing.posts.drafts import MAX_MEDIA
from socialpub.runtime import Runtime
from socialpub.web.http.limits import COMPLETE_SECONDS, MAX_BODY_BYTES, RequestBody

MAX_FILE_NAME = 255


@dataclass(frozen=True, slots=True)
class PartHead:
    name: str
    file_name: str | None
    declared_type: str


@dataclass(slots=True, kw_only=True)
class FormPart(ArrivingFile):
    """A file part."""

    field: str
    _sha256: "hashlib._Hash" = dataclass_field(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def add(self, data: bytes) -> None:
        self._sha256.update(data)
        ArrivingFile.add(self, data)


class MultipartForm(ABC):
    """The received file parts. Leaving the `with` removes every file to which no row refers."""

    reads_types: ClassVar[bool] = True
    """Whether the declared types of files count. Otherwise, only the bytes count."""

    def __init__(self) -> None:
        self.parts: list[FormPart] = []

    @property
    def fingerprints(self) -> list[tuple[str, str, str]]:
        """The field name, the declared type and the SHA-256 of each file part."""
        return [(part.field, part.declared_type, part.sha256) for part in self.parts]

    @abstractmethod
    def is_file(self, head: PartHead) -> bool:
        """Return whether this part is a file and not a text field. Raises InvalidRequest for an unexpected part."""

    @abstractmethod
    def add_text(self, name: str, value: bytes) -> None:
        """Store a complete text field. Raises an error that refuses the form."""

    def check_text(self, name: str, size_bytes: int) -> None:
        """Check the size of an incomplete text field. Raises PayloadTooLarge."""
        if size_bytes > MAX_BODY_BYTES:
            raise PayloadTooLarge(f"The field {cut(name)} may have at most {units.size(MAX_BODY_BYTES)}.")

    @abstractmethod
    def check_file(self, part: FormPart) -> None:
        """Check the size of an incomplete file. Raises PayloadTooLarge to refuse the form."""

    @abstractmethod
    def finish(self) -> None:
        """Check the complete form. Raises InvalidRequest."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self.parts:
            part.__exit__(kind, error, trace)


F = TypeVar("F", bound=MultipartForm)


async def receive_form(rt: Runtime, request: Request, form: F) -> F:
    """Receive a form, to be used in a `with`.

    Raises InvalidRequest, PayloadTooLarge, Unavailable and the errors of the form.
    """
    body: RequestBody = request.state.body_limits
    try:
        length = body.declared_bytes
        _check_length(rt, length)
        # A short form may contain only a payload and need no disk space. Short forms and forms of unknown length
        # reserve disk space part by part.
        whole = length is not None and length > MAX_BODY_BYTES
        known_bytes = length if whole and length else 0
        with uploads.count_arriving(rt, known_bytes), rt.files.reservations.reserve(known_bytes) as reservation:
            content_type = request.headers.get("content-type", "").encode("latin-1")
            longest_part = None if whole else length or sys.maxsize
            parser = _FormParser(rt, form, content_type, reservation, longest_part, body.hold)
            body.goes_to_file = True
            async for piece in request.stream():
                parser.feed(piece)
            parser.finish()
    except BaseException as error:
        form.__exit__(type(error), error, None)
        raise
    return form


def _check_length(rt: Runtime, length: int | None) -> None:
    max_bytes = MAX_MEDIA * (int(rt.settings.uploads.max_video_bytes) + MAX_BODY_BYTES) + MAX_BODY_BYTES
    if length is not None and length > max_bytes:
        raise PayloadTooLarge(
            f"The form has {length} bytes. A form with {MAX_MEDIA} files may have at most {units.size(max_bytes)}."
        )


class _FormParser:
    def __init__(
        self,
        rt: Runtime,
        form: MultipartForm,
        content_type: bytes,
        reservation: DiskReservation,
        longest_part: int | None,
        hold: Callable[[int], None],
    ) -> None:
        self._rt = rt
        self._form = form
        self._reservation = reservation
        self._hold = hold
        self._longest_part = longest_part
        """None if the disk space for all parts is reserved."""
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._part: FormPart | None = None
        """The current file part. None during a text field."""
        self._text_name = ""
        self._text = bytearray()
        self._text_since: float | None = None
        """The start of the current text field (monotonic)."""
        self._ended = False
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise _malformed("the Content-Type does not contain a boundary")
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._headers.clear,
                    "on_header_field": lambda data, start, end: self._header_name.extend(data[start:end]),
                    "on_header_value": lambda data, start, end: self._header_value.extend(data[start:end]),
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
            )
        except FormParserError:
            raise _malformed("the boundary is too long") from None

    def feed(self, data: bytes) -> None:
        """Parse the next bytes. Raises InvalidRequest, RequestTimeout and the errors of the form."""
        if self._text_since is not None and self._rt.clock.monotonic() - self._text_since > COMPLETE_SECONDS:
            raise RequestTimeout(
                f"The field {cut(self._text_name)} was not complete within {COMPLETE_SECONDS:.0f} seconds. "
                "Send the request again."
            )
        try:
            self._parser.write(data)
        except FormParserError:
            raise _malformed("the parts cannot be separated") from None

    def finish(self) -> None:
        if not self._ended:
            raise _malformed("the form ends before the last boundary")
        self._form.finish()

    # --- callbacks, in the order in which the parser calls them ---

    def _on_header_end(self) -> None:
        self._headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _on_headers_finished(self) -> None:
        disposition, options = parse_options_header(self._headers.get(b"content-disposition"))
        if disposition != b"form-data" or b"name" not in options:
            raise _malformed("a part does not have a name")
        declared_type = type_name(_text(self._headers.get(b"content-type", b""))) if self._form.reads_types else ""
        file_name = _text(options[b"filename"]) if b"filename" in options else None
        head = PartHead(_text(options[b"name"]), file_name, declared_type)
        if self._form.is_file(head):
            self._part = self._add_part(head.name, (file_name or head.name)[-MAX_FILE_NAME:], declared_type)
        else:
            self._part, self._text_name, self._text = None, head.name, bytearray()
            self._text_since = self._rt.clock.monotonic()

    def _add_part(self, name: str, file_name: str, declared_type: str) -> FormPart:
        if len(self._form.parts) == MAX_MEDIA:
            raise InvalidRequest.at("media", message=f"may have at most {MAX_MEDIA} files")
        incoming, max_bytes = None, uploads.max_bytes(self._rt.settings, declared_type)
        if is_accepted_type(declared_type):
            if self._longest_part is not None:
                uploads.check_quota_with_arriving(self._rt, self._rt.db, 1)
                self._reservation.resize(min(max_bytes, self._longest_part))
            incoming = self._rt.files.receive()
        part = FormPart(
            field=name,
            file_name=file_name,
            declared_type=declared_type,
            incoming=incoming,
            reservation=self._reservation,
            max_bytes=max_bytes,
        )
        self._form.parts.append(part)
        return part

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part is not None:
            self._part.add(data[start:end])
            self._form.check_file(self._part)
            return
        self._hold(end - start)
        self._text += data[start:end]
        self._form.check_text(self._text_name, len(self._text))

    def _on_part_end(self) -> None:
        if self._part is None:
            self._text_since = None
            self._form.add_text(self._text_name, bytes(self._text))

    def _on_end(self) -> None:
        self._ended = True


def is_accepted_type(declared_type: str) -> bool:
    return is_undeclared(declared_type) or canonical_type(declared_type) is not None


def _malformed(reason: str) -> InvalidRequest:
    return InvalidRequest.at(message=f"The form cannot be read: {reason}.")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")
