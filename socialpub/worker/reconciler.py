"""The reconciler: wakes the worker for each due or orphaned delivery, at start and every second.

Its thread waits only for the database. It also writes the heartbeat of the worker. A failed round does not write a
heartbeat.
"""

import sqlite3
import threading

from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import SocialpubError
from socialpub.db import appliance_state
from socialpub.db.queries import profile_queue
from socialpub.ops.health import HEARTBEAT_SECONDS, record_heartbeat
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime

RECONCILE_SECONDS = 1.0

log = logging.get_logger("socialpub.reconciler")


class Reconciler:
    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self._beat_at = 0.0
        """The next heartbeat, on the monotonic clock."""
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(timeout=5)

    def once(self) -> int:
        """Wake the worker for each profile with a due delivery, and write the heartbeat.

        Return the number of these profiles.
        """
        rt = self.rt
        rt.db.follow_clock()
        paused = appliance_state.paused_at(rt.reader)
        due = [] if paused else engine.list_due_queues(rt.reader, rt.stamp(), rt.process)
        for delivery_id in due:
            rt.wakeup.notify(delivery_id)
        if rt.clock.monotonic() >= self._beat_at:
            rt.write(record_heartbeat)
            self._beat_at = rt.clock.monotonic() + HEARTBEAT_SECONDS
        return len(due)

    def _run(self) -> None:
        while not self.rt.stopping.is_set():
            self._once_safely()
            next_at = self._next_at()
            # A failed round also reports to systemd: a restart does not fix a disk.
            self.rt.service_manager.alive(f"The next step is due at {next_at}" if next_at else "Nothing is due")
            self.rt.stopping.wait(self._pause(next_at))

    def _once_safely(self) -> None:
        try:
            self.once()
        except SocialpubError as error:
            log.warning("the reconciler could not finish a round", reason=error.detail)
        except Exception:
            log.error("the reconciler failed and continues", exc_info=True)

    def _next_at(self) -> str | None:
        try:
            return profile_queue.next_run_at(self.rt.reader, self.rt.stamp())
        except sqlite3.Error:
            return None

    def _pause(self, next_at: str | None) -> float:
        """Return the seconds until the next delivery is due, at most a second."""
        if next_at is None:
            return RECONCILE_SECONDS
        return min(max((parse(next_at) - self.rt.now()).total_seconds(), 0.01), RECONCILE_SECONDS)
