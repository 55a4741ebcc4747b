"""Bytes that pages show: kept while there is room, the oldest go first.

What a test wants to know about bytes (size and hash) is never kept here.
"""

from collections.abc import Hashable

CAPACITY_BYTES = 64 * 1024 * 1024


class ByteCache:
    """Bytes up to a total; the oldest make room."""

    def __init__(self, capacity: int = CAPACITY_BYTES) -> None:
        self.capacity = capacity
        self.used = 0
        self._items: dict[Hashable, bytes] = {}

    def put(self, key: Hashable, data: bytes) -> None:
        self.take(key)
        if len(data) > self.capacity:
            return
        self._items[key] = data
        self.used += len(data)
        while self.used > self.capacity:
            self.take(next(iter(self._items)))

    def get(self, key: Hashable) -> bytes | None:
        return self._items.get(key)

    def take(self, key: Hashable) -> bytes | None:
        data = self._items.pop(key, None)
        self.used -= len(data or b"")
        return data
