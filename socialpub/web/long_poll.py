"""`?wait=`: answered as soon as a post is settled or canceled (contract section 4).

However many callers wait, there is one poller per web process, and only while somebody waits. It reads a number that
changes with every commit of another process, and looks all watched posts up in one query when it did.
"""

import asyncio

from socialpub.db import post_rows
from socialpub.runtime import Runtime

POLL_SECONDS = 0.05


class LongPoll:
    """Everybody who waits for a post to become final."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._waiters: dict[str, set[asyncio.Future[None]]] = {}
        self._poller: asyncio.Task[None] | None = None
        self._stopped = False

    async def until_final(self, post_id: str, seconds: float) -> None:
        """Return once the post is settled or canceled, after `seconds`, or when the appliance stops."""
        if self._stopped or post_rows.final_among(self._rt.reader, [post_id]):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(post_id, set()).add(future)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            waiters = self._waiters.get(post_id)
            if waiters is not None:
                waiters.discard(future)
                if not waiters:
                    del self._waiters[post_id]

    def stop(self) -> None:
        """Answer everybody with what is true now, and everybody who comes later at once."""
        self._stopped = True
        for post_id in list(self._waiters):
            self._wake(post_id)

    async def _poll(self) -> None:
        reader = self._rt.reader
        last_version: int | None = None
        while self._waiters:
            version = reader.data_version()
            if version != last_version:
                last_version = version
                for post_id in post_rows.final_among(reader, list(self._waiters)):
                    self._wake(post_id)
            await asyncio.sleep(POLL_SECONDS)

    def _wake(self, post_id: str) -> None:
        for future in self._waiters.get(post_id, ()):
            if not future.done():
                future.set_result(None)
