"""Bodies that are too large to hold: hashed as they flow by, kept only while they are small.

Nothing here decides anything; a handler looks at what flowed in and takes it, or leaves it.
"""

import hashlib
from typing import Any, Protocol

from python_multipart.multipart import MultipartParser, parse_options_header

KEPT_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 64
FIELD_BYTES = 64 * 1024


class Sink(Protocol):
    def write(self, chunk: bytes) -> None: ...

    def parts(self) -> tuple[tuple[str, str | None, int], ...]:
        """What flowed in, for the record: name, declared type, bytes."""
        ...


class Inflow:
    """Plain bytes. `digest`: a hash to go on with; it is the caller's own copy."""

    def __init__(self, keep: bool = True, digest: Any = None) -> None:
        self.size = 0
        self.head = b""
        self.digest = digest or hashlib.sha256()
        self._pieces: list[bytes] | None = [] if keep else None

    def write(self, chunk: bytes) -> None:
        if not chunk:
            return
        if len(self.head) < HEAD_BYTES:
            self.head = (self.head + chunk)[:HEAD_BYTES]
        self.size += len(chunk)
        self.digest.update(chunk)
        if self._pieces is not None:
            self._pieces.append(bytes(chunk))
            if self.size > KEPT_BYTES:
                self._pieces = None

    @property
    def data(self) -> bytes | None:
        """Everything, while it was small enough to keep."""
        return None if self._pieces is None else b"".join(self._pieces)

    @property
    def sha256(self) -> str:
        return str(self.digest.hexdigest())

    def parts(self) -> tuple[tuple[str, str | None, int], ...]:
        return (("", None, self.size),)


class FormInflow:
    """A multipart form whose part `file` may be large."""

    def __init__(self, content_type: str) -> None:
        self.fields: list[tuple[str, str]] = []
        """The text fields in their order."""
        self.file: Inflow | None = None
        self.file_last = True
        """Nothing came after the file."""
        self.broken = ""
        self._seen: list[list[Any]] = []
        self._name, self._header, self._value, self._text = "", bytearray(), bytearray(), bytearray()
        self._headers: dict[str, bytes] = {}
        self._ended = False
        kind, options = parse_options_header(content_type)
        self._parser: MultipartParser | None = None
        if kind == b"multipart/form-data" and options.get(b"boundary"):
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_part_begin": self._begin,
                    "on_header_field": lambda raw, start, stop: self._header.extend(raw[start:stop]),
                    "on_header_value": lambda raw, start, stop: self._value.extend(raw[start:stop]),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._take,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
            )
        else:
            self.broken = "no multipart form"

    @property
    def whole(self) -> bool:
        return self._ended and not self.broken

    def write(self, chunk: bytes) -> None:
        if self._parser is None or self.broken:
            return
        try:
            self._parser.write(chunk)
        except ValueError as error:
            self.broken = str(error)

    def parts(self) -> tuple[tuple[str, str | None, int], ...]:
        return tuple((name, kind, size) for name, kind, size in self._seen)

    def _begin(self) -> None:
        self._headers.clear()
        self._text.clear()

    def _end_header(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        kind = self._headers.get("content-type")
        self._seen.append([self._name, kind.decode("latin-1") if kind is not None else None, 0])
        self.file_last = self._name == "file" and self.file is None
        if self.file_last:
            self.file = Inflow()

    def _take(self, raw: bytes, start: int, stop: int) -> None:
        self._seen[-1][2] += stop - start
        if self._name == "file" and self.file is not None:
            self.file.write(raw[start:stop])
        elif len(self._text) + stop - start > FIELD_BYTES:
            self.broken = f"the field {self._name} is too long"
        else:
            self._text.extend(raw[start:stop])

    def _end(self) -> None:
        if self._name != "file":
            self.fields.append((self._name, self._text.decode("utf-8", "replace")))

    def _finish(self) -> None:
        self._ended = True
