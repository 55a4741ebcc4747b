"""Requests that wait: `?wait=` for the end of a post (contract section 4), and work that ends with its client.

One poller per web process serves all callers and runs only while a caller waits. It reads a number that changes with
every commit of another process. After a change, one query finds final posts, and another query finds ended keys.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

from socialpub.accounts import api_keys
from socialpub.core.errors import Unavailable
from socialpub.db.tables import post_rows
from socialpub.runtime import Runtime

T = TypeVar("T")

POLL_SECONDS = 0.05
EXPIRY_SECONDS = 1.0
"""The interval of checks for expired keys, because a key expires without a commit."""


class LongPoll:
    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._waiters = _Waiters()
        self._by_key = _Waiters()
        self._poller: asyncio.Task[None] | None = None
        self._stopped = False

    async def until_final(self, post_id: str, seconds: float, key_id: str) -> None:
        """Wait until the post is settled or canceled, for `seconds`, when the key ends or when the process stops."""
        if self._stopped or post_rows.final_among(self._rt.db, [post_id]):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(post_id, future)
        self._by_key.add(key_id, future)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            self._waiters.discard(post_id, future)
            self._by_key.discard(key_id, future)

    def stop(self) -> None:
        """End every wait, and let later calls return at once."""
        self._stopped = True
        for post_id in list(self._waiters):
            self._waiters.wake(post_id)

    async def _poll(self) -> None:
        db = self._rt.db
        last_version: int | None = None
        keys_checked_at = 0.0
        while self._waiters:
            version, now = db.data_version, self._rt.clock.monotonic()
            if version != last_version:
                for post_id in post_rows.final_among(db, list(self._waiters)):
                    self._waiters.wake(post_id)
            if version != last_version or now - keys_checked_at >= EXPIRY_SECONDS:
                keys_checked_at = now
                for key_id in api_keys.find_ended(db, list(self._by_key), self._rt.now()):
                    self._by_key.wake(key_id)
            last_version = version
            await asyncio.sleep(POLL_SECONDS)


class _Waiters(dict[str, set[asyncio.Future[None]]]):
    """The waiting callers by the id of a post or a key."""

    def add(self, name: str, future: asyncio.Future[None]) -> None:
        self.setdefault(name, set()).add(future)

    def discard(self, name: str, future: asyncio.Future[None]) -> None:
        if waiters := self.get(name):
            waiters.discard(future)
            if not waiters:
                del self[name]

    def wake(self, name: str) -> None:
        for future in self.get(name, ()):
            if not future.done():
                future.set_result(None)


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of long work after the body. Cancel the work when the client disconnects or the process stops.

    Raises ClientDisconnect and Unavailable.
    """
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(wait_for_disconnect(request))
    long_work: set[asyncio.Future[Any]] = request.app.state.long_work
    long_work.add(working)
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        if working.cancelled():
            raise Unavailable("The appliance is stopping. Try again in a few seconds.")
        return working.result()
    finally:
        long_work.discard(working)
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


async def wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
