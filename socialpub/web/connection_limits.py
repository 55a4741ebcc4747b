"""What one connection, and all of them together, may take of this process (contract 1.19).

Whoever connects needs no key yet. So the head of a request is bounded in size and time, whoever takes nothing of an
answer is let go, and descriptors are left for the database and for files whatever strangers do.
"""

import resource
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from socialpub.core import logging

log = logging.get_logger("socialpub.web.server")

MOST_CONNECTIONS = 4096
"""However many descriptors there are: each idle connection costs some kilobytes."""
RESERVED_DESCRIPTORS = 200
"""For the database's connections, one set for each thread that reads, and for whatever a process has open besides."""
MOST_DESCRIPTORS = 1 << 20
"""Where the hard limit is none at all: the kernel's own default for the most that a process may have."""
QUIET_SECONDS = 60.0
"""The same limit is in the log once in so long."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = MOST_CONNECTIONS
    """At the same time; more are closed at once."""
    head_bytes: int = 32 * 1024
    """Of a request line with its headers; trailers and what chunks carry besides bytes may have as much."""
    head_seconds: float = 20.0
    """From connecting, or from the first byte of a later request, until the head is complete."""
    body_seconds: float = 75.0
    """Without a byte of a body that is on its way. Longer than `stream.STALL_SECONDS`, which can still say why."""
    reader_seconds: float = 30.0
    """Without a byte taken of what was sent."""
    pipelined: int = 32
    """Requests that have arrived whole while an earlier one is being answered."""


class Limit(StrEnum):
    """What was reached, as the log says it."""

    CONNECTIONS = "there are more connections than this process can hold; new ones are closed at once"
    HEAD_BYTES = "the head of a request was too large; it was refused"
    HEAD_SECONDS = "the head of a request did not come in time; its connection was closed"
    BODY_SECONDS = "the body of a request did not come on; its connection was closed"
    READER_SECONDS = "nothing of an answer was taken for too long; its connection was closed"
    PIPELINED = "too many requests were sent ahead of their answers; their connection is closed after some"


class Connection(Protocol):
    def overdue(self, now: float) -> Limit | None: ...

    def give_up(self, reached: Limit) -> None: ...


class ConnectionWatch:
    """Looks at all connections now and then, which costs less than a timer for each; and tells which limits bite.

    `now` is the event loop's time, in seconds.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._untold: Counter[Limit] = Counter()
        self._told_at: dict[Limit, float] = {}

    def sweep(self, connections: Iterable[Connection], now: float) -> None:
        """Let go of every connection whose time is over."""
        for connection in list(connections):
            reached = connection.overdue(now)
            if reached is not None:
                connection.give_up(reached)
                self.tell(reached, now)
        for reached in list(self._untold):
            self._write(reached, now)

    def tell(self, reached: Limit, now: float) -> None:
        """A limit has bitten: one line in the log, and after that one a minute with how often."""
        self._untold[reached] += 1
        self._write(reached, now)

    def _write(self, reached: Limit, now: float) -> None:
        told_at = self._told_at.get(reached)
        if told_at is None or now - told_at >= QUIET_SECONDS:
            self._told_at[reached] = now
            log.warning(reached.value, times=self._untold.pop(reached))


def raise_descriptors() -> int:
    """Raise the soft limit of descriptors to the hard one; what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of descriptors could not be raised", soft=soft, wanted=wanted, exc_info=error)
            return soft
        return wanted
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def connections_within(descriptors: int) -> int:
    """How many connections a process may hold: each may have a file open as well."""
    return max(1, min(MOST_CONNECTIONS, (descriptors - RESERVED_DESCRIPTORS) // 2))
