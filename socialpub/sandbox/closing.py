"""Lets go of calls that hang, from whatever thread the stop is asked for."""

import asyncio
import contextlib
from collections.abc import Iterator


class ClosingSignal:
    def __init__(self) -> None:
        self._waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @contextlib.contextmanager
    def awaited(self) -> Iterator[asyncio.Event]:
        """An event of the running loop, set when the world closes."""
        pair = (asyncio.get_running_loop(), asyncio.Event())
        self._waiting.add(pair)
        try:
            yield pair[1]
        finally:
            self._waiting.discard(pair)

    def send(self) -> None:
        for loop, event in tuple(self._waiting):
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)
