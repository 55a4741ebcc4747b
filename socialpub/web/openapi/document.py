"""`/api/v1/openapi-docs`: the OpenAPI 3.1 document, made from the routes and the shapes that check every request.

What it says of an endpoint is read from the endpoint itself wherever that is possible, so the two cannot differ. It is
written for generators of clients as much as for readers: rules that several fields make together are said in words,
since a choice of schemas beside `properties` takes the fields away from most generated clients.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson
from starlette.routing import Route

from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.endpoint import Endpoint, Methods, endpoint
from socialpub.web.openapi import answers, code_samples, components, parameters, words
from socialpub.web.openapi.components import ref
from socialpub.web.openapi.operations import OPERATIONS, Operation
from socialpub.web.pages.reference import ReferencePages
from socialpub.web.request import Request

VERSION = "1.0.0"


def endpoint_for(routes: Sequence[Route]) -> Endpoint:
    """The endpoint that shows the document of these routes: JSON, or for a browser a viewer that makes calls.

    With `?format=json` a browser gets the JSON as well, with `?format=page` the page for readers without JavaScript.
    """
    reference = ReferencePages(lambda base_url: build(routes, base_url))

    # Made once a process, when somebody asks: it does not change.
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
                *parameters.of_path(path),
                *parameters.of_query(target.query, queries),
                *parameters.of_head(target),
            ],
            **_request_body(target, operation),
            "responses": answers.of(base_url, target, operation),
            "x-codeSamples": code_samples.of(base_url, method, path, operation),
        }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Social Publishing Automation API",
            "version": VERSION,
            "summary": "Publishes to X, TikTok and Pinterest.",
            "description": words.introduction(base_url),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url, "description": "This appliance"}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": description} for name, description in words.TAGS.items()],
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
