"""Ids: UUIDv7, lower case (RFC 9562), ascending within one process even when the clock stands still or goes back."""

import os
import threading
import uuid

_lock = threading.Lock()
_last = 0


def new(at_ms: int) -> str:
    """A fresh id for something made at `at_ms` (Unix time in milliseconds)."""
    global _last
    with _lock:
        # 48 bits of time and 12 of `rand_a` are read as one counter: the next id is at least one above the last.
        head = max(at_ms << 12, _last + 1)
        _last = head
    value = (head >> 12) << 80 | 0x7 << 76 | (head & 0xFFF) << 64 | 0b10 << 62 | int.from_bytes(os.urandom(8)) >> 2
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def parse(text: str) -> str | None:
    """The id in its one spelling, or None when `text` is no UUID in the usual 8-4-4-4-12 form."""
    if len(text) != 36 or text[8] != "-" or text[13] != "-" or text[18] != "-" or text[23] != "-":
        return None
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return None
