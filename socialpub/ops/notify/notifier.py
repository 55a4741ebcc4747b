"""The thread that tells the owner. It waits for services alone, and nobody waits for it.

It runs in the worker. The web server has one too, which does nothing as long as a worker reports: a worker that is gone
could not say so. A lock lets one of them at a time take a round; what was told stands in the database.
"""

import threading
from datetime import timedelta

from socialpub.core import logging
from socialpub.core.errors import SocialpubError
from socialpub.db.locks import FileLock
from socialpub.ops import health
from socialpub.ops.notify import rounds, sending, services
from socialpub.ops.notify.apprise_client import SendingStopped
from socialpub.runtime import Runtime

LOOK_SECONDS = 10.0
JOIN_SECONDS = 5.0
SILENT = timedelta(minutes=5)
"""A worker that has not reported for so long does not tell anybody either."""

log = logging.get_logger("socialpub.notify")


class Notifier:
    def __init__(self, rt: Runtime, *, stands_in: bool = False) -> None:
        """`stands_in`: it only acts while no worker reports."""
        self.rt = rt
        self._stands_in = stands_in
        self._lock = FileLock(rt.settings.run_dir / "notifier.lock")
        self._begun = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Begin. The owner may add an address at any time. The worker calls this before it delivers: a delivery that
        fails in its first second is reported."""
        if not self._stands_in and services.list_all(self.rt):
            self._begin()
        self._thread.start()

    def join(self) -> None:
        """Wait for its end, which comes soon after `rt.stopping` is set."""
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def once(self) -> None:
        """Look at what needs the owner, and send what they were not sent. Raises `SendingStopped`."""
        if not services.list_all(self.rt) or (self._stands_in and not self._is_silent()):
            return
        if not self._lock.try_acquire():
            return
        try:
            self._begin()
            rounds.take(self.rt)
            sending.send_waiting(self.rt)
        finally:
            self._lock.release()

    def _begin(self) -> None:
        if not self._begun:
            self.rt.write(rounds.begin)
            self._begun = True

    def _is_silent(self) -> bool:
        age = health.heartbeat_age(self.rt.reader, self.rt.now())
        return age is not None and abs(age) > SILENT.total_seconds()

    def _run(self) -> None:
        while not self.rt.stopping.wait(LOOK_SECONDS):
            try:
                self.once()
            except SendingStopped:
                return
            except SocialpubError as error:
                log.warning("what needs the owner could not be looked at", reason=error.detail)
            except Exception:
                # It outlives whatever fails inside it; the next round may go well.
                log.error("telling the owner failed and is tried again", exc_info=True)
