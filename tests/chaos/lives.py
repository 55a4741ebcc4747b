"""One process of the appliance after the other, over the same folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
from starlette.types import ASGIApp

from socialpub.core.settings.sections import PublishingSection
from socialpub.db.transaction import Tx
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from socialpub.web.app import create_app
from tests.chaos.times import DrawnClock
from tests.providers.grid import BASE_URL
from tests.support.appliance import open_appliance
from tests.support.sandbox_http import providers_of_the_sandbox


class Lives:
    """`publishing` is the configuration; `disk` is asked before each write and may raise."""

    def __init__(
        self, folder: Path, clock: DrawnClock, http: Http, publishing: PublishingSection, disk: Callable[[], None]
    ) -> None:
        self._folder, self._clock, self._http, self._publishing, self._disk = folder, clock, http, publishing, disk
        self.rt = self._begin()
        self._door: tuple[Runtime, ASGIApp] | None = None

    def _begin(self) -> Runtime:
        networks = providers_of_the_sandbox()
        rt = open_appliance(
            self._folder,
            self._clock,
            http=self._http,
            networks=networks,
            base_url=BASE_URL,
            publishing=self._publishing,
        )
        write = rt.db.write

        def write_or_fail(fn: Callable[[Tx], Any]) -> Any:
            self._disk()
            return write(fn)

        rt.db.write = write_or_fail  # type: ignore[method-assign]
        return rt

    def die(self, *, asked_to_stop: bool) -> None:
        """As by SIGKILL: the lock is free, and its file stays. And the next process begins."""
        if asked_to_stop:
            self.rt.process.mark_stopping()
        self.rt.process._lock.release()
        self.rt.db.close()
        self.rt = self._begin()

    def close(self) -> None:
        self.rt.db.close()
        self.rt.process.close()

    @property
    def fetch(self) -> Callable[[str], bytes]:
        """The way from the internet to the appliance's own door, whichever process stands behind it."""

        def read(url: str) -> bytes:
            assert url.startswith(f"{BASE_URL}/")
            door = self._door
            if door is None or door[0] is not self.rt:
                door = self._door = self.rt, create_app(self.rt)
            app = door[1]

            async def get() -> bytes:
                async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
                    answer = await client.get(url)
                    answer.raise_for_status()
                    return bytes(answer.content)

            return anyio.run(get)

        return read
