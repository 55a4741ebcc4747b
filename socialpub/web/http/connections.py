"""Limits of connections, as one subclass of uvicorn's protocol (contract 1.19, 1.20).

Clients do not need a key to connect. So the request head is limited in size and time, a client that does not read is
disconnected, and one IP address cannot use all connections. Invalid HTTP gets a problem only if no other response was
or will be sent.
"""

from asyncio import Transport
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from socialpub.core import logging
from socialpub.core.errors import HeadersTooLarge, InvalidRequest, SocialpubError
from socialpub.web.http import client_address, problems
from socialpub.web.http.app import App, new_id
from socialpub.web.http.limits import CLOSE, RequestBody

log = logging.get_logger(__name__)

MAX_CONNECTIONS = 4096
"""A limit that does not depend on descriptors, because each idle connection needs some kilobytes of memory."""
LOG_INTERVAL_SECONDS = 60.0
"""The minimum time between two log lines about the same limit."""
NAMED_ADDRESSES = 3
"""The number of IP addresses in a log line: those that reached the limit most often."""
MAX_COUNTED_ADDRESSES = 1000


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = MAX_CONNECTIONS
    """The maximum number of connections at the same time. A new connection replaces the longest idle connection."""
    connections_per_address: int = 64
    """The maximum for one IP address or IPv6 /64, except trusted proxies."""
    head_bytes: int = 32 * 1024
    """The maximum size of the request line with the headers, and of bytes that belong to no head and no body."""
    head_fields: int = 100
    """The maximum number of headers. In memory, a short header takes twenty times its bytes."""
    head_seconds: float = 20.0
    """The time from the connection, or the first byte of a later request, until the head is complete."""
    reader_seconds: float = 30.0
    """The time without progress of a client that reads a response."""


class Limit(StrEnum):
    """A limit that a client reached; the value is the log message."""

    CONNECTIONS = "all connections are in use and none is idle; new connections are closed"
    IDLE_CONNECTIONS = "all connections are in use; the longest idle connection was closed for a new connection"
    ADDRESS_CONNECTIONS = "an IP address exceeded the connection limit; some of its connections were closed"
    HEAD_BYTES = "the request line and headers were too large; the request was refused"
    HEAD_SECONDS = "the request was not complete in time; the connection was closed"
    READER_SECONDS = "the client did not read the response in time; the connection was closed"


class Connection(Protocol):
    @property
    def peer(self) -> str: ...

    def exceeded_limit(self, now: float) -> Limit | None: ...

    def idle_since(self) -> float | None: ...

    def abort(self) -> None: ...


class ConnectionWatch:
    """Counts connections, closes connections that exceed a limit, and logs the limit and the IP address.

    One check of all connections per second costs less than a timer per connection. `now` is the time of the event loop.
    """

    def __init__(self, limits: ConnectionLimits, is_trusted: Callable[[str], bool] = lambda _: False) -> None:
        self.limits = limits
        self._is_trusted = is_trusted
        self._open: dict[Connection, str] = {}
        """Each connection with the network of its client."""
        self._by_network: dict[str, set[Connection]] = {}
        self._unlogged: dict[Limit, Counter[str]] = {}
        self._logged_at: dict[Limit, float] = {}

    def admit(self, connection: Connection, now: float) -> bool:
        """Count a new connection, and close an idle connection if necessary.

        Return whether the new connection may stay.
        """
        peer = connection.peer
        # An IPv4 address, the usual case, is a network of its own.
        network = peer if ":" not in peer else client_address.client_network(peer)
        same_network = self._by_network.get(network, ())
        if len(same_network) >= self.limits.connections_per_address and not self._is_trusted(peer):
            self.report(Limit.ADDRESS_CONNECTIONS, now, peer)
            if self._close_idlest(same_network) is None:
                return False
        if len(self._open) >= self.limits.connections:
            closed = self._close_idlest(self._open)
            if closed is None:
                self.report(Limit.CONNECTIONS, now, peer)
                return False
            self.report(Limit.IDLE_CONNECTIONS, now, closed.peer)
        self._open[connection] = network
        self._by_network.setdefault(network, set()).add(connection)
        return True

    def _close_idlest(self, connections: Collection[Connection]) -> Connection | None:
        """Close the longest idle of these connections. None: each of them is in use."""
        idle = [(since, connection) for connection in connections if (since := connection.idle_since()) is not None]
        if not idle:
            return None
        _, connection = min(idle, key=lambda item: item[0])
        # The connection ends later. Until then, its place must not be used twice.
        self.forget(connection)
        connection.abort()
        return connection

    def forget(self, connection: Connection) -> None:
        network = self._open.pop(connection, None)
        if network is not None:
            same_network = self._by_network[network]
            same_network.discard(connection)
            if not same_network:
                del self._by_network[network]

    def check(self, connections: Iterable[Connection], now: float) -> None:
        for connection in list(connections):
            reached = connection.exceeded_limit(now)
            if reached is not None:
                connection.abort()
                self.report(reached, now, connection.peer)
        for reached in list(self._unlogged):
            self._write(reached, now)

    def report(self, reached: Limit, now: float, peer: str = "") -> None:
        """Log that this IP address reached a limit: at once, then once a minute with the count and the IP addresses."""
        unlogged = self._unlogged.setdefault(reached, Counter())
        network = client_address.client_network(peer)
        unlogged[network if network in unlogged or len(unlogged) < MAX_COUNTED_ADDRESSES else ""] += 1
        self._write(reached, now)

    def _write(self, reached: Limit, now: float) -> None:
        logged_at = self._logged_at.get(reached)
        if logged_at is None or now - logged_at >= LOG_INTERVAL_SECONDS:
            self._logged_at[reached] = now
            unlogged = self._unlogged.pop(reached)
            named = [network for network, _ in unlogged.most_common(NAMED_ADDRESSES + 1) if network][:NAMED_ADDRESSES]
            log.warning(reached.value, times=unlogged.total(), addresses=", ".join(named) or None)


# --- one connection ---------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """Raised inside the parser's callbacks, to make it stop."""


class GuardedProtocol(HttpToolsProtocol):
    def __init__(self, watch: ConnectionWatch, **parts: Any) -> None:
        super().__init__(**parts)
        self._watch = watch
        self._is_refused = False
        """No more input is read. The connection ends after the pending responses."""
        self._in_head = self._in_body = False
        self._unfinished_bytes = 0
        """Bytes since the last complete head or the last data of a body."""
        self._parsed_bytes = 0
        """The same before the last data was parsed. A head is not longer."""
        self._since = 0.0
        """The time of the connection, of the first byte of a head, of a complete head, or of the last response."""
        self._unread_bytes = 0
        self._unread_since = 0.0
        self._refusal: SocialpubError | None = None

    @property
    def peer(self) -> str:
        return self.client[0] if self.client else ""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None and "." in self.client[0]:  # an IPv4 client of a socket at [::]
            self.client = (self.client[0].removeprefix("::ffff:"), self.client[1])
        self._since = self.loop.time()
        if not self._watch.admit(self, self._since):
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch.forget(self)
        super().connection_lost(exc)

    # --- input, in the order in which the parser calls ---

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._unfinished_bytes += len(data)
        self._parsed_bytes = self._unfinished_bytes
        super().data_received(data)
        if self._unfinished_bytes > self._watch.limits.head_bytes and not self._is_refused:
            self._refuse(self._too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._since = True, self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > self._watch.limits.head_fields:
            self._refusal = self._too_large()
            raise _Refused

    def on_headers_complete(self) -> None:
        if self._parsed_bytes > self._watch.limits.head_bytes < self._head_bytes():
            self._refusal = self._too_large()
            raise _Refused
        offers_upgrade = self.parser.should_upgrade()
        if offers_upgrade and {name for name, _ in self.headers} & {b"content-length", b"transfer-encoding"}:
            # The parser does not read the body. A proxy would read it.
            self._refusal = InvalidRequest.at(message="The request has a body and the header Upgrade. Remove Upgrade.")
            raise _Refused
        super().on_headers_complete()
        self._in_head, self._in_body, self._unfinished_bytes, self._since = False, True, 0, self.loop.time()
        if offers_upgrade:
            self.cycle.keep_alive = False  # the parser reads no further request

    def _head_bytes(self) -> int:
        line_bytes = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n\r\n")
        return line_bytes + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body, self._unfinished_bytes = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if not self._in_head:
            self._since = self.loop.time()
        super().on_response_complete()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    # --- refusals ---

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(self._refusal or InvalidRequest.at(message="The request is not valid HTTP."))

    def _too_large(self) -> SocialpubError:
        self._watch.report(Limit.HEAD_BYTES, self.loop.time(), self.peer)
        limits = self._watch.limits
        return HeadersTooLarge(
            f"A request may have at most {limits.head_fields} headers. The request line and the headers together may "
            f"have at most {limits.head_bytes} bytes."
        )

    def _refuse(self, error: SocialpubError) -> None:
        """Stop reading. Send a problem, unless another response was started."""
        self._is_refused = True
        cycle = self.cycle
        if not self._in_body and self._is_answering:
            cycle.keep_alive = False  # earlier requests are complete and get their responses
            return
        if not self._in_body or not (self.pipeline or cycle.response_started):
            if self._in_body:
                # The handler still waits for the body, so it has changed nothing. It must end now.
                cycle.disconnected = True
                cycle.message_event.set()
            self._write_problem(error)
        self.transport.close()

    def _write_problem(self, error: SocialpubError) -> None:
        app = cast("App", self.config.app)
        problem = problems.render_problem(error, app.state.rt.settings.base_url)
        headers = [*self.server_state.default_headers, *problem.raw_headers, (b"x-request-id", new_id().encode())]
        lines = (b"%b: %b" % header for header in [*(header for header in headers if header != CLOSE), CLOSE])
        status_line = b"HTTP/1.1 %d %b" % (error.status, error.title.encode())
        self.transport.write(b"\r\n".join([status_line, *lines, b"", bytes(problem.body)]))

    # --- limits of time ---

    def exceeded_limit(self, now: float) -> Limit | None:
        unread_bytes = self.transport.get_write_buffer_size()
        if unread_bytes != self._unread_bytes:
            self._unread_bytes, self._unread_since = unread_bytes, now
        limits = self._watch.limits
        if unread_bytes and now - self._unread_since >= limits.reader_seconds:
            return Limit.READER_SECONDS
        # uvicorn's timer closes an idle connection, until bytes arrive that do not complete a request.
        waits = not self._is_refused and not self._is_answering and self.timeout_keep_alive_task is None
        return Limit.HEAD_SECONDS if waits and now - self._since >= limits.head_seconds else None

    def idle_since(self) -> float | None:
        """Return the time since which the server waits for a complete request.

        Return None while a request runs, a response is being sent or a file arrives: these need a valid key, session or
        signature.
        """
        if self.flow.read_paused or self.transport.get_write_buffer_size():
            return None
        if self._is_answering:
            body: RequestBody | None = self.cycle.scope["state"].get("body_limits")
            if self.pipeline or not self._in_body or (body is not None and body.goes_to_file):
                return None
        return self._since

    def abort(self) -> None:
        self._is_refused = True
        self.transport.abort()
