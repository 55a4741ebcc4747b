"""`/api/v1/openapi-docs`: the OpenAPI 3.1 document, made from the routes and the shapes that check every request."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from starlette.routing import Route

from socialpub.core import errors
from socialpub.runtime import Runtime
from socialpub.web.http.answer import Answer
from socialpub.web.http.endpoint import Endpoint, Methods, endpoint
from socialpub.web.http.problems import PROBLEM_PAGES
from socialpub.web.http.request import Request
from socialpub.web.http.shapes import Query
from socialpub.web.openapi import components, operations
from socialpub.web.openapi.components import ref
from socialpub.web.openapi.operations import OPERATIONS, PATH_PARAMETERS, Operation
from socialpub.web.openapi.schemas import ProblemSchema
from socialpub.web.pages.reference import ReferencePages

# --- parameters ------------------------------------------------------------------------------------------------------

EMPTY_MEANS_DEFAULT = "An empty value or `null` means the default"


def path_parameters(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    uuid = {"type": "string", "format": "uuid"}
    return [
        {"name": name, "in": "path", "required": True, "description": PATH_PARAMETERS[name], "schema": uuid}
        for name in names
    ]


def query_parameters(query: type[Query] | None, schemas: Mapping[type[Query], dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters of a query whose schema is among `schemas`."""
    if query is None:
        return []
    found = []
    for name, schema in schemas[query]["properties"].items():
        shown = {key: value for key, value in schema.items() if key != "description"}
        words = [schema["description"], *([EMPTY_MEANS_DEFAULT] if name in query.LENIENT else [])]
        parameter = {"name": name, "in": "query", "description": ". ".join(words), "schema": shown}
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        found.append(parameter)
    return found


def header_parameters(target: Endpoint) -> list[dict[str, Any]]:
    if target.replay is None:
        return []
    description = (
        "Sent again with the same key, the same request is answered as before and does nothing more (24 hours). The "
        "same key with another request is a 409"
    )
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}]


# --- responses -------------------------------------------------------------------------------------------------------

_ALWAYS = ("X-Request-Id",)
_RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_OF_PROBLEMS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After", *_RATE),
    503: ("Retry-After",),
}
_OF_STATUS: Mapping[int, type[errors.SocialpubError]] = {kind.status: kind for kind in errors.ALL}


def responses(base_url: str, target: Endpoint, operation: Operation) -> dict[str, Any]:
    """Every answer by its status."""
    responses: dict[str, Any] = {}
    for status, (description, shape, example) in operation.answers.items():
        replayed = ("Idempotency-Replayed",) if target.replay is not None else ()
        headers = (*_ALWAYS, *_RATE, *operation.headers.get(status, ()), *replayed)
        responses[str(status)] = {"description": description, "headers": _headers(*headers)}
        if shape is not None:
            responses[str(status)]["content"] = {"application/json": {"schema": ref(shape), "example": example}}
    for status in sorted({*_usual_problems(target), *operation.problems}):
        responses[str(status)] = _problem(base_url, status, target, operation)
    return responses


def _usual_problems(target: Endpoint) -> set[int]:
    found = {400, 401, 405, 408, 413, 429, 431, 500, 503}
    if target.scope == "write":
        found.add(403)
    if target.resource is not None:
        found.add(404)
    if target.body is not None:
        found.add(415)
    return found


def _problem(base_url: str, status: int, target: Endpoint, operation: Operation) -> dict[str, Any]:
    """The answer of this failing status."""
    kind = _OF_STATUS[status]
    meaning = operation.problems.get(status, PROBLEM_PAGES[kind.slug].meaning)
    example: dict[str, Any] = {
        "type": f"{base_url}/problems/{kind.slug}",
        "title": kind.title,
        "status": status,
        "detail": meaning,
        "code": kind.code,
    }
    if status == 400:
        name, message = _failing_field(target)
        example |= {"detail": f"{name} {message}.", "errors": [{"path": [name], "message": message}]}
    return {
        "description": meaning,
        "headers": _headers(*_ALWAYS, *_OF_PROBLEMS.get(status, ())),
        "content": {"application/problem+json": {"schema": ref(ProblemSchema), "example": example}},
    }


def _failing_field(target: Endpoint) -> tuple[str, str]:
    """A field of the request that can fail, and what would be said about it."""
    needed = [field for field in target.body.model_fields.values() if field.is_required()] if target.body else []
    if needed:
        return needed[0].alias or "", "is required"
    if target.query is not None:
        return list(target.query.model_fields.values())[-1].alias or "", "must be a whole number"
    return "color", "is not known; leave it out"


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


# --- document --------------------------------------------------------------------------------------------------------

VERSION = "1.0.0"


def endpoint_for(routes: Sequence[Route]) -> Endpoint:
    """The endpoint that shows the document of these routes: JSON, or for a browser a viewer that makes calls.

    With `?format=json` a browser gets the JSON as well, with `?format=page` the page for readers without JavaScript.
    """
    reference = ReferencePages(lambda base_url: build(routes, base_url))

    # Made once per process, on the first request: it does not change.
    @cache
    def as_json(base_url: str) -> bytes:
        return orjson.dumps(build(routes, base_url))

    @endpoint(scope=None)
    async def show(rt: Runtime, caller: None, request: Request) -> Answer:  # noqa: ARG001
        base_url = rt.settings.base_url
        wanted = request.query_string.split(b"&")
        if b"format=page" in wanted:
            return reference.plain(base_url)
        if request.prefers_page() and b"format=json" not in wanted:
            return reference.viewer(base_url, request.relative_root)
        return Answer(200, as_json(base_url))

    return show


def build(routes: Iterable[Route], base_url: str) -> dict[str, Any]:
    """The whole document of an appliance that is reached at `base_url`, in the order of `OPERATIONS`."""
    targets = {f"{method} {path}": target for path, method, target in endpoints(routes)}
    schemas = components.schemas((targets[name], operation) for name, operation in OPERATIONS.items())
    asked = {target.query for target in targets.values() if target.query}
    queries = {query: schemas.pop(query.__name__) for query in asked}
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in OPERATIONS.items():
        method, _, path = name.partition(" ")
        target = targets[name]
        paths.setdefault(path, {})[method.lower()] = {
            "operationId": operation.id,
            "tags": [operation.tag],
            "summary": operation.summary,
            "description": " ".join(filter(None, (operation.notes, f"Needs a key with the scope `{target.scope}`."))),
            "parameters": [
                *path_parameters(path),
                *query_parameters(target.query, queries),
                *header_parameters(target),
            ],
            **_request_body(target, operation),
            "responses": responses(base_url, target, operation),
            "x-codeSamples": operations.code_samples(base_url, method, path, operation),
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Social Publishing Automation API",
            "version": VERSION,
            "summary": "Publishes to X, TikTok and Pinterest.",
            "description": operations.introduction(base_url),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url, "description": "This appliance"}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": description} for name, description in operations.TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": components.SECURITY_SCHEME},
            "headers": components.HEADERS,
            "schemas": schemas,
        },
    }


def endpoints(routes: Iterable[Route]) -> Iterable[tuple[str, str, Endpoint]]:
    """Every endpoint with its path and method."""
    for route in routes:
        if isinstance(route.endpoint, Methods):
            for method, target in route.endpoint.by_method.items():
                if isinstance(target, Endpoint):
                    yield route.path_format, method, target


def _request_body(target: Endpoint, operation: Operation) -> dict[str, Any]:
    if target.body is None:
        return {}
    contents: dict[str, Any] = {"application/json": {"schema": ref(target.body), "example": operation.request}}
    description = "As JSON"
    if target.form is not None:
        description += ", or as a form that brings its files along"
        contents["multipart/form-data"] = {
            "schema": {"$ref": f"{components.PREFIX}{components.FORM}"},
            "encoding": {"payload": {"contentType": "application/json"}},
            "example": {"payload": operation.payload, "frost": "(the bytes of the file)"},
        }
    return {"requestBody": {"required": not target.body_optional, "description": description, "content": contents}}
