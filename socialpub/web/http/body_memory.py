"""The request bodies in memory: all requests of a process together have one limit (contract 1.20).

A byte counts from the moment the connection reads it until a file has it or its request has ended. A body that goes to
a file takes only as much memory as a few reads bring, so it counts but is never refused.
"""

from collections.abc import MutableMapping
from typing import Any

from socialpub.core.errors import Unavailable

MAX_MEMORY_BYTES = 64 * 1024 * 1024
COMPLETE_SECONDS = 20.0
"""A body in memory, or a text of a form, must be complete within this time."""

BODY = "socialpub.body"
"""Under this name the server puts a `BodyShare` into the scope of each request."""

Scope = MutableMapping[str, Any]


class BodyMemory:
    """How much memory all bodies of one process use."""

    __slots__ = ("most_bytes", "used_bytes")

    def __init__(self, most_bytes: int = MAX_MEMORY_BYTES) -> None:
        self.most_bytes = most_bytes
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
        if memory.used_bytes + size_bytes > memory.most_bytes and not goes_to_file:
            return False
        memory.used_bytes += size_bytes
        self.held_bytes += size_bytes
        return True

    def remove(self, size_bytes: int) -> None:
        """Stop counting bytes that are no longer in memory."""
        self.held_bytes -= size_bytes
        self._memory.used_bytes -= size_bytes


def memory_full() -> Unavailable:
    """The refusal of a request whose body finds no room."""
    return Unavailable(
        "The bodies of all requests together use as much memory as they may. Send the request again in a moment."
    )


def release_body(scope: Scope) -> None:
    """Stop counting everything that the request with this scope holds. Calling it again changes nothing."""
    share: BodyShare | None = scope.get(BODY)
    if share is not None:
        share.remove(share.held_bytes)
