"""One process of the appliance after the other, over the same folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from socialpub.core.settings.schema import PublishingSection
from socialpub.db.connection import Database
from socialpub.providers.http import Http
from socialpub.runtime import Runtime
from tests.providers.grid import BASE_URL
from tests.simulation.times import DrawnClock
from tests.support.appliance import open_appliance
from tests.support.media_reader import reader_of
from tests.support.sandbox_http import providers_of_the_sandbox


class Lives:
    """`publishing` is the configuration; `disk` is asked before each write and may raise."""

    def __init__(
        self, folder: Path, clock: DrawnClock, http: Http, publishing: PublishingSection, disk: Callable[[], None]
    ) -> None:
        self.folder = folder
        self._clock, self._http, self._publishing, self._disk = clock, http, publishing, disk
        self.rt = self._begin()
        self._ended = False
        self._door: tuple[Runtime, Callable[[str], bytes]] | None = None

    def _begin(self) -> Runtime:
        networks = providers_of_the_sandbox(bluesky=True)
        rt = open_appliance(
            self.folder,
            self._clock,
            http=self._http,
            networks=networks,
            base_url=BASE_URL,
            publishing=self._publishing,
        )
        write = rt.db.write

        def write_or_fail(fn: Callable[[Database], Any]) -> Any:
            self._disk()
            return write(fn)

        rt.db.write = write_or_fail  # type: ignore[method-assign]
        return rt

    def die(self, *, asked_to_stop: bool, before_the_next: Callable[[], None] = lambda: None) -> None:
        """As by SIGKILL: the lock is free, and its file stays. And the next process begins."""
        if asked_to_stop:
            self.rt.process.mark_stopping()
        self._stop()
        before_the_next()
        self.rt = self._begin()

    def end(self) -> None:
        """As by SIGKILL, and no other process begins."""
        if not self._ended:
            self._ended = True
            self._stop()

    def _stop(self) -> None:
        self.rt.process._lock.release()
        self.rt.db.stop()

    @property
    def fetch(self) -> Callable[[str], bytes]:
        """Serve signed URLs from the current process of the appliance."""

        def read(url: str) -> bytes:
            if self._door is None or self._door[0] is not self.rt:
                self._door = self.rt, reader_of(self.rt, BASE_URL)
            return self._door[1](url)

        return read
