"""The progress of a long operation, for the entry point that shows it.

The work reports steps and bytes, and does not know whether anyone watches. Only `cli` draws.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Watch = Callable[[int, int, str], None]
"""Gets the bytes that are done, the bytes of the step (0: unknown), and the step in plain words."""


@dataclass(slots=True)
class _Progress:
    watch: Watch
    step: str = ""
    done: int = 0
    total: int = 0

    def report(self) -> None:
        self.watch(min(self.done, self.total) if self.total else self.done, self.total, self.step)


_current: ContextVar[_Progress | None] = ContextVar("socialpub_progress", default=None)


@contextmanager
def report_to(watch: Watch) -> Iterator[None]:
    """Report the progress of this thread."""
    token = _current.set(_Progress(watch))
    try:
        yield
    finally:
        _current.reset(token)


def is_reported() -> bool:
    return _current.get() is not None


def begin(step: str, total_bytes: int = 0) -> None:
    """Begin a step: "Checking the database"."""
    if (progress := _current.get()) is not None:
        progress.step, progress.done, progress.total = step, 0, total_bytes
        progress.report()


def expect(size_bytes: int) -> None:
    """Add to the total of the step."""
    if (progress := _current.get()) is not None:
        progress.total += size_bytes


def advance(size_bytes: int) -> None:
    if (progress := _current.get()) is not None:
        progress.done += size_bytes
        progress.report()


def finish() -> None:
    """Report that the step reached its total."""
    if (progress := _current.get()) is not None:
        reach(progress.total)


def reach(done_bytes: int) -> None:
    """Set the bytes of the step that are done. They never decrease."""
    if (progress := _current.get()) is not None:
        progress.done = max(progress.done, done_bytes)
        progress.report()
