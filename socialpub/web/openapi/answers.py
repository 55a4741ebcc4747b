"""The answers of an operation: what it gives, and every way in which it can fail."""

from collections.abc import Mapping
from typing import Any

from socialpub.core import errors
from socialpub.web.endpoint import Endpoint
from socialpub.web.openapi.components import ref
from socialpub.web.openapi.operations import Operation
from socialpub.web.openapi.schemas import ProblemSchema
from socialpub.web.pages.problems import PAGES

_ALWAYS = ("X-Request-Id",)
_RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_OF_PROBLEMS: Mapping[int, tuple[str, ...]] = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    429: ("Retry-After", *_RATE),
    503: ("Retry-After",),
}
_OF_STATUS: Mapping[int, type[errors.SocialpubError]] = {kind.status: kind for kind in errors.ALL}


def of(base_url: str, target: Endpoint, operation: Operation) -> dict[str, Any]:
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
    meaning = operation.problems.get(status, PAGES[kind.slug].meaning)
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
