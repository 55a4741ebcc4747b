"""`/api/v1/openapi-docs`: the OpenAPI 3.1 document, made from the routes and the shapes that check every request.

What it says of an endpoint is read from the endpoint itself wherever that is possible, so the two cannot part.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson
from pydantic.json_schema import models_json_schema
from starlette.routing import Route

from socialpub.core import errors
from socialpub.runtime import Runtime
from socialpub.web.api.requests import FormDraft
from socialpub.web.endpoint import Answer, Endpoint, Methods, Request, endpoint
from socialpub.web.openapi import schemas
from socialpub.web.openapi.examples import DESCRIBED, Described
from socialpub.web.openapi.storage_paths import TRANSFERS
from socialpub.web.request import JSON
from socialpub.web.shapes import Query, Shape

VERSION = "1.0.0"
_SCHEMAS = "#/components/schemas/"
_ID_HEADER = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
_RATE_HEADERS = {
    name: {"$ref": f"#/components/headers/{name}"}
    for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
}


@endpoint(scope=None)
async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
    """The document; a readable page for a browser."""
    if request.accepts_html():
        from socialpub.web.pages import pages

        return Answer(200, pages.reference(document(rt.settings.base_url)), pages.HEADERS, pages.HTML)
    return Answer(200, orjson.dumps(document(rt.settings.base_url)), (), JSON)


@lru_cache(maxsize=2)
def document(base_url: str) -> dict[str, Any]:
    """The whole document of an appliance that is reached at `base_url`."""
    from socialpub.web.routes import routes

    described = [
        (path, method, one, DESCRIBED[f"{method} {path}"])
        for path, method, one in operations(routes())
        if f"{method} {path}" in DESCRIBED
    ]
    paths: dict[str, dict[str, Any]] = {}
    for path, method, one, words in described:
        paths.setdefault(path, {})[method.lower()] = _operation(base_url, path, one, words)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Social Publishing Automation API",
            "version": VERSION,
            "description": "Publishes to X, TikTok and Pinterest. Creating a post is an acceptance: the outcome "
            "of each delivery is read from the post. Every answer carries `X-Request-Id`; every failure is a problem.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url}],
        "security": [{"key": []}],
        "tags": [{"name": name} for name in ("Posts", "Profiles", "Uploads", "Publishing logs")],
        "paths": {**paths, **TRANSFERS},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "spk_<id>_<secret>"}},
            "headers": _headers(),
            "schemas": _schemas(described),
        },
    }


def operations(routes: Iterable[Route]) -> Iterable[tuple[str, str, Endpoint]]:
    """Every endpoint with its path and method."""
    for route in routes:
        if isinstance(route.endpoint, Methods):
            for method, one in route.endpoint.by_method.items():
                yield route.path_format, method, one


# --- one operation ---------------------------------------------------------------------------------------------------


def _operation(base_url: str, path: str, one: Endpoint, words: Described) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": words.id,
        "tags": [words.tag],
        "summary": words.summary,
        "description": " ".join(filter(None, (f"Needs a key with the scope `{one.scope}`.", words.notes))),
        "parameters": [*_path_parameters(path), *_query_parameters(one.query), *_header_parameters(one)],
        "responses": _responses(base_url, one, words),
    }
    if one.body is not None:
        operation["requestBody"] = {"required": True, "content": _contents(one, words)}
    return operation


def _path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    uuid = {"type": "string", "format": "uuid"}
    return [{"name": name, "in": "path", "required": True, "schema": uuid} for name in names]


def _query_parameters(query: type[Query] | None) -> list[dict[str, Any]]:
    if query is None:
        return []
    found = []
    for name, schema in _cleaned(query.model_json_schema())["properties"].items():
        if name in query.LENIENT:
            # What a client writes for "no value" is taken as such: empty, or null.
            said = {"description": f"Empty or `null`: the default, {schema['default']}"}
            schema = {"anyOf": [schema, {"type": "string", "enum": ["", "null"]}, {"type": "null"}], **said}
        parameter = {"name": name, "in": "query", "schema": schema}
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def _header_parameters(one: Endpoint) -> list[dict[str, Any]]:
    if one.replay is None:
        return []
    said = "Sent again with the same key, the same request is answered as before and does nothing more (24 hours)"
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "description": said, "schema": schema}]


def _contents(one: Endpoint, words: Described) -> dict[str, Any]:
    assert one.body is not None
    contents: dict[str, Any] = {
        "application/json": {"schema": _ref(one.body), "example": words.request},
    }
    if one.multipart is not None:
        contents["multipart/form-data"] = {
            "schema": {
                "type": "object",
                "required": ["payload"],
                "properties": {"payload": _ref(FormDraft)},
                "additionalProperties": {"type": "string", "format": "binary"},
            },
            "encoding": {"payload": {"contentType": "application/json"}},
            "example": {"payload": words.payload, "frost": "(the bytes of the file)"},
        }
    return contents


def _responses(base_url: str, one: Endpoint, words: Described) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, (said, shape, example) in words.answers.items():
        headers = {**_ID_HEADER, **_RATE_HEADERS}
        headers |= {name: {"$ref": f"#/components/headers/{name}"} for name in words.headers.get(status, ())}
        if one.replay is not None:
            headers["Idempotency-Replayed"] = {"$ref": "#/components/headers/Idempotency-Replayed"}
        responses[str(status)] = {"description": said, "headers": headers}
        if shape is not None:
            responses[str(status)]["content"] = {"application/json": {"schema": _ref(shape), "example": example}}
    for status in sorted({*_usual_problems(one), *words.problems}):
        responses[str(status)] = problem(base_url, status)
    return responses


def _usual_problems(one: Endpoint) -> set[int]:
    found = {401, 405, 429, 500, 503}
    if one.scope == "write":
        found.add(403)
    if one.resource is not None:
        found.add(404)
    if one.query is not None or one.body is not None:
        found.add(400)
    if one.body is not None:
        found |= {413, 415}
    return found


# --- components ------------------------------------------------------------------------------------------------------

_OF_STATUS: Mapping[int, type[errors.SocialpubError]] = {kind.status: kind for kind in errors.ALL}

_MORE_HEADERS = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"),
    503: ("Retry-After",),
}


def problem(base_url: str, status: int) -> dict[str, Any]:
    """The answer of this failing status."""
    kind = _OF_STATUS[status]
    example: dict[str, Any] = {
        "type": f"{base_url}/problems/{kind.slug}",
        "title": kind.title,
        "status": status,
        "detail": "What happened, and what to change.",
        "code": kind.code,
    }
    if status == 400:
        example["errors"] = [{"path": ["media", 0, "artifactId"], "message": "must be a UUID"}]
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in _MORE_HEADERS.get(status, ())}
    return {
        "description": kind.title,
        "headers": {**_ID_HEADER, **headers},
        "content": {"application/problem+json": {"schema": _ref(schemas.Problem), "example": example}},
    }


def _headers() -> dict[str, Any]:
    def header(said: str, **schema: Any) -> dict[str, Any]:
        return {"description": said, "schema": {"type": "string", **schema}}

    whole = {"type": "integer", "minimum": 0}
    return {
        "X-Request-Id": header("This request's id, also in the log; the caller's own when it sent one"),
        "RateLimit-Limit": header("Requests a minute that this key may send", **whole),
        "RateLimit-Remaining": header("How many of them are left", **whole),
        "RateLimit-Reset": header("Seconds until they are all there again", **whole),
        "Retry-After": header("Seconds to wait before the next try", **whole),
        "Location": header("Where the new post is", format="uri"),
        "Idempotency-Replayed": header("`true` when this is the first answer again", enum=["true"]),
        "WWW-Authenticate": header("How to authenticate", enum=["Bearer"]),
        "Allow": header("The methods that this address knows"),
    }


def _schemas(described: Iterable[tuple[str, str, Endpoint, Described]]) -> dict[str, Any]:
    shapes: dict[str, type[Shape]] = {"Problem": schemas.Problem, "FormDraft": FormDraft}
    for _, _, one, words in described:
        for shape in (one.body, *(answer[1] for answer in words.answers.values())):
            if shape is not None:
                shapes[shape.__name__] = shape
    _, schema = models_json_schema(
        [(shape, "validation") for shape in shapes.values()], ref_template=_SCHEMAS + "{model}"
    )
    found: dict[str, Any] = _cleaned(schema["$defs"])
    _say_what_is_needed_together(found)
    return dict(sorted(found.items()))


def _say_what_is_needed_together(schemas: dict[str, Any]) -> None:
    """The rules that several fields make together (`across` in requests.py), as far as a schema can say them."""
    needs_media = {"required": ["media"]}
    needs_body = {"properties": {"post": {"required": ["body"]}}}
    for name in ("PostDraft", "FormDraft"):
        schemas[name]["anyOf"] = [needs_media, needs_body]
    schemas["FormMediaItem"]["oneOf"] = [{"required": ["fileField"]}, {"required": ["artifactId"]}]
    schemas["PostChange"]["anyOf"] = [
        {"required": ["media"]},
        {"required": ["providerOptions"]},
        {"required": ["post"], "properties": {"post": {"minProperties": 1}}},
    ]


def _ref(shape: type[Shape]) -> dict[str, str]:
    return {"$ref": _SCHEMAS + shape.__name__}


def _cleaned(schema: Any) -> Any:
    """Without what the library adds for itself: titles, and a null as the default of what may be left out."""
    if isinstance(schema, list):
        return [_cleaned(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: _cleaned(item) for key, item in value.items()} if name == "properties" else _cleaned(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }
