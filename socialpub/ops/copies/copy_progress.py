"""How far the copying, checking or restoring of a copy has come, for whoever watches: bytes done, of bytes expected.

Whoever reads or writes the bytes says so here and knows no watcher. Without one nothing happens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class ProgressWatcher(Protocol):
    def expect(self, size_bytes: int) -> None:
        """So many more bytes are to be done than were known of."""

    def advance(self, size_bytes: int) -> None:
        """So many more bytes are done."""


_watcher: ContextVar[ProgressWatcher | None] = ContextVar("socialpub_copy_progress", default=None)


@contextmanager
def watched_by(watcher: ProgressWatcher) -> Iterator[None]:
    """Tell this watcher what this thread does inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def expect(size_bytes: int) -> None:
    if (watcher := _watcher.get()) is not None:
        watcher.expect(size_bytes)


def advance(size_bytes: int) -> None:
    if (watcher := _watcher.get()) is not None:
        watcher.advance(size_bytes)
