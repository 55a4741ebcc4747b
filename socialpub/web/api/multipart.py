"""A post that brings its files along: one `payload` and up to 20 file parts in one form (spec 4.2, contract 5.8).

Parts go to the disk as they come, hashed on the way, and nothing of them stays unless the post that they came with is
accepted: who leaves the `with` around a form leaves no stray file behind.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as made_by
from types import TracebackType

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from socialpub.core import ids
from socialpub.core.errors import FieldError, InvalidRequest, PayloadTooLarge, SocialpubError, Unavailable
from socialpub.media import decoder_client
from socialpub.media.incoming import IncomingFile
from socialpub.media.types import Facts, MediaRejected, canonical_type
from socialpub.publishing import uploads
from socialpub.publishing.uploads import Examined
from socialpub.runtime import Runtime
from socialpub.web.request import MOST_BODY_BYTES, Request
from socialpub.web.stream import Stream

PAYLOAD = "payload"
MOST_FILES = 20
MOST_NAME = 255


@dataclass(slots=True)
class Part:
    """One file part. `incoming` is None when its declared type is not accepted; then nothing of it was stored."""

    field: str
    file_name: str
    declared_type: str
    incoming: IncomingFile | None
    most_bytes: int
    size_bytes: int = 0
    _sha256: "hashlib._Hash" = made_by(default_factory=hashlib.sha256)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    def add(self, data: bytes) -> None:
        """Take the next bytes. Raises PayloadTooLarge, Unavailable."""
        self.size_bytes += len(data)
        if self.size_bytes > self.most_bytes:
            told = f"The file part {self.field!r} ({self.declared_type}) may have at most {self.most_bytes} bytes."
            raise PayloadTooLarge(told)
        self._sha256.update(data)
        if self.incoming is not None:
            self.incoming.write(data)


class Form:
    """What arrived. Leaving the `with` removes every file that no row names."""

    def __init__(self) -> None:
        self.payload = b""
        """The JSON, not yet read."""
        self.parts: list[Part] = []

    @property
    def fingerprints(self) -> list[tuple[str, str, str]]:
        """Field name, declared type and SHA-256 of each file part: what makes two forms the same."""
        return [(part.field, part.declared_type, part.sha256) for part in self.parts]

    def __enter__(self) -> "Form":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self.parts:
            if part.incoming is not None:
                part.incoming.__exit__(kind, error, trace)


# --- reading ---------------------------------------------------------------------------------------------------------


async def read_form(rt: Runtime, request: Request) -> Form | None:
    """The form of a request, on the disk; to be used in a `with`. None when it was refused before it had arrived: then
    the caller has the answer. Raises InvalidRequest, PayloadTooLarge, Unavailable.
    """
    form = Form()
    stream = Stream(request)
    try:
        rt.files.check_free_space(request.content_length or 0)
        reading = _Reading(rt, form, request.headers.get(b"content-type", b""))
        await stream.feed(reading.feed)
        reading.finish()
    except BaseException as error:
        form.__exit__(type(error), error, None)
        if not isinstance(error, SocialpubError):
            raise
        await stream.refuse(error)
        return None
    return form


class _Reading:
    """The parser's callbacks: what has been seen of the form so far."""

    def __init__(self, rt: Runtime, form: Form, content_type: bytes) -> None:
        self._rt = rt
        self._form = form
        self._header = (bytearray(), bytearray())
        self._headers: dict[bytes, bytes] = {}
        self._part: Part | None = None
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
                    "on_part_begin": self._begin,
                    "on_header_field": self._name,
                    "on_header_value": self._value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._open,
                    "on_part_data": self._data,
                    "on_end": self._end,
                },
            )
        except FormParserError:
            raise _malformed("its boundary is too long") from None

    def feed(self, data: bytes) -> None:
        try:
            self._parser.write(data)
        except FormParserError:
            raise _malformed("the parts cannot be told apart") from None

    def finish(self) -> None:
        """Everything has arrived. Raises InvalidRequest when the form has no end or no payload."""
        if not self._ended:
            raise _malformed("it ends before its last boundary")
        if self._payload is None:
            raise InvalidRequest.at(PAYLOAD, message="is missing: exactly one text field of this name holds the JSON")
        self._form.payload = bytes(self._payload)

    # --- what the parser tells, in this order ---

    def _begin(self) -> None:
        self._headers = {}

    def _name(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])

    def _end_header(self) -> None:
        name, value = self._header
        self._headers[bytes(name).lower()] = bytes(value)
        self._header = (bytearray(), bytearray())

    def _open(self) -> None:
        disposition, told = parse_options_header(self._headers.get(b"content-disposition"))
        if disposition != b"form-data" or b"name" not in told:
            raise _malformed("a part has no name")
        name = _text(told[b"name"])
        declared_type = _text(self._headers.get(b"content-type", b"")).partition(";")[0].strip().lower()
        if name == PAYLOAD:
            if self._payload is not None:
                raise InvalidRequest.at(PAYLOAD, message="is there twice: exactly one text field of this name is taken")
            self._payload, self._part = bytearray(), None
        elif b"filename" in told or canonical_type(declared_type) is not None:
            file_name = _text(told.get(b"filename", b"")) or name
            self._part = self._open_file(name, file_name[-MOST_NAME:], declared_type)
        else:
            raise InvalidRequest.at(name, message=f"is no file; the only text field of the form is {PAYLOAD}")

    def _open_file(self, name: str, file_name: str, declared_type: str) -> Part:
        if len(self._form.parts) == MOST_FILES:
            raise InvalidRequest.at("media", message=f"at most {MOST_FILES} files can come with one post")
        if canonical_type(declared_type) is None:
            most = int(self._rt.settings.uploads.max_video_bytes)
            part = Part(name, file_name, declared_type, None, most)
        else:
            most = uploads.most_bytes(self._rt.settings, declared_type)
            part = Part(name, file_name, declared_type, self._rt.files.receive(), most)
        self._form.parts.append(part)
        return part

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._part is not None:
            self._part.add(data[start:end])
            return
        assert self._payload is not None
        self._payload += data[start:end]
        if len(self._payload) > MOST_BODY_BYTES:
            raise PayloadTooLarge(f"The field {PAYLOAD} may have at most {MOST_BODY_BYTES} bytes.")

    def _end(self) -> None:
        self._ended = True


def _malformed(why: str) -> InvalidRequest:
    return InvalidRequest.at(message=f"The form cannot be read: {why}.")


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


# --- examining -------------------------------------------------------------------------------------------------------


async def verify_parts(rt: Runtime, form: Form, fields: Sequence[str | None]) -> dict[str, Examined]:
    """Match the parts with the media items, examine them, and have them on the disk under their own names.

    `fields` holds the `fileField` of each media item, None for one that has an `artifactId`. Returns the files by
    field; `uploads.adopt` makes them stay. Raises InvalidRequest with all that is wrong at the first stage that fails
    (names, types, contents), and Unavailable.
    """
    at = _matched(form, fields)
    errors = [
        FieldError(at[part.field], uploads.unaccepted(part.declared_type or "A part without Content-Type"))
        for part in form.parts
        if part.incoming is None
    ]
    if errors:
        raise _unacceptable(errors)
    # Every one is waited for, also when one of them fails: a child may not outlive the file it reads.
    looked = await asyncio.gather(*(_look(rt, part) for part in form.parts))
    for found in looked:
        if isinstance(found, Unavailable):
            raise found
    errors = [
        FieldError(at[part.field], found.reason)
        for part, found in zip(form.parts, looked, strict=True)
        if isinstance(found, MediaRejected)
    ]
    if errors:
        raise _unacceptable(errors)
    files = {}
    for part, found in zip(form.parts, looked, strict=True):
        assert isinstance(found, Facts)
        assert part.incoming is not None
        artifact_id = ids.new(int(rt.clock.now().timestamp() * 1000))
        storage_key = rt.files.new_key(artifact_id, found.mime_type)
        await asyncio.to_thread(part.incoming.keep, storage_key)
        files[part.field] = Examined(artifact_id, part.file_name, part.declared_type, storage_key, found, part.incoming)
    return files


def _matched(form: Form, fields: Sequence[str | None]) -> dict[str, tuple[str | int, ...]]:
    """Where in the payload each part is named. Raises InvalidRequest unless each is named exactly once."""
    at: dict[str, tuple[str | int, ...]] = {}
    errors = []
    names = [part.field for part in form.parts]
    for index, name in enumerate(fields):
        if name is None:
            continue
        path = ("media", index, "fileField")
        if name in at:
            errors.append(FieldError(path, f"{name!r} is named by an earlier media item already"))
        elif names.count(name) == 0:
            errors.append(FieldError(path, f"the form has no file part {name!r}"))
        elif names.count(name) > 1:
            errors.append(FieldError(path, f"the form has {names.count(name)} file parts {name!r}; names must differ"))
        at.setdefault(name, path)
    errors += [
        FieldError(("media",), f"no media item names the file part {name!r}")
        for name in dict.fromkeys(names)
        if name not in at
    ]
    if errors:
        raise InvalidRequest("Media items and file parts do not match.", errors)
    return at


async def _look(rt: Runtime, part: Part) -> Facts | MediaRejected | Unavailable:
    assert part.incoming is not None
    try:
        limits = uploads.limits(rt.settings)
        return await decoder_client.inspect_file_async(part.incoming.path, part.declared_type, limits)
    except MediaRejected as refused:
        return refused
    except decoder_client.DecoderFailed as error:
        unavailable = Unavailable("The files cannot be examined at the moment. Send the request again.")
        unavailable.__cause__ = error
        return unavailable


def _unacceptable(errors: Sequence[FieldError]) -> InvalidRequest:
    return InvalidRequest("A file cannot be accepted.", errors)
