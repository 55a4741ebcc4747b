"""Responses of endpoints, and content negotiation."""

import re
from typing import NamedTuple

Header = tuple[bytes, bytes]

JSON = b"application/json"
CLOSE: Header = (b"connection", b"close")
"""The header of a response before the whole request body has arrived: the server does not read the rest."""


class Answer(NamedTuple):
    """A complete response. `headers` are additional to the headers of every response."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = JSON


def ok(content: bytes) -> Answer:
    return Answer(200, b'{"data":' + content + b"}")


def created(content: bytes, location: str | None = None) -> Answer:
    headers = () if location is None else ((b"location", location.encode()),)
    return Answer(201, b'{"data":' + content + b"}", headers)


# --- content negotiation ----------------------------------------------------------------------------------------------

PAGE, JSON_TYPE = b"text/html", b"application/json"

_WEIGHT = re.compile(rb"q=([01](?:\.[0-9]{0,3})?)")


def prefers_page(header: bytes | None) -> bool:
    """Return whether the client is a browser: it accepts a page and does not prefer JSON."""
    if header is None or PAGE not in (accept := header.lower()):
        return False
    weights = dict(_read_weight(one) for one in accept.split(b","))
    page_weight = weights.get(PAGE, 0.0)
    return page_weight > 0 and page_weight >= weights.get(JSON_TYPE, 0.0)


def accepts_gzip(header: bytes | None) -> bool:
    weights = dict(_read_weight(one) for one in (header or b"").lower().split(b","))
    return weights.get(b"gzip", weights.get(b"*", 0.0)) > 0


def _read_weight(one: bytes) -> tuple[bytes, float]:
    media_type, *parameters = one.split(b";")
    found = (_WEIGHT.fullmatch(parameter.strip()) for parameter in parameters)
    return media_type.strip(), next((float(match[1]) for match in found if match), 1.0)
