"""Responses of the API, and what a client accepts."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
import starlette.responses
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"
HTML = "text/html; charset=utf-8"
_HTML_TYPE = "text/html"

Headers = Mapping[str, str]


class JSONResponse(starlette.responses.JSONResponse):
    """JSON. Bytes are JSON already, because SQLite builds the JSON of posts."""

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else orjson.dumps(content)


def ok(content: bytes) -> Response:
    return JSONResponse(b'{"data":' + content + b"}")


def created(content: bytes, location: str | None = None) -> Response:
    return JSONResponse(b'{"data":' + content + b"}", 201, None if location is None else {"location": location})


# --- content negotiation ----------------------------------------------------------------------------------------------

_WEIGHT = re.compile(r"q=([01](?:\.[0-9]{0,3})?)")


def prefers_page(request: Request) -> bool:
    """Return whether the client is a browser: it accepts a page and does not prefer JSON."""
    accept = request.headers.get("accept", "").lower()
    if _HTML_TYPE not in accept:
        return False
    weights = dict(_read_weight(one) for one in accept.split(","))
    page_weight = weights.get(_HTML_TYPE, 0.0)
    return page_weight > 0 and page_weight >= weights.get(JSON, 0.0)


def _read_weight(one: str) -> tuple[str, float]:
    media_type, *parameters = one.split(";")
    matches = (_WEIGHT.fullmatch(parameter.strip()) for parameter in parameters)
    return media_type.strip(), next((float(match[1]) for match in matches if match), 1.0)


def relative_root(request: Request) -> str:
    """Return the relative URL of the appliance's own `/`, such as `../../`. It works below any path of base_url."""
    raw_path: bytes = request.scope["raw_path"]
    return "../" * (raw_path.count(b"/") - 1) or "./"
