"""`/api/v1/openapi-docs`: the OpenAPI 3.1 document, made from the routes and the shapes that check every request.

What it says of an endpoint is read from the endpoint itself wherever that is possible, so the two cannot differ.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from starlette.routing import Route

from socialpub.core import errors
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.endpoint import Endpoint, Methods, endpoint
from socialpub.web.openapi import schemas
from socialpub.web.openapi.operations import OPERATIONS, Operation
from socialpub.web.openapi.storage_paths import STORAGE_PATHS
from socialpub.web.pages import pages
from socialpub.web.request import Request
from socialpub.web.shapes import Query, Shape

VERSION = "1.0.0"
_SCHEMAS = "#/components/schemas/"
_ID_HEADER = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
_RATE_HEADERS = {
    name: {"$ref": f"#/components/headers/{name}"}
    for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
}


def endpoint_for(routes: Sequence[Route]) -> Endpoint:
    """The endpoint that shows the document of these routes: JSON, or a readable page for a browser."""

    @cache
    def built(base_url: str) -> dict[str, Any]:
        return build(routes, base_url)

    @endpoint(scope=None)
    async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
        document = built(rt.settings.base_url)
        if request.prefers_page():
            return Answer(200, pages.reference(document), pages.HEADERS, pages.HTML)
        return Answer(200, orjson.dumps(document))

    return show


def build(routes: Iterable[Route], base_url: str) -> dict[str, Any]:
    """The whole document of an appliance that is reached at `base_url`."""
    described = [
        (path, method, target, OPERATIONS[f"{method} {path}"])
        for path, method, target in endpoints(routes)
        if f"{method} {path}" in OPERATIONS
    ]
    paths: dict[str, dict[str, Any]] = {}
    for path, method, target, operation in described:
        paths.setdefault(path, {})[method.lower()] = _operation(base_url, path, target, operation)
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
        "paths": {**paths, **STORAGE_PATHS},
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "spk_<id>_<secret>"}},
            "headers": _headers(),
            "schemas": _schemas((target, operation) for _, _, target, operation in described),
        },
    }


def endpoints(routes: Iterable[Route]) -> Iterable[tuple[str, str, Endpoint]]:
    """Every endpoint with its path and method."""
    for route in routes:
        if isinstance(route.endpoint, Methods):
            for method, target in route.endpoint.by_method.items():
                yield route.path_format, method, target


# --- one operation ---------------------------------------------------------------------------------------------------


def _operation(base_url: str, path: str, target: Endpoint, operation: Operation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": " ".join(filter(None, (f"Needs a key with the scope `{target.scope}`.", operation.notes))),
        "parameters": [*_path_parameters(path), *_query_parameters(target.query), *_header_parameters(target)],
        "responses": _responses(base_url, target, operation),
    }
    if target.body is not None:
        shown["requestBody"] = {"required": True, "content": _contents(target, operation)}
    return shown


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
            meaning = {"description": f"Empty or `null`: the default, {schema['default']}"}
            schema = {"anyOf": [schema, {"type": "string", "enum": ["", "null"]}, {"type": "null"}], **meaning}
        parameter = {"name": name, "in": "query", "schema": schema}
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def _header_parameters(target: Endpoint) -> list[dict[str, Any]]:
    if target.replay is None:
        return []
    description = (
        "Sent again with the same key, the same request is answered as before and does nothing more (24 hours)"
    )
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}]


def _contents(target: Endpoint, operation: Operation) -> dict[str, Any]:
    assert target.body is not None
    contents: dict[str, Any] = {
        "application/json": {"schema": _ref(target.body), "example": operation.request},
    }
    if target.form is not None:
        contents["multipart/form-data"] = {
            "schema": {
                "type": "object",
                "required": ["payload"],
                "properties": {"payload": _ref(target.form.shape)},
                "additionalProperties": {"type": "string", "format": "binary"},
            },
            "encoding": {"payload": {"contentType": "application/json"}},
            "example": {"payload": operation.payload, "frost": "(the bytes of the file)"},
        }
    return contents


def _responses(base_url: str, target: Endpoint, operation: Operation) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, (description, shape, example) in operation.answers.items():
        headers = {**_ID_HEADER, **_RATE_HEADERS}
        headers |= {name: {"$ref": f"#/components/headers/{name}"} for name in operation.headers.get(status, ())}
        if target.replay is not None:
            headers["Idempotency-Replayed"] = {"$ref": "#/components/headers/Idempotency-Replayed"}
        responses[str(status)] = {"description": description, "headers": headers}
        if shape is not None:
            responses[str(status)]["content"] = {"application/json": {"schema": _ref(shape), "example": example}}
    for status in sorted({*_usual_problems(target), *operation.problems}):
        responses[str(status)] = _problem(base_url, status)
    return responses


def _usual_problems(target: Endpoint) -> set[int]:
    found = {401, 405, 429, 500, 503}
    if target.scope == "write":
        found.add(403)
    if target.resource is not None:
        found.add(404)
    if target.query is not None or target.body is not None:
        found.add(400)
    if target.body is not None:
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


def _problem(base_url: str, status: int) -> dict[str, Any]:
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
        "content": {"application/problem+json": {"schema": _ref(schemas.ProblemSchema), "example": example}},
    }


def _headers() -> dict[str, Any]:
    def header(description: str, **schema: Any) -> dict[str, Any]:
        return {"description": description, "schema": {"type": "string", **schema}}

    whole = {"type": "integer", "minimum": 0}
    return {
        "X-Request-Id": header("This request's id, also in the log; the caller's own when it sent one"),
        "RateLimit-Limit": header("Requests a minute that this key may send", **whole),
        "RateLimit-Remaining": header("How many of them are left", **whole),
        "RateLimit-Reset": header("Seconds until all of them are available again", **whole),
        "Retry-After": header("Seconds to wait before the next try", **whole),
        "Location": header("Where the new post is", format="uri"),
        "Idempotency-Replayed": header("`true` when this is the first answer again", enum=["true"]),
        "WWW-Authenticate": header("How to authenticate", enum=["Bearer"]),
        "Allow": header("The methods that this address supports"),
    }


class _ComponentNames(GenerateJsonSchema):
    """`PostSchema` is called `Post` in the document."""

    def normalize_name(self, name: str) -> str:
        return _component(super().normalize_name(name))


def _component(name: str) -> str:
    return name.removesuffix("Schema")


def _ref(shape: type[Shape]) -> dict[str, str]:
    return {"$ref": _SCHEMAS + _component(shape.__name__)}


def _schemas(described: Iterable[tuple[Endpoint, Operation]]) -> dict[str, Any]:
    shapes: list[type[Shape]] = [schemas.ProblemSchema]
    for target, operation in described:
        bodies = (target.body, target.form.shape if target.form else None)
        answers = (shape for _, shape, _ in operation.answers.values())
        shapes += [shape for shape in (*bodies, *answers) if shape is not None]
    _, schema = models_json_schema(
        [(shape, "validation") for shape in dict.fromkeys(shapes)],
        ref_template=_SCHEMAS + "{model}",
        schema_generator=_ComponentNames,
    )
    found: dict[str, Any] = _cleaned(schema["$defs"])
    _add_rules_of_several_fields(found)
    return dict(sorted(found.items()))


def _add_rules_of_several_fields(schemas: dict[str, Any]) -> None:
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
