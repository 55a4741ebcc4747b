"""What a request carries, as a stream whose length is known before the first byte leaves.

A file is read piece by piece while it is sent: it never lies in memory whole, and its length is what was announced,
because it was opened and measured before anything left this machine.
"""

import errno
import json as json_format
import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO
from urllib.parse import urlencode

import httpx2

PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class FilePart:
    """A slice of a file as one part of a multipart body."""

    path: Path
    offset: int
    length: int
    filename: str
    content_type: str


@dataclass(frozen=True, slots=True)
class FileBody:
    """A slice of a file as the whole body; the caller sets `content-type`."""

    path: Path
    offset: int
    length: int


Multipart = Mapping[str, str | FilePart]
"""Parts in the order of the mapping; a string is a plain field."""


class Body:
    """Bytes and slices of open files, in order. Use it as a context: leaving it closes the files."""

    def __init__(self, content_type: str | None = None) -> None:
        self.content_type = content_type
        self.length_bytes = 0
        self.has_file = False
        self._segments: list[bytes | tuple[BinaryIO, int]] = []

    def add(self, data: bytes) -> None:
        self._segments.append(data)
        self.length_bytes += len(data)

    def add_file(self, path: Path, offset: int, length: int) -> None:
        """Raises FileNotFoundError when the file is gone or shorter than the slice."""
        handle = path.open("rb", buffering=0)
        self._segments.append((handle, length))
        if os.fstat(handle.fileno()).st_size < offset + length:
            self.close()
            raise FileNotFoundError(errno.ENOENT, "shorter than it was", str(path))
        handle.seek(offset)
        self.length_bytes += length
        self.has_file = True

    async def stream(self, moved: Callable[[], None], ended: Callable[[], None]) -> AsyncIterator[bytes]:
        """The body, `moved` being called before each piece and `ended` after the last. Once only."""
        for segment in self._segments:
            if isinstance(segment, bytes):
                moved()
                yield segment
                continue
            handle, left = segment
            while left:
                piece = handle.read(min(PIECE_BYTES, left))
                if not piece:
                    raise OSError("the file became shorter while it was sent")
                left -= len(piece)
                moved()
                yield piece
        ended()

    def close(self) -> None:
        for segment in self._segments:
            if not isinstance(segment, bytes):
                segment[0].close()

    def __enter__(self) -> "Body":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Stream(httpx2.AsyncByteStream):
    """A `Body` as the client wants it."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces


def build(
    *,
    json: Any = None,
    form: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
    multipart: Multipart | None = None,
    content: bytes | FileBody | None = None,
) -> Body | None:
    """The body of a request, None when nothing was given. At most one of the four.

    Raises FileNotFoundError when a file of it is gone.
    """
    if sum(given is not None for given in (json, form, multipart, content)) > 1:
        raise ValueError("a request has one body: json, form, multipart or content")
    if json is not None:
        body = Body("application/json")
        body.add(json_format.dumps(json, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
        return body
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
    """As HTML's form submission writes names: whoever reads the header must not see it end early."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
