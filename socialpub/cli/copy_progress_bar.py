"""How far a copy has come: a bar on a terminal; else, when it takes long, a line now and then for the log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from socialpub.cli.output import byte_bar, print_note
from socialpub.core import sizes
from socialpub.ops.copies import copy_progress

LINE_SECONDS = 30.0
"""Into a log a line is written no more often than this."""


class ProgressLines:
    """For what is no terminal."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._expected = self._done = 0
        self._next_at = time.monotonic() + LINE_SECONDS

    def expect(self, size_bytes: int) -> None:
        self._expected += size_bytes

    def advance(self, size_bytes: int) -> None:
        self._done += size_bytes
        if time.monotonic() >= self._next_at:
            self._next_at = time.monotonic() + LINE_SECONDS
            print_note(f"{self._doing}: {_share(self._done, self._expected)}")


def _share(done: int, expected: int) -> str:
    done_text, expected_text = (sizes.write(size).partition(" (")[0] for size in (done, expected))
    return f"{min(100, 100 * done // max(expected, 1))} %, {done_text} of {expected_text}"


@contextmanager
def progress_bar(doing: str) -> Iterator[None]:
    """Show on stderr how far what is done inside has come."""
    with byte_bar(doing) as bar, copy_progress.watched_by(bar or ProgressLines(doing)):
        yield
