"""What an endpoint returns, and what a caller accepts: a page or JSON, compressed or not."""

import re
from typing import NamedTuple

Header = tuple[bytes, bytes]

JSON = b"application/json"
CLOSE: Header = (b"connection", b"close")
"""On an answer given before the whole body has arrived: the rest is not read."""


class Answer(NamedTuple):
    """A whole answer. `headers` come on top of those that every answer has."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = JSON


def ok(content: bytes) -> Answer:
    """200 with this JSON as `data`."""
    return Answer(200, b'{"data":' + content + b"}")


def created(content: bytes, location: str | None = None) -> Answer:
    headers = () if location is None else ((b"location", location.encode()),)
    return Answer(201, b'{"data":' + content + b"}", headers)


# --- what a caller accepts -------------------------------------------------------------------------------------------

PAGE, JSON_TYPE = b"text/html", b"application/json"

_WEIGHT = re.compile(rb"q=([01](?:\.[0-9]{0,3})?)")


def prefers_page(header: bytes | None) -> bool:
    """Whether a page is accepted, and JSON is not preferred to it: a browser."""
    if header is None or PAGE not in (accept := header.lower()):
        return False
    weights = dict(_read_weight(one) for one in accept.split(b","))
    page_weight = weights.get(PAGE, 0.0)
    return page_weight > 0 and page_weight >= weights.get(JSON_TYPE, 0.0)


def accepts_gzip(header: bytes | None) -> bool:
    """Whether a body may be compressed with gzip. A caller that does not mention gzip gets none."""
    weights = dict(_read_weight(one) for one in (header or b"").lower().split(b","))
    return weights.get(b"gzip", weights.get(b"*", 0.0)) > 0


def _read_weight(one: bytes) -> tuple[bytes, float]:
    """A media type, or an encoding, and its weight; 1 where none is written or it is no number."""
    media_type, *parameters = one.split(b";")
    found = (_WEIGHT.fullmatch(parameter.strip()) for parameter in parameters)
    return media_type.strip(), next((float(match[1]) for match in found if match), 1.0)
