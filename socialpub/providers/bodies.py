"""Request bodies as streams whose length is known before the first byte leaves.

A file is read in pieces while it is sent and is never whole in memory. It is opened and measured before anything
leaves, so its length matches the announced length.
"""

import base64
import errno
import json as json_format
import math
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

import httpx2

PIECE_BYTES = 64 * 1024
BASE64_PIECE_BYTES = 48 * 1024
"""A multiple of three: only the last piece has padding, so that the pieces join."""


@dataclass(frozen=True, slots=True)
class FilePart:
    path: Path
    offset: int
    length: int
    filename: str
    content_type: str


@dataclass(frozen=True, slots=True)
class FileBody:
    """A slice of a file as the whole body. The caller sets `content-type`."""

    path: Path
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Base64File:
    """A whole file as one string of a JSON body, in the standard alphabet of Base64."""

    path: Path
    length: int


Multipart = Mapping[str, str | FilePart]
"""Parts in the order of the mapping. A string is a plain field."""


@dataclass(frozen=True, slots=True)
class _Slice:
    handle: BinaryIO
    length: int
    as_base64: bool

    def pieces(self) -> Iterator[bytes]:
        left = self.length
        while left:
            piece = self._read(min(BASE64_PIECE_BYTES if self.as_base64 else PIECE_BYTES, left))
            left -= len(piece)
            yield base64.b64encode(piece) if self.as_base64 else piece

    def _read(self, size: int) -> bytes:
        # After a short read, Base64 would have padding in the middle.
        piece = b""
        while len(piece) < size:
            more = self.handle.read(size - len(piece))
            if not more:
                raise OSError("the file became shorter while it was sent")
            piece += more
        return piece


class Body(httpx2.AsyncByteStream):
    """Bytes and slices of open files, in order. `close` closes the files.

    `moved` is called before each piece, and `ended` after the last piece.
    """

    def __init__(self, content_type: str | None = None) -> None:
        self.content_type = content_type
        self.moved: Callable[[], None] = lambda: None
        self.ended: Callable[[], None] = lambda: None
        self.length_bytes = 0
        self.has_file = False
        self._segments: list[bytes | _Slice] = []

    def add(self, data: bytes) -> None:
        self._segments.append(data)
        self.length_bytes += len(data)

    def add_file(self, path: Path, offset: int, length: int, *, as_base64: bool = False) -> None:
        """Add a slice of a file. Raises FileNotFoundError when the file is missing or too short."""
        handle = path.open("rb", buffering=0)
        self._segments.append(_Slice(handle, length, as_base64))
        if os.fstat(handle.fileno()).st_size < offset + length:
            self.close()
            raise FileNotFoundError(errno.ENOENT, "shorter than it was", str(path))
        handle.seek(offset)
        self.length_bytes += 4 * math.ceil(length / 3) if as_base64 else length
        self.has_file = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for segment in self._segments:
            for piece in [segment] if isinstance(segment, bytes) else segment.pieces():
                self.moved()
                yield piece
        self.ended()

    def close(self) -> None:
        for segment in self._segments:
            if not isinstance(segment, bytes):
                segment.handle.close()


def build(
    *,
    json: Any = None,
    form: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
    multipart: Multipart | None = None,
    content: bytes | FileBody | None = None,
) -> Body | None:
    """Return the body of a request, or None without content. Raises FileNotFoundError when a file is missing."""
    if sum(value is not None for value in (json, form, multipart, content)) > 1:
        raise ValueError("a request has one body: json, form, multipart or content")
    if json is not None:
        return _json(json)
    if form is not None:
        body = Body("application/x-www-form-urlencoded")
        body.add(urlencode(form).encode())
        return body
    if multipart is not None:
        return _multipart(multipart)
    if isinstance(content, FileBody):
        body = Body()
        body.add_file(content.path, content.offset, content.length)
        return body
    if content is not None:
        body = Body()
        body.add(content)
        return body
    return None


def _json(value: Any) -> Body:
    """Return a JSON body whose `Base64File`s are read while they are sent."""
    mark = f"socialpub-{secrets.token_hex(16)}"
    files: list[Base64File] = []

    def stand_in(part: Any) -> str:
        if not isinstance(part, Base64File):
            raise TypeError(f"{type(part).__name__} is not JSON")
        files.append(part)
        return mark

    text = json_format.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=stand_in)
    first, *others = text.split(mark)
    body = Body("application/json")
    body.add(first.encode())
    try:
        for file, rest in zip(files, others, strict=True):
            body.add_file(file.path, 0, file.length, as_base64=True)
            body.add(rest.encode())
    except BaseException:
        body.close()
        raise
    return body


def _multipart(parts: Multipart) -> Body:
    boundary = f"socialpub-{secrets.token_hex(16)}"
    body = Body(f"multipart/form-data; boundary={boundary}")
    for name, part in parts.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'
        if isinstance(part, str):
            body.add(f"{head}\r\n\r\n{part}".encode())
        else:
            head += f'; filename="{_quoted(part.filename)}"\r\nContent-Type: {part.content_type}'
            body.add(f"{head}\r\n\r\n".encode())
            body.add_file(part.path, part.offset, part.length)
        body.add(b"\r\n")
    body.add(f"--{boundary}--\r\n".encode())
    return body


def _quoted(name: str) -> str:
    """Return the name escaped like in HTML forms, so that it cannot end the header."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
