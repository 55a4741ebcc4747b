"""The reconciler: enqueues each profile with a due or orphaned delivery, at start and every second.

Its thread waits only for the database. It also enqueues the background tasks that run more often than once a minute,
and writes the heartbeat of the worker. A failed round does not write a heartbeat.
"""

import os
import signal
import sqlite3
import threading
from collections.abc import Callable

from socialpub.core import logging
from socialpub.core.clock import parse
from socialpub.core.errors import SocialpubError
from socialpub.db import appliance_state, sqlite_errors
from socialpub.db.queries import profile_queue
from socialpub.ops.health import HEARTBEAT_SECONDS, record_heartbeat
from socialpub.publishing.delivery import engine
from socialpub.runtime import Runtime
from socialpub.worker.tasks import Tasks

RECONCILE_SECONDS = 1.0

log = logging.get_logger(__name__)


class Reconciler:
    def __init__(self, rt: Runtime, tasks: Tasks) -> None:
        self.rt, self._queues = rt, tasks.queues
        self._frequent = [task for task in tasks.all.values() if task.every_seconds is not None]
        self._run_at: dict[str, float] = {}
        """By frequent task: its next run, on the monotonic clock."""
        self._beat_at = 0.0
        """The next heartbeat, on the monotonic clock."""
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        self._thread.join(timeout=5)

    def once(self) -> int:
        """Enqueue each profile with a due delivery and the frequent tasks, and write the heartbeat.

        Return the number of these profiles.
        """
        rt = self.rt
        rt.db.follow_clock()
        paused = appliance_state.paused_at(rt.db)
        due = [] if paused else engine.list_due_queues(rt)
        for network, profile_id in due:
            self._enqueue(self._queues.deliver, network, profile_id)
        now = rt.clock.monotonic()
        for task in self._frequent:
            if now >= self._run_at.get(task.name, now):
                self._run_at[task.name] = now + (task.every_seconds or 0.0)
                self._enqueue(self._queues.run, task.name)
        if rt.clock.monotonic() >= self._beat_at:
            rt.write(record_heartbeat)
            self._beat_at = rt.clock.monotonic() + HEARTBEAT_SECONDS
        return len(due)

    def _enqueue(self, enqueue: Callable[..., None], *args: str) -> None:
        if self.rt.stopping.is_set():
            return
        try:
            enqueue(*args)
        except sqlite3.Error as error:
            if sqlite_errors.find_damage(error) is None:
                log.warning("a task could not be enqueued; the next round tries again", reason=str(error))
                return
            log.error("queue.db is damaged; the worker ends, and its start replaces the file", reason=str(error))
            self.rt.stopping.set()
            os.kill(os.getpid(), signal.SIGTERM)

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
            limit = self.rt.settings.publishing.max_lateness
            return profile_queue.next_run_at(self.rt.db, self.rt.stamp(), limit)
        except sqlite3.Error:
            return None

    def _pause(self, next_at: str | None) -> float:
        """Return the seconds until the next delivery is due, at most a second."""
        if next_at is None:
            return RECONCILE_SECONDS
        return min(max((parse(next_at) - self.rt.now()).total_seconds(), 0.01), RECONCILE_SECONDS)
