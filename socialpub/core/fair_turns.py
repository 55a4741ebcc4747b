"""Turns for work of many callers on one event loop: whoever queues a lot makes nobody wait for all of it.

So many run at once. Those who wait begin in turn by key, not in the order in which they came. For a key of which
nothing runs there is one place more, so that it need not even wait for the end of what another has begun.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator

from socialpub.core.memory_turns import TurnNotFree


class FairTurns:
    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Per key who waits, oldest first. The key whose turn is next stands first."""

    @contextlib.asynccontextmanager
    async def turn(self, key: str, patience_seconds: float) -> AsyncIterator[None]:
        """Wait for a turn, and have it inside of the `async with`. Raises TurnNotFree; canceled, it keeps nothing."""
        if key not in self._waiting and self._may_begin(key):
            self._running[key] += 1
        else:
            await self._wait(key, patience_seconds)
        try:
            yield
        finally:
            self._end(key)

    def _may_begin(self, key: str) -> bool:
        running = self._running.total()
        return running < self._at_once or (running == self._at_once and key not in self._running)

    async def _wait(self, key: str, patience_seconds: float) -> None:
        begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(begins)
        try:
            async with asyncio.timeout(patience_seconds):
                await begins
        except BaseException as error:
            if begins.done() and not begins.cancelled():
                self._end(key)  # it was our turn at the very moment in which we gave up
            else:
                self._waiting[key].remove(begins)
                if not self._waiting[key]:
                    del self._waiting[key]
            if isinstance(error, TimeoutError):
                raise TurnNotFree("Other work was before it all the time.") from None
            raise

    def _end(self, key: str) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        while (following := next(filter(self._may_begin, self._waiting), None)) is not None:
            waiting = self._waiting.pop(following)
            self._running[following] += 1
            waiting.popleft().set_result(None)
            if waiting:
                self._waiting[following] = waiting  # behind the other keys
