"""Bodies that are too large to hold: hashed as they stream by, kept only while they are small.

Nothing here decides anything; a handler looks at what came and takes it, or leaves it.
"""

import hashlib
from typing import Any, Protocol

from socialpub.sandbox.multipart import MultipartReader, PartHeader

KEPT_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 64
FIELD_BYTES = 64 * 1024

PartSummary = tuple[str, str | None, int]
"""Name, declared type, bytes."""


class BodySink(Protocol):
    def write(self, chunk: bytes) -> None: ...

    def parts(self) -> tuple[PartSummary, ...]:
        """What came, for the record."""
        ...


class StreamedBody:
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

    def parts(self) -> tuple[PartSummary, ...]:
        return (("", None, self.size),)


class StreamedForm:
    """A multipart form whose part `file` may be large."""

    def __init__(self, content_type: str) -> None:
        self.fields: list[tuple[str, str]] = []
        """The text fields in their order."""
        self.file: StreamedBody | None = None
        self.file_last = True
        """Nothing came after the file."""
        self._broken = False
        self._headers: list[PartHeader] = []
        self._sizes: list[int] = []
        self._text = bytearray()
        self._reader: MultipartReader | None = None
        try:
            self._reader = MultipartReader(content_type, self)
        except ValueError:
            self._broken = True

    @property
    def whole(self) -> bool:
        return self._reader is not None and self._reader.ended and not self._broken

    def write(self, chunk: bytes) -> None:
        if self._reader is None or self._broken:
            return
        try:
            self._reader.write(chunk)
        except ValueError:
            self._broken = True

    def parts(self) -> tuple[PartSummary, ...]:
        return tuple(
            (header.name, header.content_type, size) for header, size in zip(self._headers, self._sizes, strict=True)
        )

    def begin_part(self, header: PartHeader) -> None:
        self._headers.append(header)
        self._sizes.append(0)
        self._text.clear()
        self.file_last = header.name == "file" and self.file is None
        if self.file_last:
            self.file = StreamedBody()

    def part_data(self, data: bytes) -> None:
        self._sizes[-1] += len(data)
        if self._headers[-1].name == "file" and self.file is not None:
            self.file.write(data)
        elif len(self._text) + len(data) > FIELD_BYTES:
            self._broken = True
        else:
            self._text.extend(data)

    def end_part(self) -> None:
        if self._headers[-1].name != "file":
            self.fields.append((self._headers[-1].name, self._text.decode("utf-8", "replace")))
