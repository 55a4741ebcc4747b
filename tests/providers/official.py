"""Compares requests to the sandbox with the networks' own OpenAPI documents."""

import json
from functools import cache

from tests.stand_ins.world import RecordedRequest
from tests.unit.providers.pinterest import official as pinterest
from tests.unit.providers.x import official as x


def complaints(request: RecordedRequest) -> list[str]:
    """Return the complaints about this request. TikTok and Pinterest's storage have no document."""
    query = tuple(sorted(request.query.items()))
    if request.network == "x" and request.fields:
        return _form(request.path, tuple(name for name, _, _ in request.fields))
    if request.network == "x":
        return _of_x(request.method, request.path, query, json.dumps(request.json))
    if request.network == "pinterest" and request.path.startswith("/v5/") and "form" not in request.content_type:
        return _of_pinterest(request.method, request.path.removeprefix("/v5"), query, json.dumps(request.json))
    return []


@cache
def _of_x(method: str, path: str, query: tuple[tuple[str, str], ...], body: str) -> list[str]:
    return x.complaints(method, path, dict(query), json.loads(body), None)


@cache
def _of_pinterest(method: str, path: str, query: tuple[tuple[str, str], ...], body: str) -> list[str]:
    return pinterest.complaints(method, path, {"params": dict(query), "json": json.loads(body)})


@cache
def _form(path: str, names: tuple[str, ...]) -> list[str]:
    if not x.present():
        return []
    known, needed = x.parts(path)
    return [f"{path} has no part {name}" for name in names if name not in known] + [
        f"{path} lacks {name}" for name in needed - set(names)
    ]
