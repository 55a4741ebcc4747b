"""`/api/v1/openapi-docs`: the OpenAPI 3.1 document, built from the routes and the shapes that check every request."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import orjson
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from socialpub.accounts import api_keys
from socialpub.core import errors, units
from socialpub.providers.options import LANGUAGE_TAG, Option, OptionType, Table
from socialpub.providers.registry import LABELS, OPTIONS, SPECIFIED
from socialpub.runtime import Runtime
from socialpub.web.http.endpoint import Endpoint, EndpointFunction, find_caller, public
from socialpub.web.http.responses import JSONResponse, prefers_page, relative_root
from socialpub.web.http.shapes import Query, Shape
from socialpub.web.openapi import operations
from socialpub.web.openapi.operations import EXAMPLES, OPERATIONS, PATH_PARAMETERS, Operation
from socialpub.web.openapi.schemas import PostAnswer, ProblemSchema
from socialpub.web.pages.pages import PROBLEM_PAGES, ReferencePages

# --- options ---------------------------------------------------------------------------------------------------------


def option_component(provider: str) -> str:
    return f"{LABELS[provider]}Options"


def option_schemas(networks: Sequence[str] = SPECIFIED) -> dict[str, dict[str, Any]]:
    return {
        option_component(provider): {
            **_option_schema(LABELS[provider], OPTIONS[provider]),
            "examples": [EXAMPLES["options"][provider]],
        }
        for provider in networks
    }


def _option_schema(label: str, table: Table) -> dict[str, Any]:
    respelt = next(option for option in table if option.snake_name != option.name)
    return {
        "type": "object",
        "description": f"Options for {label}. Keys may also be written in snake_case (`{respelt.snake_name}`). `null` "
        "removes the default that is stored with the profile. An unknown key or an invalid value fails the delivery. "
        "Use `POST /posts/validate` to find such errors before publishing.",
        "properties": {option.name: _option(option) for option in table},
        "additionalProperties": True,
    }


def _option(option: Option) -> dict[str, Any]:
    # Only the description contains the default. Generators send a `default` with every post, and it would override the
    # options that the owner stored with the profile.
    default = option.default
    default_text = str(default).lower() if isinstance(default, bool) else default
    description = option.meaning if default is None else f"{option.meaning} Default: `{default_text}`."
    return {**_value(option), "description": description}


def _value(option: Option) -> dict[str, Any]:
    max_length = {} if option.maximum is None else {"maxLength": option.maximum}
    match option.type:
        case OptionType.BOOLEAN:
            return {"type": "boolean"}
        case OptionType.INTEGER:
            maximum = {} if option.maximum is None else {"maximum": option.maximum}
            return {"type": "integer", "minimum": option.minimum, **maximum}
        case OptionType.TEXT:
            return {"type": "string", "pattern": r"\S", **max_length}
        case OptionType.DIGITS:
            return {"type": "string", "pattern": "^[0-9]+$", **max_length}
        case OptionType.LINK:
            return {"type": "string", "pattern": r"^[Hh][Tt][Tt][Pp][Ss]?://\S+$", **max_length}
        case OptionType.COLOR:
            return {"type": "string", "pattern": "^#[0-9A-Fa-f]{6}$"}
        case OptionType.CHOICE:
            return {"type": "string", "enum": list(option.values)}
        case OptionType.CHOICES:
            items = {"type": "string", "enum": list(option.values)}
            return {"type": "array", "items": items, "minItems": 1, "uniqueItems": True}
        case OptionType.LANGUAGES:
            items = {"type": "string", "pattern": f"^{LANGUAGE_TAG.pattern}$"}
            most = {} if option.maximum is None else {"maxItems": option.maximum}
            return {"type": "array", "items": items, "minItems": 1, **most, "uniqueItems": True}
        case OptionType.ARTIFACT | OptionType.POST:
            return {"type": "string", "format": "uuid"}


# --- components ------------------------------------------------------------------------------------------------------

PREFIX = "#/components/schemas/"
FORM = "PostForm"

SECURITY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "spk_<id>_<secret>",
    "description": "`Authorization: Bearer <API_KEY>`. The owner creates keys in the dashboard, under Keys, or with "
    "`socialpub admin create-key`",
}


def _header(description: str, **schema: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string", **schema}}


_WHOLE = {"type": "integer", "minimum": 0}
HEADERS: dict[str, Any] = {
    "X-Request-Id": _header(
        "The id of this request, which is also in the log. If the request had this header, the same value"
    ),
    "RateLimit-Limit": _header("Requests that this key may send per minute", **_WHOLE),
    "RateLimit-Remaining": _header("Requests that are left", **_WHOLE),
    "RateLimit-Reset": _header("Seconds until the limit resets", **_WHOLE),
    "Retry-After": _header("Seconds to wait before a retry", **_WHOLE),
    "Location": _header("The URL of the new post", format="uri"),
    "Idempotency-Replayed": _header("`true` if this is a repeat of the first response", enum=["true"]),
    "WWW-Authenticate": _header("The authentication scheme: `Bearer`", enum=["Bearer"]),
    "Allow": _header("The methods that this path supports"),
}


def ref(shape: type[Shape]) -> dict[str, str]:
    """Return a reference to the component of a shape."""
    return {"$ref": PREFIX + _component(shape.__name__)}


def named_schemas(described: Iterable[tuple[Endpoint, Operation]], extensions: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return every schema, including the queries, by component name. `extensions` as in `build`."""
    shapes: list[type[Shape]] = [ProblemSchema]
    forms: list[type[Shape]] = []
    for target, operation in described:
        forms += [target.form.shape] if target.form else []
        shapes += [shape for shape in (target.body, target.query, *forms, operation.success.shape) if shape is not None]
    _, schema = models_json_schema(
        [(shape.for_networks(extensions), "validation") for shape in dict.fromkeys(shapes)],
        ref_template=PREFIX + "{model}",
        schema_generator=_ComponentNames,
    )
    networks = (*SPECIFIED, *extensions)
    schemas: dict[str, Any] = {
        **clean_schema(schema["$defs"]),
        **option_schemas(networks),
        FORM: _form_schema(forms[0]),
    }
    if extensions:
        labels = ", ".join(f"`{name}` is {LABELS[name]}" for name in networks)
        schemas["Provider"] |= {"enum": list(networks), "description": f"A network: {labels}."}
    for provider, field in schemas["ProviderOptions"]["properties"].items():
        schemas["ProviderOptions"]["properties"][provider] = {
            "$ref": PREFIX + option_component(provider),
            "description": field["description"],
        }
    return dict(sorted(schemas.items()))


_FILE_PART = (
    "The bytes of a file. If the part declares `application/octet-stream` or no type, the bytes determine the type"
)


def _form_schema(payload: type[Shape]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "A new post with its files: the text field `payload`, and one file part for each "
        "`media[].fileField`",
        "required": ["payload"],
        "properties": {"payload": {**ref(payload), "description": "The post as JSON"}},
        "additionalProperties": {"type": "string", "format": "binary", "description": _FILE_PART},
    }


class _ComponentNames(GenerateJsonSchema):
    def normalize_name(self, name: str) -> str:
        return _component(super().normalize_name(name))


def _component(name: str) -> str:
    return name.removesuffix("Schema")


def clean_schema(schema: Any) -> Any:
    """Return the schema without titles and without the default `null` of optional fields."""
    if isinstance(schema, list):
        return [clean_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: {key: clean_schema(item) for key, item in value.items()} if name == "properties" else clean_schema(value)
        for name, value in schema.items()
        if not (name == "title" and isinstance(value, str)) and not (name == "default" and value is None)
    }


# --- parameters ------------------------------------------------------------------------------------------------------

EMPTY_MEANS_DEFAULT = "An empty value or `null` means the default"


def query_parameters(query: type[Query] | None, schemas: Mapping[type[Query], dict[str, Any]]) -> list[dict[str, Any]]:
    if query is None:
        return []
    parameters = []
    for name, schema in schemas[query]["properties"].items():
        schema_shown = {key: value for key, value in schema.items() if key != "description"}
        words = [schema["description"]]
        if name in query.NULLABLE:
            words.append(EMPTY_MEANS_DEFAULT)
            schema_shown["type"] = [schema_shown["type"], "null"]
        parameter = {"name": name, "in": "query", "description": ". ".join(words), "schema": schema_shown}
        if name not in query.NEVER_EMPTY:
            parameter["allowEmptyValue"] = True
        if schema.get("type") == "array":
            parameter |= {"style": "form", "explode": False}
        parameters.append(parameter)
    return parameters


def header_parameters(target: Endpoint) -> list[dict[str, Any]]:
    if target.replay is None:
        return []
    description = (
        "If you repeat a request with the same key within 24 hours, you get the first response again. The request is "
        "not executed again. A different request with the same key is 409"
    )
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}]


# --- responses -------------------------------------------------------------------------------------------------------

_ALWAYS = ("X-Request-Id",)
_RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_PROBLEM_HEADERS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After", *_RATE),
    503: ("Retry-After",),
}
_ERROR_BY_STATUS: Mapping[int, type[errors.SocialpubError]] = {kind.status: kind for kind in errors.ALL}


def responses(base_url: str, target: Endpoint, operation: Operation) -> dict[str, Any]:
    status, meaning, shape, example = operation.success
    replayed = ("Idempotency-Replayed",) if target.replay is not None else ()
    location = ("Location",) if shape is PostAnswer and status == 201 else ()
    success = {"description": meaning, "headers": _headers(*_ALWAYS, *_RATE, *location, *replayed)}
    if shape is not None:
        success["content"] = {"application/json": {"schema": ref(shape), "example": example}}
    responses = {str(status): success}
    for status in sorted({*_usual_problems(target), *operation.problems}):
        responses[str(status)] = _problem(base_url, status, target, operation)
    return responses


def _usual_problems(target: Endpoint) -> set[int]:
    statuses = {400, 401, 405, 408, 413, 429, 431, 500, 503}
    if target.scope == "write":
        statuses.add(403)
    if target.resource is not None:
        statuses.add(404)
    if target.body is not None:
        statuses.add(415)
    return statuses


def _problem(base_url: str, status: int, target: Endpoint, operation: Operation) -> dict[str, Any]:
    kind = _ERROR_BY_STATUS[status]
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
    # While the first request with an Idempotency-Key runs.
    repeat = ("Retry-After",) if status == 409 and target.replay is not None else ()
    return {
        "description": meaning,
        "headers": _headers(*_ALWAYS, *_PROBLEM_HEADERS.get(status, ()), *repeat),
        "content": {"application/problem+json": {"schema": ref(ProblemSchema), "example": example}},
    }


def _failing_field(target: Endpoint) -> tuple[str, str]:
    """Return a field of the request for the example of a problem, and its message."""
    needed = [field for field in target.body.model_fields.values() if field.is_required()] if target.body else []
    if needed:
        return needed[0].alias or "", "is required"
    numbers = [field for field in target.query.model_fields.values() if field.annotation is int] if target.query else []
    if numbers:
        return numbers[-1].alias or "", "must be a whole number"
    return "color", "is not known; remove it"


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


# --- document --------------------------------------------------------------------------------------------------------

VERSION = "1.0.0"
BELOW = "/api/v1"


def endpoint_for(routes: Sequence[Route]) -> Callable[[Request], Awaitable[Response]]:
    """Return the handler that shows the document of these routes: JSON, or a viewer for browsers.

    `?format=json` selects the JSON, and `?format=page` a page that works without JavaScript.
    """
    reference = ReferencePages(lambda *about: build(routes, *about))

    @cache
    def as_json(base_url: str, extensions: tuple[str, ...]) -> bytes:
        return orjson.dumps(build(routes, base_url, extensions))

    @public
    async def show(rt: Runtime, request: Request) -> Response:
        base_url = rt.settings.base_url
        # Without a key, the document describes the specification. With a key, it also describes what that key sees.
        has_more = bool(api_keys.list_extensions(rt))
        asking = find_caller(request) if has_more else None
        extensions = () if asking is None else api_keys.list_extensions(rt, asking)
        wanted = request.scope["query_string"].split(b"&")
        if b"format=page" in wanted:
            return reference.plain(base_url, extensions)
        if prefers_page(request) and b"format=json" not in wanted:
            return reference.viewer(base_url, extensions, relative_root(request))
        return JSONResponse(as_json(base_url, extensions), headers={"vary": "Authorization"} if has_more else None)

    return show


def build(routes: Iterable[Route], base_url: str, extensions: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the document of the specification's networks and of these `extensions`."""
    targets = {f"{method} {path}": target for path, method, target in endpoints(routes)}
    schemas = named_schemas(((targets[name], operation) for name, operation in OPERATIONS.items()), extensions)
    asked = {target.query for target in targets.values() if target.query}
    queries = {query: schemas.pop(query.__name__) for query in asked}
    uuid = {"type": "string", "format": "uuid"}
    networks = units.listed([LABELS[name] for name in (*SPECIFIED, *extensions)])
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in OPERATIONS.items():
        method, _, path = name.partition(" ")
        target = targets[name]
        paths.setdefault(path, {})[method.lower()] = {
            "operationId": operation.id,
            "tags": [operation.tag],
            "summary": operation.summary,
            "description": " ".join(
                filter(None, (operation.notes, f"Requires a key with the scope `{target.scope}`."))
            ),
            "parameters": [
                *(
                    {"name": part, "in": "path", "required": True, "description": meaning, "schema": uuid}
                    for part, meaning in PATH_PARAMETERS.items()
                    if f"{{{part}}}" in path
                ),
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
            "summary": f"Publishes to {networks}.",
            "description": operations.introduction(base_url, networks),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url, "description": "This appliance"}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": description} for name, description in operations.TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": SECURITY_SCHEME},
            "headers": HEADERS,
            "schemas": schemas,
        },
    }


def endpoints(routes: Iterable[Route]) -> Iterable[tuple[str, str, Endpoint]]:
    """Return the path, the method and the endpoint of each route below `BELOW`."""
    for route in routes:
        (method,) = (route.methods or set()) - {"HEAD"}
        yield BELOW + route.path_format, method, cast("EndpointFunction", route.endpoint).endpoint


def _request_body(target: Endpoint, operation: Operation) -> dict[str, Any]:
    if target.body is None:
        return {}
    contents: dict[str, Any] = {"application/json": {"schema": ref(target.body), "example": operation.request}}
    description = "The body as JSON"
    if target.form is not None:
        description += ", or as a form that contains the files"
        contents["multipart/form-data"] = {
            "schema": {"$ref": f"{PREFIX}{FORM}"},
            "encoding": {"payload": {"contentType": "application/json"}},
            "example": {"payload": operation.payload, "frost": "(the bytes of the file)"},
        }
    return {"requestBody": {"required": not target.body_optional, "description": description, "content": contents}}
