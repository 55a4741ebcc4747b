"""Requests to a network and its replies, and the bodies that they carry."""

import hashlib
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import parse_qsl

from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Scope

# MERGED from sandbox/reply.py: What a network answers: a reply, and the refusal that a handler raises to reply at

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes = b""
    content_type: str = ""
    headers: Headers = field(default_factory=list)


class Refusal(Exception):
    """Raised by a handler to reply at once."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


def json_reply(status: int, data: Any, headers: Headers | None = None) -> Reply:
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return Reply(status, body, "application/json; charset=utf-8", headers or [])


def html_reply(status: int, page: str) -> Reply:
    return Reply(status, page.encode(), "text/html; charset=utf-8", [("cache-control", "no-store")])


def redirect(url: str) -> Reply:
    return Reply(302, headers=[("location", url), ("cache-control", "no-store")])


# MERGED from sandbox/multipart.py: Multipart bodies, read part by part as they arrive.


@dataclass(frozen=True, slots=True)
class PartHeader:
    name: str
    filename: str | None
    """None for a plain field."""
    content_type: str | None


@dataclass(frozen=True, slots=True)
class BodyPart:
    """One part of a body that was read whole."""

    header: PartHeader
    data: bytes


class PartReceiver(Protocol):
    """What the parts are handed to, in their order."""

    def begin_part(self, header: PartHeader) -> None: ...

    def part_data(self, data: bytes) -> None: ...

    def end_part(self) -> None: ...


class MultipartReader:
    """Takes a body in chunks of any size. ValueError when it is no multipart body, or a broken one."""

    def __init__(self, content_type: str, receiver: PartReceiver) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise ValueError("no multipart form")
        self.ended = False
        """The closing boundary has come."""
        self._receiver = receiver
        self._name, self._value = bytearray(), bytearray()
        self._headers: dict[str, bytes] = {}
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": lambda raw, start, stop: self._name.extend(raw[start:stop]),
                "on_header_value": lambda raw, start, stop: self._value.extend(raw[start:stop]),
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": lambda raw, start, stop: receiver.part_data(bytes(raw[start:stop])),
                "on_part_end": receiver.end_part,
                "on_end": self._end,
            },
        )

    def write(self, chunk: bytes) -> None:
        self._parser.write(chunk)

    def _end_header(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = bytes(self._value)
        self._name.clear()
        self._value.clear()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", b""))
        filename, kind = options.get(b"filename"), self._headers.get("content-type")
        self._receiver.begin_part(
            PartHeader(
                options.get(b"name", b"").decode("utf-8", "replace"),
                None if filename is None else filename.decode("utf-8", "replace"),
                None if kind is None else kind.decode("latin-1"),
            )
        )

    def _end(self) -> None:
        self.ended = True


class _Collector:
    def __init__(self) -> None:
        self.parts: list[BodyPart] = []
        self._header = PartHeader("", None, None)
        self._data = bytearray()

    def begin_part(self, header: PartHeader) -> None:
        self._header = header
        self._data.clear()

    def part_data(self, data: bytes) -> None:
        self._data.extend(data)

    def end_part(self) -> None:
        self.parts.append(BodyPart(self._header, bytes(self._data)))


def read_parts(content_type: str, body: bytes) -> list[BodyPart]:
    """The parts of a whole body. ValueError when it is no multipart body, is broken or cut off."""
    collector = _Collector()
    reader = MultipartReader(content_type, collector)
    reader.write(body)
    if not reader.ended:
        raise ValueError("the multipart body is cut off")
    return collector.parts


# MERGED from sandbox/streamed_body.py: Bodies that are too large to hold: hashed as they stream by, kept only whil

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


# MERGED from sandbox/request.py: One request to a network.

FORM = "application/x-www-form-urlencoded"


@dataclass(slots=True)
class SandboxRequest:
    method: str
    path: str
    """Below the network's prefix, as the network's own documents write it."""
    path_params: dict[str, str]
    raw_query: str
    headers: dict[str, str]
    base_url: str
    """Where the sandbox itself was reached, without a slash at the end."""
    received_at: datetime
    """When the first byte arrived, by the machine's clock (not the world's)."""
    received_monotonic: float
    body: bytes = b""
    sink: Any = None
    """What the body was streamed into, for an endpoint that keeps none."""
    fetched: dict[str, bytes | None] = field(default_factory=dict)
    """What was fetched for the handler, by URL; None: it could not be had."""

    @classmethod
    def begin(cls, scope: Scope) -> "SandboxRequest":
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        prefix = scope.get("app_root_path", "")
        return cls(
            method=scope["method"],
            path=scope["path"].removeprefix(scope.get("root_path", "")),
            path_params=scope.get("path_params", {}),
            raw_query=scope.get("query_string", b"").decode("latin-1"),
            headers=headers,
            base_url=f"{scope['scheme']}://{headers.get('host', '127.0.0.1')}{prefix}",
            received_at=datetime.now(UTC),
            received_monotonic=time.monotonic(),
        )

    @property
    def content_type(self) -> str:
        """Lower case, without parameters."""
        return self.headers.get("content-type", "").split(";", 1)[0].strip().lower()

    @property
    def bearer(self) -> str | None:
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() or None if scheme.lower() == "bearer" else None

    def query(self) -> dict[str, str]:
        """The query's parameters; of a repeated one the last counts."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True))

    def json(self) -> Any:
        """The body as JSON data. ValueError when it is none."""
        return json.loads(self.body)

    def json_object(self) -> dict[str, Any] | None:
        """The body, when it is one JSON object declared as such."""
        try:
            body = self.json() if self.content_type == "application/json" else None
        except ValueError:
            body = None
        return body if isinstance(body, dict) else None

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def parts(self) -> list[BodyPart]:
        """The parts of a multipart body. ValueError when it is none or is broken."""
        return read_parts(self.headers.get("content-type", ""), self.body)
