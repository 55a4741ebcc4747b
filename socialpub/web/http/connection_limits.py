"""What connections and request bodies may use: one connection, one address, and all of them (contract 1.19, 1.20).

A client needs no key to connect. So the head of a request is bounded in size and time, a client that reads nothing is
disconnected, and one address cannot use all connections. Whatever strangers do, descriptors stay free for the database
and for files.

All bodies in memory share one limit. A byte counts from the moment the connection reads it until a file has it or its
request has ended. A body that goes to a file takes only the memory of a few reads, so it counts but is never refused.
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
"""A body in memory, or a text of a form, must be complete within this time."""

BODY = "socialpub.body"
"""Under this name the server puts a `BodyShare` into the scope of each request."""

Scope = MutableMapping[str, Any]


class BodyMemory:
    __slots__ = ("max_bytes", "used_bytes")

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.max_bytes = max_bytes
        self.used_bytes = 0


class BodyShare:
    """What one request uses of this memory. `goes_to_file`: its handler writes each piece to the disk."""

    __slots__ = ("_memory", "goes_to_file", "held_bytes")

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self.held_bytes = 0
        self.goes_to_file = False

    def add(self, size_bytes: int, *, goes_to_file: bool = False) -> bool:
        """Count bytes that were read. Return False, and count nothing, where they exceed the limit and stay here."""
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
    """Stop counting everything that the request with this scope holds. Calling it again changes nothing."""
    share: BodyShare | None = scope.get(BODY)
    if share is not None:
        share.remove(share.held_bytes)


# --- connections -----------------------------------------------------------------------------------------------------

log = logging.get_logger("socialpub.web.server")

MAX_CONNECTIONS = 4096
"""However many descriptors there are: each idle connection costs some kilobytes."""
RESERVED_DESCRIPTORS = 200
"""For the database's connections, one set for each thread that reads, and for whatever a process has open besides."""
MAX_DESCRIPTORS = 1 << 20
"""Where the hard limit is none at all: the kernel's own default for the most that a process may have."""
QUIET_SECONDS = 60.0
"""The same limit is in the log once in so long."""
NAMED_ADDRESSES = 3
"""A log line names this many addresses: those that reached the limit most often."""
MAX_COUNTED_ADDRESSES = 1000
IDLEST_BATCH = 64
"""One search through all connections finds this many idle ones, for the next connections that need room."""
SEARCH_INTERVAL_SECONDS = 0.01
"""A search through all connections takes about a millisecond. One that found nothing is not repeated sooner."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = MAX_CONNECTIONS
    """Open at the same time. A new one takes the place of the one that has been idle longest."""
    connections_per_address: int = 64
    """The same for one address that is no trusted proxy. A whole /64 of IPv6 is one address."""
    head_bytes: int = 32 * 1024
    """Of a request line with its headers; trailers and what chunks carry besides bytes may have as much."""
    head_fields: int = 100
    """Headers and trailers of a request. In memory, a short one takes twenty times its bytes."""
    head_seconds: float = 20.0
    """From connecting, or from the first byte of a later request, until the head is complete."""
    body_seconds: float = COMPLETE_SECONDS
    """From the head until the body is complete, unless the body goes to a file."""
    stall_seconds: float = 75.0
    """Without a byte of a body that goes to a file. Longer than `stream.STALL_SECONDS`, which can still say why."""
    body_memory_bytes: int = MAX_MEMORY_BYTES
    """All bodies together, as far as they are in memory."""
    discarded_bytes: int = 1 << 20
    """Of a body that still arrives after its response."""
    reader_seconds: float = 30.0
    """Without a byte taken of what was sent."""
    pipelined: int = 32
    """Requests that have arrived whole while an earlier one is being answered."""


class Limit(StrEnum):
    """What was reached, as the log says it."""

    CONNECTIONS = "all connections are in use and none is idle; new connections are closed"
    IDLE_CONNECTIONS = "all connections are in use; the longest idle connection was closed for a new connection"
    ADDRESS_CONNECTIONS = "an address exceeded its connection limit; some of its connections were closed"
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
    def peer(self) -> str:
        """The address that connected; empty for a socket in the file system."""

    def overdue(self, now: float) -> Limit | None: ...

    def give_up(self, reached: Limit) -> None: ...

    def idle_since(self) -> float | None:
        """Return when the client last sent something; None while a response is on its way to it."""

    def abort(self) -> None: ...


class ConnectionWatch:
    """Counts connections, closes those that exceed a limit, and logs which limits were reached, and by whom.

    It examines all connections from time to time, which costs less than a timer for each. `now` is the event loop's
    time, in seconds. `is_trusted` returns whether an address is a trusted proxy's.
    """

    def __init__(self, limits: ConnectionLimits, is_trusted: Callable[[str], bool] = lambda _: False) -> None:
        self.limits = limits
        self.bodies = BodyMemory(limits.body_memory_bytes)
        self._is_trusted = is_trusted
        self._open: dict[Connection, str | None] = {}
        """Each with what its address counts as; None for a trusted proxy."""
        self._of_address: dict[str, set[Connection]] = {}
        self._idlest: list[tuple[float, Connection]] = []
        """What the last search found, the connection that was idle longest at the end."""
        self._search_again_at = 0.0
        self._unlogged: dict[Limit, Counter[str]] = {}
        self._logged_at: dict[Limit, float] = {}

    # --- how many ----------------------------------------------------------------------------------------------------

    def admit(self, connection: Connection, now: float) -> bool:
        """Count a new connection, and close an idle one where there is no room. Return whether the new one may stay."""
        place = None if self._is_trusted(connection.peer) else client_address.network_of(connection.peer)
        if not (self._find_room_for_address(place, now) and self._find_room(connection, now)):
            return False
        self._open[connection] = place
        if place is not None:
            self._of_address.setdefault(place, set()).add(connection)
        return True

    def forget(self, connection: Connection) -> None:
        place = self._open.pop(connection, None)
        if place is not None:
            same_address = self._of_address[place]
            same_address.discard(connection)
            if not same_address:
                del self._of_address[place]

    def _find_room_for_address(self, place: str | None, now: float) -> bool:
        same_address = self._of_address.get(place or "", ())
        if len(same_address) < self.limits.connections_per_address:
            return True
        self.report(Limit.ADDRESS_CONNECTIONS, now, place or "")
        idlest = _idlest(same_address)
        if idlest:
            self._close(idlest[-1][1])
        return bool(idlest)

    def _find_room(self, connection: Connection, now: float) -> bool:
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
        """Return the connection that has been idle longest."""
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
        # Its end is noticed later: until then its place must not be given away twice.
        self.forget(connection)
        connection.abort()

    # --- how long ----------------------------------------------------------------------------------------------------

    def sweep(self, connections: Iterable[Connection], now: float) -> None:
        for connection in list(connections):
            reached = connection.overdue(now)
            if reached is not None:
                connection.give_up(reached)
                self.report(reached, now, connection.peer)
        for reached in list(self._unlogged):
            self._write(reached, now)

    # --- what the log says -------------------------------------------------------------------------------------------

    def report(self, reached: Limit, now: float, peer: str = "") -> None:
        """Log that this address reached a limit: at once, and after that once a minute with how often and by whom."""
        unlogged = self._unlogged.setdefault(reached, Counter())
        place = client_address.network_of(peer)
        unlogged[place if place in unlogged or len(unlogged) < MAX_COUNTED_ADDRESSES else ""] += 1
        self._write(reached, now)

    def _write(self, reached: Limit, now: float) -> None:
        logged_at = self._logged_at.get(reached)
        if logged_at is None or now - logged_at >= QUIET_SECONDS:
            self._logged_at[reached] = now
            unlogged = self._unlogged.pop(reached)
            named = [place for place, _ in unlogged.most_common(NAMED_ADDRESSES + 1) if place][:NAMED_ADDRESSES]
            log.warning(reached.value, times=unlogged.total(), addresses=", ".join(named) or None)


def _idlest(connections: Iterable[Connection]) -> list[tuple[float, Connection]]:
    """Return those that have been idle longest, and since when; the longest at the end."""
    idle = ((since, connection) for connection in connections if (since := connection.idle_since()) is not None)
    return heapq.nsmallest(IDLEST_BATCH, idle, key=lambda found: found[0])[::-1]


def raise_descriptors() -> int:
    """Raise the soft limit of descriptors to the hard one; what it is then."""
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
    """How many connections a process may hold: each may have a file open as well."""
    return max(1, min(MAX_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))
