"""One request to a network.

It is read whole before anything is decided, so that a handler is a plain function without awaits: what it does to the
memory is done in one piece.
"""

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Scope

from socialpub.sandbox.multipart import BodyPart, read_parts

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
