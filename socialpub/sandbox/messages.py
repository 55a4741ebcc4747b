"""Requests to a network, the bodies that they carry, and the network's replies.

A request is read whole before anything is decided. So a handler is a plain function without awaits, and it changes the
memory in one piece.
"""

import base64
import hashlib
import json
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Scope

FORM = "application/x-www-form-urlencoded"
KEPT_BYTES = 64 * 1024 * 1024
HEAD_BYTES = 64

Headers = list[tuple[str, str]]


# --- replies ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Reply:
    status: int
    body: bytes = b""
    content_type: str = ""
    headers: Headers = field(default_factory=list)

    def with_headers(self, headers: Headers) -> "Reply":
        """Set these headers, instead of others with their names."""
        names = {name for name, _ in headers}
        self.headers = [*(header for header in self.headers if header[0] not in names), *headers]
        return self


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


# --- bodies ----------------------------------------------------------------------------------------------------------


class StreamedBody:
    """Plain bytes, hashed as they arrive and kept while they are small. `digest` continues a hash; pass a copy."""

    def __init__(self, keep: bool = True, digest: Any = None) -> None:
        self.size = 0
        self.head = b""
        self.digest = digest or hashlib.sha256()
        self._pieces: list[bytes] | None = [] if keep else None

    def write(self, chunk: bytes) -> None:
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
        """Return the bytes, or None when they were too large to keep."""
        return None if self._pieces is None else b"".join(self._pieces)

    @property
    def sha256(self) -> str:
        return str(self.digest.hexdigest())


@dataclass(slots=True)
class BodyPart:
    name: str
    content_type: str | None
    body: StreamedBody = field(default_factory=StreamedBody)

    @property
    def data(self) -> bytes:
        return self.body.data or b""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SandboxRequest:
    method: str
    path: str
    """Below the network's prefix, as in the network's own documentation."""
    path_params: dict[str, str]
    raw_query: str
    headers: dict[str, str]
    base_url: str
    """The sandbox's own address, without a slash at the end."""
    received_monotonic: float
    """When the first byte arrived, by the machine's clock (not the world's)."""
    body: bytes = b""
    sink: Any = None
    """Where the body was streamed to, for an endpoint with a sink. Then `body` is empty."""
    form_parts: list[BodyPart] | None = None
    """The parts of a multipart body, in their order."""

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

    @property
    def basic(self) -> tuple[str, str] | None:
        """Return id and secret of an `Authorization: Basic` header, or None for any other header."""
        scheme, _, encoded = self.headers.get("authorization", "").partition(" ")
        try:
            decoded = base64.b64decode(encoded.strip(), validate=True).decode()
        except ValueError:
            return None
        client_id, colon, secret = decoded.partition(":")
        return (client_id, secret) if scheme.lower() == "basic" and colon else None

    def query(self) -> dict[str, str]:
        """Return the query's parameters. The last one of a repeated name counts."""
        return dict(parse_qsl(self.raw_query, keep_blank_values=True))

    def json_object(self) -> dict[str, Any] | None:
        """Return the body if it is a JSON object declared as such."""
        try:
            body = json.loads(self.body) if self.content_type == "application/json" else None
        except ValueError:
            body = None
        return body if isinstance(body, dict) else None

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def parts(self) -> list[BodyPart]:
        """Return the parts of a multipart body. Raise ValueError when it is not one, or is cut off."""
        if self.form_parts is None:
            raise ValueError("not a whole multipart form")
        return self.form_parts
