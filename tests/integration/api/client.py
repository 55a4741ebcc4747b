"""A client of the API that validates every response against the OpenAPI document."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from socialpub.web.openapi.document import build
from socialpub.web.routes import API
from tests.integration.uploads.caller import Caller, Reply

BASE_URL = "http://127.0.0.1:8000"


@cache
def document() -> dict[str, Any]:
    return build(API, BASE_URL)


class Client(Caller):
    """`send` sends one request with the key and validates the response."""

    def send(self, method: str, path: str, body: Any = None, *, key: str | None = "", **headers: str) -> Reply:
        return self.run(self.sending(method, path, body, key=key, **headers))

    async def sending(self, method: str, path: str, body: Any = None, *, key: str | None = "", **headers: str) -> Reply:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            told.setdefault("authorization", f"Bearer {key or self.key}")
        raw = b""
        if body is not None:
            raw = body if isinstance(body, bytes) else json.dumps(body).encode()
            told.setdefault("content-type", "application/json")
        url = (
            path if path.startswith(("/storage", "/healthz", "/readyz", "/metrics", "/problems")) else f"/api/v1{path}"
        )
        reply = await self.asking(method, url, raw, told)
        check(method, url.partition("?")[0], reply)
        return reply


def form(payload: bytes, *files: tuple[str, str, bytes], boundary: str = "x") -> bytes:
    """Return a multipart form. Each file has a field name, a declared type and content."""
    parts = [('name="payload"\r\n', payload)]
    parts += [(f'name="{name}"; filename="a.png"\r\ncontent-type: {kind}\r\n', data) for name, kind, data in files]
    start = f"--{boundary}\r\ncontent-disposition: form-data; "
    return b"".join(f"{start}{head}\r\n".encode() + data + b"\r\n" for head, data in parts) + f"--{boundary}--".encode()


def check(method: str, path: str, reply: Reply) -> None:
    assert reply.headers["x-request-id"]
    if reply.status != 204:
        assert int(reply.headers["content-length"]) == len(reply.body)
    if reply.status >= 400 and reply.headers["content-type"] == "application/problem+json":
        assert_valid(reply.json(), "Problem")
        assert reply.json()["status"] == reply.status
        assert ("errors" in reply.json()) == (reply.status == 400)
    operation = _operation(method, path)
    if operation is None:
        return
    described = operation["responses"].get(str(reply.status))
    assert described is not None, f"{method} {path} answered {reply.status}, of which the document knows nothing"
    content = described.get("content")
    if content is None:
        assert reply.body == b""
        return
    schema = content[reply.headers["content-type"]]["schema"]
    assert_valid(reply.json(), schema["$ref"].rpartition("/")[2])
    for name in described["headers"]:
        if name not in ("Idempotency-Replayed", "Retry-After"):
            assert name.lower() in reply.headers, name


def assert_valid(value: Any, shape: str) -> None:
    found = errors(value, shape)
    assert not found, found


def errors(value: Any, shape: str) -> list[str]:
    """Return the errors of a value against the schema with this name."""
    return [f"{list(error.absolute_path)}: {error.message}" for error in _validator(shape).iter_errors(value)]


@cache
def _validator(shape: str) -> Draft202012Validator:
    components = document()["components"]
    schema = {"$ref": f"#/components/schemas/{shape}", "components": components}
    return Draft202012Validator(schema, format_checker=FormatChecker())


def _operation(method: str, path: str) -> Any:
    parts = path.split("/")
    for known, methods in document()["paths"].items():
        wanted = known.split("/")
        if len(parts) == len(wanted) and all(w == p or w[:1] == "{" for w, p in zip(wanted, parts, strict=True)):
            if known.endswith("{postId}") and parts[-1] == "validate":
                continue
            return methods.get(method.lower())
    return None
