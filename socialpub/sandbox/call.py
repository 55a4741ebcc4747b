"""One call to a network, and its answer.

A call is read whole before anything is decided, so that a handler is a plain function without awaits: what it does
to the memory is done in one piece.
"""

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Scope

Headers = list[tuple[str, str]]


@dataclass(slots=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: str = ""
    headers: Headers = field(default_factory=list)


class Refusal(Exception):
    """Raised by a handler to answer at once."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


def answer_json(status: int, data: Any, headers: Headers | None = None) -> Answer:
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return Answer(status, body, "application/json; charset=utf-8", headers or [])


def answer_html(status: int, page: str) -> Answer:
    return Answer(status, page.encode(), "text/html; charset=utf-8", [("cache-control", "no-store")])


def redirect(url: str) -> Answer:
    return Answer(302, headers=[("location", url), ("cache-control", "no-store")])


@dataclass(slots=True)
class Part:
    """One part of a multipart body. `filename` is None for a plain field."""

    name: str
    filename: str | None
    content_type: str | None
    data: bytes


@dataclass(slots=True)
class Call:
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
    """What the body flowed into, for an endpoint that keeps none."""
    fetched: dict[str, bytes | None] = field(default_factory=dict)
    """What was fetched for the handler, by URL; None: it could not be had."""

    @classmethod
    def begin(cls, scope: Scope) -> "Call":
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

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def parts(self) -> list[Part]:
        """The parts of a multipart body. ValueError when it is none or is broken."""
        kind, options = parse_options_header(self.headers.get("content-type", ""))
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise ValueError("no multipart body")
        return _read_parts(boundary, self.body)


def _read_parts(boundary: bytes, body: bytes) -> list[Part]:
    found: list[Part] = []
    headers: dict[str, bytes] = {}
    name, value, data = bytearray(), bytearray(), bytearray()
    ended = False

    def begin() -> None:
        headers.clear()
        data.clear()

    def end_header() -> None:
        headers[name.decode("latin-1").lower()] = bytes(value)
        name.clear()
        value.clear()

    def end() -> None:
        _, options = parse_options_header(headers.get("content-disposition", b""))
        filename = options.get(b"filename")
        found.append(
            Part(
                options.get(b"name", b"").decode("utf-8", "replace"),
                None if filename is None else filename.decode("utf-8", "replace"),
                headers["content-type"].decode("latin-1") if "content-type" in headers else None,
                bytes(data),
            )
        )

    def finish() -> None:
        nonlocal ended
        ended = True

    parser = MultipartParser(
        boundary,
        {
            "on_part_begin": begin,
            "on_header_field": lambda raw, start, stop: name.extend(raw[start:stop]),
            "on_header_value": lambda raw, start, stop: value.extend(raw[start:stop]),
            "on_header_end": end_header,
            "on_part_data": lambda raw, start, stop: data.extend(raw[start:stop]),
            "on_part_end": end,
            "on_end": finish,
        },
    )
    parser.write(body)
    parser.finalize()
    if not ended:
        raise ValueError("the multipart body is cut off")
    return found
