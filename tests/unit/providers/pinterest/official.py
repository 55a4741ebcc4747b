"""Compares scripted requests with Pinterest's own OpenAPI document. Unknown fields are a complaint."""

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema
import pytest
import yaml

from socialpub.providers.bodies import Base64File
from tests.support.provider_documents import document

FORM_BY_GRANT = {"authorization_code": "OauthAccessTokenRequestCode", "refresh_token": "OauthAccessTokenRequestRefresh"}

AI_DISCLOSURES = {
    "type": "object",
    "required": ["values"],
    "additionalProperties": False,
    "properties": {
        "values": {
            "type": "array",
            "minItems": 1,
            "uniqueItems": True,
            "items": {"enum": ["AI_MODIFIED", "SYNTHETIC_PERFORMER"]},
        }
    },
}


@cache
def present() -> bool:
    try:
        return bool(described())
    except pytest.skip.Exception:
        return False


@cache
def described() -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found = yaml.load(document("openapi", "pinterest.yaml").read_bytes(), loader)
    for schema in found["components"]["schemas"].values():
        if "properties" in schema and "allOf" not in schema:
            schema.setdefault("additionalProperties", False)
    # Newer than the document (5.28).
    found["components"]["schemas"]["PinCreate"]["properties"]["ai_disclosures"] = AI_DISCLOSURES
    return found


def complaints(method: str, path: str, request: Mapping[str, Any]) -> list[str]:
    if not present():
        return []
    found = described()
    template = next((known for known in found["paths"] if _matches(known, path)), "")
    operation = found["paths"].get(template, {}).get(method.lower())
    if operation is None:
        return [f"{method} {path} does not exist"]
    wrong = _wrong_params(operation, request.get("params") or {})
    content = operation.get("requestBody", {}).get("content")
    if content is None:
        return wrong + [f"it has no {kind}" for kind in ("json", "form") if request.get(kind) is not None]
    if "application/json" in content:
        return wrong + _invalid(content["application/json"]["schema"], written(request.get("json")))
    return wrong + _wrong_form(path, content["application/x-www-form-urlencoded"]["schema"], dict(request["form"]))


def written(body: Any) -> Any:
    def read(file: Base64File) -> str:
        return base64.b64encode(file.path.read_bytes()[: file.length]).decode()

    return json.loads(json.dumps(body, default=read))


def _wrong_form(path: str, schema: Any, form: dict[str, str]) -> list[str]:
    if path == "/oauth/token":
        # Only in the text of the description.
        form.pop("continuous_refresh", None)
        schema = {"$ref": f"#/components/schemas/{FORM_BY_GRANT[form['grant_type']]}"}
    return _invalid(schema, form)


def _matches(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", r"[0-9]+", re.escape(template)), path) is not None


def _wrong_params(operation: Any, params: Mapping[str, str]) -> list[str]:
    known = {}
    for parameter in operation.get("parameters") or []:
        if "$ref" in parameter:
            parameter = described()["components"]["parameters"][parameter["$ref"].rsplit("/", 1)[-1]]
        if parameter["in"] == "query":
            known[parameter["name"]] = parameter["schema"]
    wrong = [f"unknown parameter {name}" for name in params if name not in known]
    for name in set(params) & set(known):
        value: Any = int(params[name]) if known[name].get("type") == "integer" else params[name]
        wrong += _invalid(known[name], value)
    return wrong


def _invalid(schema: Any, value: Any) -> list[str]:
    validator = jsonschema.Draft202012Validator({**schema, "components": described()["components"]})
    return [error.message for error in validator.iter_errors(value)]
