"""What a request brings beside its body: ids in the path, the query, the key under which it may be repeated."""

from collections.abc import Mapping
from typing import Any

from socialpub.web.endpoint import Endpoint
from socialpub.web.openapi.words import PATH_PARAMETERS
from socialpub.web.shapes import Query

EMPTY_MEANS_DEFAULT = "An empty value or `null` means the default"


def of_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    uuid = {"type": "string", "format": "uuid"}
    return [
        {"name": name, "in": "path", "required": True, "description": PATH_PARAMETERS[name], "schema": uuid}
        for name in names
    ]


def of_query(query: type[Query] | None, schemas: Mapping[type[Query], dict[str, Any]]) -> list[dict[str, Any]]:
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


def of_head(target: Endpoint) -> list[dict[str, Any]]:
    if target.replay is None:
        return []
    description = (
        "Sent again with the same key, the same request is answered as before and does nothing more (24 hours). The "
        "same key with another request is a 409"
    )
    schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"}
    return [{"name": "Idempotency-Key", "in": "header", "description": description, "schema": schema}]
