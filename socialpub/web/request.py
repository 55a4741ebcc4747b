"""One request and its answer, as the doors see them.

Slim on purpose: a request that only reads costs a few dozen microseconds, and an object for every header, URL and
query would be most of that. Headers are read once; the body only when somebody asks.
"""

import itertools
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

from socialpub.core import logging
from socialpub.core.errors import PayloadTooLarge

if TYPE_CHECKING:
    from socialpub.accounts.api_keys import Caller
    from socialpub.publishing.idempotency import Ticket
    from socialpub.web.app import App

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON = b"application/json"
MOST_BODY_BYTES = 1 << 20
"""A JSON body larger than this is a 413 (contract 1.7)."""

CLOSE: Header = (b"connection", b"close")
"""On an answer given before the whole body has arrived: the rest is not read."""

log = logging.get_logger("socialpub.requests")

_QUALITY = re.compile(rb"([a-z0-9.+-]+/[a-z0-9.+-]+)\s*(?:;\s*q=([0-9.]+))?")
_GIVEN_ID = re.compile(rb"[\x20-\x7e]{1,128}")
_numbers = itertools.count(1)
_process = secrets.token_hex(6).encode()


def new_id() -> bytes:
    """The id of a request that brought none."""
    return b"%s-%x" % (_process, next(_numbers))


class Answer(NamedTuple):
    """A whole answer. `headers` come on top of those that every answer has."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()
    content_type: bytes = JSON


def created(data: bytes, where: str | None = None) -> Answer:
    """201 with `data` as the resource, and where it lives."""
    headers = () if where is None else ((b"location", where.encode()),)
    return Answer(201, b'{"data":' + data + b"}", headers)


class ClientGone(Exception):
    """The caller closed the connection before its request was whole. Nobody is left to be answered."""


class Request:
    """What came in. `body` and `query` are the shapes that the endpoint asked for, once they were read."""

    __slots__ = (
        "_receive",
        "_send",
        "app",
        "body",
        "caller",
        "headers",
        "id",
        "method",
        "path",
        "path_params",
        "query",
        "query_string",
        "rate_headers",
        "scope",
        "started_at",
        "status",
        "ticket",
    )

    def __init__(self, app: "App", scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.app = app
        self.scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        """As the proxy hands it on: without the path of base_url. Percent-escapes are decoded."""
        self.query_string: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        """Names in lower case; of a repeated header the last."""
        given = self.headers.get(b"x-request-id")
        if given is not None and _GIVEN_ID.fullmatch(given):
            self.id = given
        else:
            self.id = new_id()
        self.path_params: dict[str, str] = {}
        self.caller: Caller | None = None
        self.body: Any = None
        self.query: Any = None
        self.ticket: Ticket | None = None
        """The announced Idempotency-Key of this request, when it has one."""
        self.rate_headers: tuple[Header, ...] = ()
        self.status = 0
        """What was answered; 0 as long as nothing was."""
        self.started_at = app.rt.clock.monotonic()

    # --- what came in ------------------------------------------------------------------------------------------------

    @property
    def content_type(self) -> bytes:
        """The media type, lower case, without parameters; empty when none was sent."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    @property
    def content_length(self) -> int | None:
        """The announced number of bytes; None for a chunked body."""
        text = self.headers.get(b"content-length", b"")
        return int(text) if text.isdigit() else None

    @property
    def client_address(self) -> str:
        """Who asks. A proxy on this machine is believed when it says for whom."""
        client = self.scope.get("client")
        address = client[0] if client else ""
        if address in ("127.0.0.1", "::1"):
            forwarded = self.headers.get(b"x-forwarded-for")
            if forwarded:
                # Each proxy appends whom it heard from: only the last entry was written by ours.
                return forwarded.rpartition(b",")[2].strip().decode("latin-1")[:64]
        return address

    def accepts_html(self) -> bool:
        """Whether a browser asks: a page is named, and JSON is not wanted more."""
        accept = self.headers.get(b"accept", b"").lower()
        if b"text/html" not in accept:
            return False
        wanted = dict(_QUALITY.findall(accept))
        page = _weight(wanted.get(b"text/html", b""))
        return page > 0 and page >= _weight(wanted.get(JSON, b"0"))

    async def receive(self) -> tuple[bytes, bool]:
        """The next piece of the body, and whether more follows. Raises ClientGone."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message.get("body", b""), message.get("more_body", False)

    async def read(self, most_bytes: int = MOST_BODY_BYTES) -> bytes:
        """The whole body. Raises PayloadTooLarge as soon as it is more than `most_bytes`, and ClientGone."""
        announced = self.content_length
        if announced is not None and announced > most_bytes:
            raise _too_large(most_bytes)
        body, more = await self.receive()
        if len(body) > most_bytes:
            raise _too_large(most_bytes)
        if not more:
            return body
        whole = bytearray(body)
        while more:
            body, more = await self.receive()
            whole += body
            if len(whole) > most_bytes:
                raise _too_large(most_bytes)
        return bytes(whole)

    # --- what goes out -----------------------------------------------------------------------------------------------

    async def answer(self, answer: Answer) -> None:
        """Send a whole answer."""
        status, body, headers, content_type = answer
        first: tuple[Header, ...] = ()
        if body:
            first = ((b"content-type", content_type), (b"content-length", b"%d" % len(body)))
        elif status != 204:
            first = ((b"content-length", b"0"),)
        await self.start(status, first + headers)
        await self._send({"type": "http.response.body", "body": body})

    async def start(self, status: int, headers: tuple[Header, ...]) -> None:
        """Begin an answer whose body follows piece by piece (`send`). `content-length` is the caller's to give."""
        self.status = status
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*headers, (b"x-request-id", self.id), *self.rate_headers],
            }
        )

    async def send(self, piece: bytes, more: bool) -> None:
        """A piece of the body; waits while the connection is full."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})


def _weight(text: bytes) -> float:
    """A quality value of an Accept header; 1 where none is written or it is no number."""
    try:
        return float(text)
    except ValueError:
        return 1.0


def _too_large(most_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The body may have at most {most_bytes} bytes. Media goes to an upload, not into the JSON.",
        headers=(("connection", "close"),),
    )
