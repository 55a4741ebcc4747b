"""What an endpoint returns: a whole answer, before it is known how it is sent."""

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
    """201 with this JSON as `data`, and where the resource is found."""
    headers = () if location is None else ((b"location", location.encode()),)
    return Answer(201, b'{"data":' + content + b"}", headers)
