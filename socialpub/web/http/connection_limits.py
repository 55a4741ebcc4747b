"""Limits of connections and request bodies: per connection, per IP address and in total (contract 1.19, 1.20).

Clients do not need a key to connect. So the request head is limited in size and time, a client that does not read is
disconnected, and one IP address cannot use all connections. File descriptors always remain for the database and for
files.

All request bodies in memory share one limit. A byte counts from its arrival until it is in a file or its request ends.
A body that goes to a file needs only the memory of a few reads, so it counts but is never refused.
"""

import heapq
import resource
from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from socialpub.core import logging
from socialpub.core.errors import Unavailable
from socialpub.web.http import client_address

# --- bodies in memory ------------------------------------------------------------------------------------------------

MAX_MEMORY_BYTES = 64 * 1024 * 1024
COMPLETE_SECONDS = 20.0
"""The deadline for a body in memory, and for a text field of a form."""

BODY = "socialpub.body"
"""The key of the `BodyShare` in the scope of each request."""

Scope = MutableMapping[str, Any]


class BodyMemory:
    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class BodyShare:
    """The memory of one request. `goes_to_file`: the handler writes each piece to a file."""

    __slots__ = ("_memory", "goes_to_file", "held_bytes")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self.held_bytes = 0
        self.goes_to_file = False

    def add(self, size_bytes: int, *, goes_to_file: bool = False) -> bool:
        """Count bytes that were read. Return False, and count nothing, if bytes in memory exceed the limit."""
        memory = self._memory
        if memory.used_bytes + size_bytes > memory.max_bytes and not goes_to_file:
            return False
        memory.used_bytes += size_bytes
        self.held_bytes += size_bytes
        return True

    def remove(self, size_bytes: int) -> None:
        self.held_bytes -= size_bytes
        self._memory.used_bytes -= size_bytes


def memory_full() -> Unavailable:
    return Unavailable("Request bodies use all available memory. Send the request again in a few seconds.")


def release_body(scope: Scope) -> None:
    """Stop counting the body of the request with this scope. Further calls do not change anything."""
    share: BodyShare | None = scope.get(BODY)
    if share is not None:
        share.remove(share.held_bytes)


# --- connections -----------------------------------------------------------------------------------------------------

log = logging.get_logger("socialpub.web.server")

MAX_CONNECTIONS = 4096
"""A limit that does not depend on descriptors, because each idle connection needs some kilobytes of memory."""
RESERVED_DESCRIPTORS = 200
"""The descriptors for the database connections of each reading thread, and for other files of the process."""
MAX_DESCRIPTORS = 1 << 20
"""The kernel's default maximum per process, used if the hard limit is infinite."""
LOG_INTERVAL_SECONDS = 60.0
"""The minimum time between two log lines about the same limit."""
NAMED_ADDRESSES = 3
"""The number of IP addresses in a log line: those that reached the limit most often."""
MAX_COUNTED_ADDRESSES = 1000
IDLEST_BATCH = 64
"""The number of idle connections that one search returns, for the next new connections."""
SEARCH_INTERVAL_SECONDS = 0.01
"""The minimum time between two searches without result. A search takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = MAX_CONNECTIONS
    """The maximum number of connections at the same time. A new connection replaces the longest idle connection."""
    connections_per_address: int = 64
    """The maximum number of connections from one IP address, except trusted proxies.

    An IPv6 /64 counts as one IP address.
    """
    head_bytes: int = 32 * 1024
    """The maximum size of the request line with the headers. The same limit applies to trailers and chunk metadata."""
    head_fields: int = 100
    """The maximum number of headers and trailers. In memory, a short header takes twenty times its bytes."""
    head_seconds: float = 20.0
    """The time from the connection, or the first byte of a later request, until the head is complete."""
    body_seconds: float = COMPLETE_SECONDS
    """The time from the head until the body is complete, unless the body goes to a file."""
    stall_seconds: float = 75.0
    """The time without data of a body that goes to a file. Longer than `problems.STALL_SECONDS`, which sends a problem.
    """
    body_memory_bytes: int = MAX_MEMORY_BYTES
    """The maximum size of all bodies in memory together."""
    discarded_bytes: int = 1 << 20
    """The maximum number of bytes of a body that still arrives after its response."""
    reader_seconds: float = 30.0
    """The time without progress of a client that reads a response."""
    pipelined: int = 32
    """The maximum number of complete requests that wait for the response of an earlier request."""


class Limit(StrEnum):
    """A limit that a client reached; the value is the log message."""

    CONNECTIONS = "all connections are in use and none is idle; new connections are closed"
    IDLE_CONNECTIONS = "all connections are in use; the longest idle connection was closed for a new connection"
    ADDRESS_CONNECTIONS = "an IP address exceeded the connection limit; some of its connections were closed"
    HEAD_BYTES = "the request line and headers were too large; the request was refused"
    HEAD_SECONDS = "the request line and headers were not complete in time; the connection was closed"
    BODY_SECONDS = "the request body was not complete in time; the connection was closed"
    STALL_SECONDS = "the request body stalled; the connection was closed"
    BODY_MEMORY = "request bodies use all available memory; a request was refused"
    DISCARDED_BYTES = "the client sent too much of a body after the response; the connection was closed"
    READER_SECONDS = "the client did not read the response in time; the connection was closed"
    PIPELINED = "the client pipelined too many requests; the connection closes after some of them"


class Connection(Protocol):
    @property
    def peer(self) -> str: ...

    def exceeded_limit(self, now: float) -> Limit | None: ...

    def end(self, reached: Limit) -> None: ...

    def idle_since(self) -> float | None: ...

    def abort(self) -> None: ...


class ConnectionWatch:
    """Counts connections, closes connections that exceed a limit, and logs the limit and the IP address.

    One check of all connections per second costs less than a timer per connection. `now` is the time of the event loop.
    """

    def __init__(self, limits: ConnectionLimits, is_trusted: Callable[[str], bool] = lambda _: False) -> None:
        self.limits = limits
        self.bodies = BodyMemory(limits.body_memory_bytes)
        self._is_trusted = is_trusted
        self._open: dict[Connection, str | None] = {}
        """Each connection with the network of its client; None for a trusted proxy."""
        self._by_network: dict[str, set[Connection]] = {}
        self._idlest: list[tuple[float, Connection]] = []
        """The result of the last search; the longest idle connection is the last item."""
        self._search_again_at = 0.0
        self._unlogged: dict[Limit, Counter[str]] = {}
        self._logged_at: dict[Limit, float] = {}

    def admit(self, connection: Connection, now: float) -> bool:
        """Count a new connection, and close an idle connection if necessary.

        Return whether the new connection may stay.
        """
        network = None if self._is_trusted(connection.peer) else client_address.client_network(connection.peer)
        if not (self._make_room_in_network(network, now) and self._make_room(connection, now)):
            return False
        self._open[connection] = network
        if network is not None:
            self._by_network.setdefault(network, set()).add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        network = self._open.pop(connection, None)
        if network is not None:
            same_network = self._by_network[network]
            same_network.discard(connection)
            if not same_network:
                del self._by_network[network]

    def _make_room_in_network(self, network: str | None, now: float) -> bool:
        same_network = self._by_network.get(network or "", ())
        if len(same_network) < self.limits.connections_per_address:
            return True
        self.report(Limit.ADDRESS_CONNECTIONS, now, network or "")
        idlest = _idlest(same_network)
        if idlest:
            self._close(idlest[-1][1])
        return bool(idlest)

    def _make_room(self, connection: Connection, now: float) -> bool:
        if len(self._open) < self.limits.connections:
            return True
        idlest = self._find_idlest(now)
        if idlest is None:
            self.report(Limit.CONNECTIONS, now, connection.peer)
            return False
        self.report(Limit.IDLE_CONNECTIONS, now, idlest.peer)
        self._close(idlest)
        return True

    def _find_idlest(self, now: float) -> Connection | None:
        while True:
            while self._idlest:
                since, connection = self._idlest.pop()
                if connection in self._open and connection.idle_since() == since:
                    return connection
            if now < self._search_again_at:
                return None
            self._idlest = _idlest(self._open)
            if not self._idlest:
                self._search_again_at = now + SEARCH_INTERVAL_SECONDS
                return None

    def _close(self, connection: Connection) -> None:
        # The connection ends later. Until then, its place must not be used twice.
        self.forget(connection)
        connection.abort()

    def check(self, connections: Iterable[Connection], now: float) -> None:
        for connection in list(connections):
            reached = connection.exceeded_limit(now)
            if reached is not None:
                connection.end(reached)
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


def _idlest(connections: Iterable[Connection]) -> list[tuple[float, Connection]]:
    idle = ((since, connection) for connection in connections if (since := connection.idle_since()) is not None)
    return heapq.nsmallest(IDLEST_BATCH, idle, key=lambda found: found[0])[::-1]


def raise_descriptors() -> int:
    """Raise the soft limit of file descriptors to the hard limit, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("cannot raise the limit of file descriptors", soft=soft, wanted=wanted, exc_info=error)
            return soft
        return wanted
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int) -> int:
    """Return the maximum number of connections of a process. Each connection may also need an open file."""
    return max(1, min(MAX_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))
