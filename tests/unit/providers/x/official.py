"""Compares scripted requests with X's two OpenAPI documents: one of them must describe the whole request."""

import json
import re
from functools import cache
from typing import Any

import jsonschema
import pytest

from tests.support.provider_documents import document

GENERATIONS = ("x.json", "x-2.166.json")
UNDESCRIBED = ("/2/oauth2/token", "/2/oauth2/revoke")
"""Only on X's pages."""


@cache
def present() -> bool:
    try:
        return all(_load(name) for name in GENERATIONS)
    except pytest.skip.Exception:
        return False


def complaints(method: str, path: str, params: dict[str, str], body: Any, fields: dict[str, str] | None) -> list[str]:
    if path in UNDESCRIBED or not present():
        return []
    found: list[str] = []
    for name in GENERATIONS:
        wrong = _against(name, method, path, params, body, fields)
        if not wrong:
            return []
        found += [f"{name}: {what}" for what in wrong]
    return found


@cache
def _load(name: str) -> Any:
    return json.loads(document("openapi", name).read_text())


def _against(
    name: str, method: str, path: str, params: dict[str, str], body: Any, fields: dict[str, str] | None
) -> list[str]:
    described = _load(name)
    operation = _operation(described, method, path)
    if operation is None:
        return [f"{method} {path} does not exist"]
    wrong = list(_wrong_params(described, operation, params))
    content = operation.get("requestBody", {}).get("content")
    if content is None:
        # Neither document has a body for `finalize`, but X refuses the call without a JSON object.
        return wrong + ([] if body in (None, {}) and fields is None else ["it has no body"])
    if fields is not None:
        schema = content["multipart/form-data"]["schema"]
        typed = {key: int(value) if key == "segment_index" else value for key, value in fields.items()}
        return wrong + _invalid(described, schema, typed)
    return wrong + _invalid(described, content["application/json"]["schema"], body)


def parts(path: str) -> tuple[set[str], set[str]]:
    described = _load(GENERATIONS[0])
    operation = _operation(described, "POST", path) or {"requestBody": {"content": {}}}
    schema = operation["requestBody"]["content"].get("multipart/form-data", {}).get("schema", {})
    if "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    return set(schema.get("properties", ())), set(schema.get("required", ()))


def _operation(described: Any, method: str, path: str) -> Any:
    template = next((known for known in described["paths"] if _matches(known, path)), None)
    return described["paths"].get(template, {}).get(method.lower())


def _matches(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", r"[0-9]{1,19}", re.escape(template)), path) is not None


def _wrong_params(described: Any, operation: Any, params: dict[str, str]) -> list[str]:
    known = {}
    for parameter in operation.get("parameters") or []:
        if "$ref" in parameter:
            parameter = described["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[-1]]
        if parameter["in"] == "query":
            known[parameter["name"]] = parameter
    wrong = [f"unknown parameter {key}" for key in params if key not in known]
    wrong += [f"missing {key}" for key, one in known.items() if one.get("required") and key not in params]
    for key in set(params) & set(known):
        schema, value = known[key]["schema"], params[key]
        typed: Any = value
        if schema.get("type") == "array":
            typed = value.split(",")
        elif schema.get("type") == "integer":
            typed = int(value)
        wrong += _invalid(described, schema, typed)
    return wrong


def _invalid(described: Any, schema: Any, value: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator({**schema, "components": described["components"]})
    return [error.message for error in validator.iter_errors(value)]
