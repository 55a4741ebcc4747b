"""One HTTP request, and the state that all requests of the process share.

A read takes a few dozen microseconds, so there are no objects for headers, URLs and queries. Headers are parsed once,
and the body is read only when a handler asks for it.
"""

import asyncio
import itertools
import re
import secrets
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, TypeVar

from socialpub.accounts import api_keys
from socialpub.accounts.api_keys import Caller
from socialpub.accounts.usage import LastUses
from socialpub.core import units
from socialpub.core.errors import MAX_QUOTE, PayloadTooLarge, Unavailable, cut
from socialpub.core.secrets.redaction import redact
from socialpub.db.tables import post_rows
from socialpub.ops.health import Readiness
from socialpub.publishing.media.imports import REQUEST_SECONDS
from socialpub.publishing.posts.idempotency import RequestKey
from socialpub.runtime import Runtime
from socialpub.web.http import answer
from socialpub.web.http.answer import Answer, Header
from socialpub.web.http.client_address import TrustedProxies, UntrustedForwarders
from socialpub.web.http.connection_limits import BODY, BodyMemory, BodyShare, memory_full
from socialpub.web.http.rate_limit import RateLimits

T = TypeVar("T")

# --- `?wait=`: long polling until a post is settled or canceled (contract section 4) ---------------------------------
#
# One poller per web process serves all callers and runs only while a caller waits. It reads a number that changes with
# every commit of another process. After a change, one query finds final posts, and another query finds ended keys.

POLL_SECONDS = 0.05
EXPIRY_SECONDS = 1.0
"""The interval of checks for expired keys, because a key expires without a commit."""


class LongPoll:
    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._waiters = _Waiters()
        self._by_key = _Waiters()
        self._poller: asyncio.Task[None] | None = None
        self._stopped = False

    async def until_final(self, post_id: str, seconds: float, key_id: str) -> None:
        """Wait until the post is settled or canceled, for `seconds`, when the key ends or when the process stops."""
        if self._stopped or post_rows.final_among(self._rt.reader, [post_id]):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(post_id, future)
        self._by_key.add(key_id, future)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            self._waiters.discard(post_id, future)
            self._by_key.discard(key_id, future)

    def stop(self) -> None:
        """End every wait, and let later calls return at once."""
        self._stopped = True
        for post_id in list(self._waiters):
            self._waiters.wake(post_id)

    async def _poll(self) -> None:
        reader = self._rt.reader
        last_version: int | None = None
        keys_checked_at = 0.0
        while self._waiters:
            version, now = reader.data_version, self._rt.clock.monotonic()
            if version != last_version:
                for post_id in post_rows.final_among(reader, list(self._waiters)):
                    self._waiters.wake(post_id)
            if version != last_version or now - keys_checked_at >= EXPIRY_SECONDS:
                keys_checked_at = now
                for key_id in api_keys.find_ended(reader, list(self._by_key), self._rt.now()):
                    self._by_key.wake(key_id)
            last_version = version
            await asyncio.sleep(POLL_SECONDS)


class _Waiters(dict[str, set[asyncio.Future[None]]]):
    """The waiting callers by the id of a post or a key."""

    def add(self, name: str, future: asyncio.Future[None]) -> None:
        self.setdefault(name, set()).add(future)

    def discard(self, name: str, future: asyncio.Future[None]) -> None:
        if waiters := self.get(name):
            waiters.discard(future)
            if not waiters:
                del self[name]

    def wake(self, name: str) -> None:
        for future in self.get(name, ()):
            if not future.done():
                future.set_result(None)


# --- state of the process --------------------------------------------------------------------------------------------


class WebState:
    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.long_poll = LongPoll(rt)
        self.rate_limits = RateLimits(rt.settings.rate_limit, rt.clock)
        self.trusted_proxies = TrustedProxies(rt.settings.proxies.trusted)
        self.untrusted_forwarders = UntrustedForwarders(rt, self.trusted_proxies)
        self.last_uses = LastUses(rt)
        self.answers: Counter[tuple[str, str, int]] = Counter()
        """The number of responses by route, method and status, for the metrics."""
        self.readiness: tuple[float, asyncio.Task[Readiness]] | None = None
        """The start of the last readiness check (monotonic), and the check."""
        self.metrics: tuple[float, tuple[bytes, bytes]] | None = None
        """The cached metrics: when they expire (monotonic), and their text with its content type."""
        self.reading_metrics = asyncio.Lock()
        self.password_lock, self.passwords_waiting = asyncio.Lock(), 0
        """The dashboard hashes one password at a time."""
        self.live_checks = asyncio.Semaphore(2)
        """Limits the checks of drafts in the dashboard: a text of 100,000 characters occupies a thread for a second."""
        self.running_keys: set[tuple[str, str]] = set()
        """The Idempotency-Keys of running requests, each with its API key."""
        self.long_work: set[asyncio.Future[Any]] = set()
        """Work of requests that a stop of the process cancels."""
        self.closed = False
        """The database is closed, and new requests get 503."""


# --- one request -----------------------------------------------------------------------------------------------------

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TRANSPORT = "socialpub.transport"
"""The key of the connection's transport in the scope of each request."""

MAX_BODY_BYTES = 1 << 20
"""The limit of a JSON body (contract 1.7)."""
MAX_ANONYMOUS_BODY_BYTES = 8 * 1024
"""The limit for a request without a valid key or session (contract 1.20)."""

_UNCOUNTED = BodyShare(BodyMemory(sys.maxsize))
"""For requests that do not come through the server, as in tests."""
_OWN_ID = re.compile(rb"[\x20-\x7e]{1,128}")
_numbers = itertools.count(1)
_process = secrets.token_hex(6).encode()


def new_id() -> bytes:
    return b"%s-%x" % (_process, next(_numbers))


class ClientGone(Exception):
    """The connection ended before the request or the response was complete."""


class Request:
    """`body` and `query` are the validated shapes of the endpoint, and `resource` is what its path names."""

    __slots__ = (
        "_receive",
        "_received_last",
        "_receiving",
        "_send",
        "body",
        "caller",
        "fetch_seconds",
        "headers",
        "id",
        "idempotency_key",
        "max_body_bytes",
        "method",
        "path",
        "path_params",
        "query",
        "query_string",
        "rate_headers",
        "resource",
        "route",
        "scope",
        "started_at",
        "state",
        "status",
    )

    def __init__(self, state: WebState, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.state = state
        self.scope = scope
        self._receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        """The decoded path, without the path of base_url, which the proxy removes."""
        self.query_string: bytes = scope["query_string"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        """Names are in lower case. The last of repeated headers counts."""
        own_id = self.headers.get(b"x-request-id")
        self.id = own_id if own_id and _OWN_ID.fullmatch(own_id) else new_id()
        self.route = "none"
        """The documented path (`/api/v1/posts/{postId}`), once a route matches."""
        self.path_params: dict[str, str] = {}
        self.caller: Caller | None = None
        self.max_body_bytes = MAX_ANONYMOUS_BODY_BYTES
        """A valid key or session raises this limit."""
        self.fetch_seconds = REQUEST_SECONDS
        """The time for media by URL."""
        self._receiving = self._received_last = False
        self.resource: Any = None
        self.body: Any = None
        self.query: Any = None
        self.idempotency_key: RequestKey | None = None
        self.rate_headers: tuple[Header, ...] = ()
        self.status = 0
        """0 before the response starts."""
        self.started_at = state.rt.clock.monotonic()

    # --- input -------------------------------------------------------------------------------------------------------

    @property
    def content_type(self) -> bytes:
        """The media type in lower case without parameters. Empty if there is none."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    @property
    def content_length(self) -> int | None:
        """The declared size of the body. None for a chunked body."""
        text = self.headers.get(b"content-length", b"")
        return int(text) if text.isdigit() else None

    @property
    def has_body(self) -> bool:
        """Whether the headers declare a body. A chunked body may be empty."""
        return bool(self.content_length) or b"transfer-encoding" in self.headers

    @property
    def peer(self) -> str:
        """The IP address of the connection's other end. Empty for a Unix socket."""
        client = self.scope.get("client")
        return client[0] if client else ""

    @property
    def client_address(self) -> str:
        """The IP address of the client, as trusted proxies report it."""
        forwarded = [value for name, value in self.scope["headers"] if name == b"x-forwarded-for"]
        return self.state.trusted_proxies.find_caller(self.peer, forwarded)

    @property
    def logged_path(self) -> str:
        """The path for log lines, shortened."""
        # Redaction must precede the cut, because it does not recognize a part of a secret.
        return self.path if len(self.path) <= MAX_QUOTE else cut(redact(self.path[: 8 * MAX_QUOTE]))

    @property
    def relative_root(self) -> str:
        """The relative URL of the appliance's own `/`, such as `../../`. It works below any path of base_url."""
        raw_path: bytes = self.scope["raw_path"]
        return "../" * (raw_path.count(b"/") - 1) or "./"

    def prefers_page(self) -> bool:
        return answer.prefers_page(self.headers.get(b"accept"))

    @property
    def is_whole(self) -> bool:
        """Whether the whole body has arrived."""
        return self._received_last or not self.has_body

    @property
    def waits_for_continue(self) -> bool:
        """Whether the client still waits for `100 Continue` before it sends the body."""
        return not self._receiving and self.headers.get(b"expect", b"").lower() == b"100-continue"

    async def receive(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether more follows. Raises ClientGone.

        The piece counts as memory in use until `release` or the end of the request.
        """
        self._receiving = True
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        more = message.get("more_body", False)
        self._received_last = not more
        return message.get("body", b""), more

    def hold(self, size_bytes: int) -> None:
        """Count bytes of the body that stay in memory after `release`. Raises Unavailable."""
        if not self._share.add(size_bytes):
            raise memory_full()

    def release(self, size_bytes: int) -> None:
        """Stop counting bytes that are no longer in memory."""
        self._share.remove(size_bytes)

    def send_body_to_file(self) -> None:
        """Declare that each piece of the body goes to a file: the body must progress, but does not have a deadline."""
        self._share.goes_to_file = True

    @property
    def _share(self) -> BodyShare:
        return self.scope.get(BODY) or _UNCOUNTED

    async def read(self) -> bytes:
        """Return the whole body. Raises PayloadTooLarge and ClientGone."""
        self._check_size(self.content_length or 0)
        body, more = await self.receive()
        self._check_size(len(body))
        if not more:
            return body
        whole = bytearray(body)  # a list of one-byte pieces would need far more memory
        while more:
            body, more = await self.receive()
            whole += body
            self._check_size(len(whole))
        return bytes(whole)

    async def finish(self) -> None:
        """Discard a body that no handler reads, so that a malformed request does not change anything.

        Raises like `read`.
        """
        if not self.has_body:
            return
        self._check_size(self.content_length or 0)
        size_bytes, more = 0, True
        while more:
            piece, more = await self.receive()
            self.release(len(piece))
            size_bytes += len(piece)
            self._check_size(size_bytes)

    def too_large(self, size_bytes: int) -> PayloadTooLarge | None:
        """Return the error for a body of this size. None if the client may send it."""
        if size_bytes <= self.max_body_bytes:
            return None
        detail = f"The request body may have at most {units.size(self.max_body_bytes)}"
        if self.max_body_bytes == MAX_ANONYMOUS_BODY_BYTES:
            detail += " without a valid API key or session."
        else:
            detail += ". Upload media instead of sending it inside the JSON."
        return PayloadTooLarge(detail, headers=(("connection", "close"),))

    def _check_size(self, size_bytes: int) -> None:
        error = self.too_large(size_bytes)
        if error is not None:
            raise error

    async def while_connected(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of long work after the body. Cancel the work when the client disconnects or the process
        stops. Raises ClientGone and Unavailable."""
        working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(self._wait_for_disconnect())
        self.state.long_work.add(working)
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ClientGone
            if working.cancelled():
                raise Unavailable("The appliance is stopping. Try again in a few seconds.")
            return working.result()
        finally:
            self.state.long_work.discard(working)
            working.cancel()
            leaving.cancel()
            await asyncio.wait((working, leaving))

    async def _wait_for_disconnect(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    # --- output ------------------------------------------------------------------------------------------------------

    async def answer(self, answer: Answer) -> None:
        status, body, headers, content_type = answer
        framing: tuple[Header, ...] = ()
        if body:
            framing = ((b"content-type", content_type), (b"content-length", b"%d" % len(body)))
        elif status != 204:
            framing = ((b"content-length", b"0"),)
        transport = self.scope.get(TRANSPORT)
        if transport is not None:
            transport.hold()
        try:
            await self.start(status, framing + headers)
            await self._send({"type": "http.response.body", "body": body})
        finally:
            if transport is not None:
                transport.release()

    async def start(self, status: int, headers: tuple[Header, ...]) -> None:
        """Start a response whose body follows with `send`. Without `content-length` in `headers`, the body is chunked
        (HTTP/1.0: it ends with the connection)."""
        self.status = status
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [*headers, (b"x-request-id", self.id), *self.rate_headers],
            }
        )

    async def send(self, piece: bytes, more: bool) -> None:
        """Send a piece of the body. Waits for a slow client. Raises ClientGone."""
        transport = self.scope.get(TRANSPORT)
        if transport is not None and transport.is_closing():
            raise ClientGone  # uvicorn would accept the rest and discard it
        await self._send({"type": "http.response.body", "body": piece, "more_body": more})
