"""`?wait=`: answered as soon as a post is settled or canceled (contract section 4).

However many callers wait, there is one poller per web process, and only while a caller waits. It reads a number that
changes with every commit of another process, and looks all watched posts up in one query when it did; and whether
the keys of those who wait still hold.
"""

import asyncio

from socialpub.accounts import api_keys
from socialpub.db.tables import post_rows
from socialpub.runtime import Runtime

POLL_SECONDS = 0.05
EXPIRY_SECONDS = 1.0
"""So often it is asked whether a key has expired, which no commit tells."""


class LongPoll:
    """Everybody who waits for a post to become final."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._waiters = _Waiters()
        self._by_key = _Waiters()
        self._poller: asyncio.Task[None] | None = None
        self._stopped = False

    async def until_final(self, post_id: str, seconds: float, key_id: str) -> None:
        """Return once the post is settled or canceled, after `seconds`, when this key of the caller has ended, or when
        the appliance stops."""
        if self._stopped or post_rows.final_among(self._rt.reader, [post_id]):
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
        """Answer everybody with what is true now, and everybody who comes later at once."""
        self._stopped = True
        for post_id in list(self._waiters):
            self._waiters.wake(post_id)

    async def _poll(self) -> None:
        reader = self._rt.reader
        last_version: int | None = None
        keys_checked_at = 0.0
        while self._waiters:
            version, now = reader.data_version(), self._rt.clock.monotonic()
            if version != last_version:
                for post_id in post_rows.final_among(reader, list(self._waiters)):
                    self._waiters.wake(post_id)
            if version != last_version or now - keys_checked_at >= EXPIRY_SECONDS:
                keys_checked_at = now
                for key_id in api_keys.ended_among(reader, list(self._by_key), self._rt.now()):
                    self._by_key.wake(key_id)
            last_version = version
            await asyncio.sleep(POLL_SECONDS)


class _Waiters(dict[str, set[asyncio.Future[None]]]):
    """Who waits for what: by the id of a post, or of a key."""

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
