"""What a caller takes: a page or JSON (`Accept`, RFC 9110, section 12.5.1), compressed or not (`Accept-Encoding`,
12.5.3)."""

import re

PAGE, JSON = b"text/html", b"application/json"

_WEIGHT = re.compile(rb"q=([01](?:\.[0-9]{0,3})?)")


def prefers_page(header: bytes | None) -> bool:
    """Whether a page is accepted, and JSON is not preferred to it: a browser."""
    if header is None or PAGE not in (accept := header.lower()):
        return False
    weights = dict(_weighted(one) for one in accept.split(b","))
    page_weight = weights.get(PAGE, 0.0)
    return page_weight > 0 and page_weight >= weights.get(JSON, 0.0)


def takes_gzip(header: bytes | None) -> bool:
    """Whether a body may be compressed with gzip. Whoever says nothing about it, like curl, gets it as it is."""
    weights = dict(_weighted(one) for one in (header or b"").lower().split(b","))
    return weights.get(b"gzip", weights.get(b"*", 0.0)) > 0


def _weighted(one: bytes) -> tuple[bytes, float]:
    """A media type, or an encoding, and its weight; 1 where none is written or it is no number."""
    media_type, *parameters = one.split(b";")
    found = (_WEIGHT.fullmatch(parameter.strip()) for parameter in parameters)
    return media_type.strip(), next((float(match[1]) for match in found if match), 1.0)
