"""Requests to a network, and the network's replies.

A request is read whole before anything is decided. So a handler is a plain function without awaits, and it changes the
memory in one piece.
"""

import base64
import json
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.types import Scope

from socialpub.sandbox.memory import Token

FORM = "application/x-www-form-urlencoded"

Headers = list[tuple[str, str]]


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


class BodyPart(NamedTuple):
    """A part of a multipart body."""

    name: str
    content_type: str | None
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


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
    parts: list[BodyPart] | None = None
    """The parts of a whole multipart body, in their order."""
    token: Token | None = None
    account: Any = None
    """The account of the access token, where an endpoint needs one."""
    reply_headers: Headers = field(default_factory=list)
    """The headers of every response to this request, even of a refusal."""

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

    def may(self, *scopes: str) -> bool:
        """Return whether the token has these scopes."""
        return self.token is not None and set(scopes) <= set(self.token.scopes)

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

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def json_object(self) -> dict[str, Any]:
        """Return the body, or an empty object if it is not a JSON object. The stand-ins check bodies before."""
        try:
            body = json.loads(self.body)
        except ValueError:
            body = None
        return body if isinstance(body, dict) else {}
