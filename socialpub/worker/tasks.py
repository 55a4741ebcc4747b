"""The worker's queues and tasks, which Huey runs.

Each network has its own queue and threads, so a network that hangs does not delay the others. Periodic tasks run on the
background queue. The queues are in memory, because the rows state what is due.

Huey's `crontab` is not used: some tasks run more often than once a minute, and it skips runs when the clock is set.
Huey's `retries` is not used: the time of a retry is in a row.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from huey import Huey
from huey.storage import MemoryStorage

from socialpub.accounts import avatars, consents, key_limits, sign_in, upkeep, usage
from socialpub.core import logging
from socialpub.core.errors import SocialpubError, Unavailable
from socialpub.db import appliance_state
from socialpub.db.connection import BATCH_ROWS, Tx
from socialpub.db.tables import delivery_rows, holds, waits
from socialpub.media.decoder import client
from socialpub.ops import health, storage
from socialpub.ops.backup import create, last_backup, restore, schedule
from socialpub.ops.notify import schedule as notify_schedule
from socialpub.ops.webhooks.sender import WebhookThreads
from socialpub.publishing import retention
from socialpub.publishing.delivery import approvals, backfill, engine
from socialpub.publishing.media import renditions, thumbnails
from socialpub.publishing.posts import idempotency
from socialpub.runtime import Runtime

log = logging.get_logger("socialpub.worker")
backup_log = logging.get_logger("socialpub.backup")

# --- queues ----------------------------------------------------------------------------------------------------------


class MemoryQueue(MemoryStorage):  # type: ignore[misc]  # Huey has no types
    """Huey's storage in memory, without polling.

    The thread that became idle last is woken first, so few tasks use few database connections.
    """

    blocking = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._idle: list[threading.Event] = []
        self._closed = False

    def enqueue(self, data: bytes, priority: float | None = None) -> None:
        super().enqueue(data, priority)
        with self._lock:
            if self._idle:
                self._idle.pop().set()

    def dequeue(self) -> bytes | None:
        woken = threading.Event()
        with self._lock:
            data: bytes | None = None if self._closed else super().dequeue()
            if data is not None or self._closed:
                return data
            self._idle.append(woken)
        woken.wait()
        return None  # the thread asks again, unless the worker stops

    def close(self) -> None:
        """Return None to every thread from now on."""
        with self._lock:
            self._closed = True
            for woken in self._idle:
                woken.set()
            self._idle.clear()


class NetworkQueue:
    """The profiles of one network with due deliveries, in the order of their wake-ups.

    After one delivery, a thread puts the profile at the end of the queue if others wait.
    """

    def __init__(self, rt: Runtime, network: str) -> None:
        self._rt = rt
        self._waiting: set[str] = set()
        self.huey = Huey(network, storage_class=MemoryQueue, results=False)
        self._task: Any = self.huey.task(name="deliver")(self._deliver)

    def put(self, profile_id: str, delivery_id: str) -> None:
        """Wake one thread for the profile of this delivery, unless the profile waits already."""
        if profile_id not in self._waiting:
            self._waiting.add(profile_id)
            self._task(profile_id, delivery_id)

    def _deliver(self, profile_id: str, delivery_id: str) -> None:
        self._waiting.discard(profile_id)  # before the rows are read: a wake-up from now on counts
        try:
            if engine.work(self._rt, delivery_id, lambda: bool(self._waiting)):
                self.put(profile_id, delivery_id)
        except Unavailable as error:
            log.warning("the database is unavailable; the reconciler tries again", reason=error.detail)
        except Exception:
            log.error("a worker thread failed unexpectedly and continues", exc_info=True)


def wake(rt: Runtime, queues: Mapping[str, NetworkQueue], delivery_id: str) -> None:
    """Wake the queue of a delivery. While publishing is paused, do nothing: the reconciler wakes it after the pause."""
    if appliance_state.paused_at(rt.reader):
        return
    network, profile_id = delivery_rows.find_network_and_profile(rt.reader, delivery_id) or ("", "")
    if network in queues:
        queues[network].put(profile_id, delivery_id)


# --- scheduled backups -----------------------------------------------------------------------------------------------

REST_SECONDS = 300.0
"""The pause between two backups, even after a backup that could not write a row."""
STOP_SECONDS = 3.0
NICE = 10


class ScheduledBackups:
    """Starts a backup every `[backup] every` in its own process, and logs the result."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        """On the monotonic clock."""

    def check(self, rt: Runtime) -> None:
        """Start a backup that is due, or log the result of the last backup."""
        every = rt.settings.backup.every
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._log_end(rt, self._process.returncode)
            self._process, self._not_before = None, rt.clock.monotonic() + REST_SECONDS
        if every is None or rt.stopping.is_set() or rt.clock.monotonic() < self._not_before:
            return
        now = rt.now()
        if last_backup.next_backup_at(last_backup.load(rt.reader), every, now) <= now:
            self._process = self._start(rt)

    def stop(self) -> None:
        """End a running backup."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _start(self, rt: Runtime) -> "subprocess.Popen[bytes]":
        config = ["--config", str(rt.settings.config_file)] if rt.settings.config_file else []
        process = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, "-m", "socialpub", *config, "backup"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        return process

    def _log_end(self, rt: Runtime, code: int) -> None:
        last = last_backup.load(rt.reader)
        if code == 0:
            made = last.scheduled
            backup_log.info("a backup was created", backup=made and made.folder, new_bytes=made and made.new_bytes)
        else:
            backup_log.error("a backup could not be created", exit_code=code, reason=last.failure)


# --- periodic tasks --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    name: str
    every_seconds: float
    run: Callable[[Runtime], object]
    first_after_seconds: float = 0.0


class Background:
    """Runs periodic tasks: each again after its interval on the monotonic clock, and never twice at the same time."""

    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.backups = ScheduledBackups()
        self.webhooks = WebhookThreads()
        self.huey = Huey("background", storage_class=MemoryQueue, results=False)
        self.tasks = [
            PeriodicTask("revocation", 10.0, upkeep.revoke_disconnected),
            PeriodicTask(
                "token renewal", 60.0, lambda rt: upkeep.renew_idle_tokens(rt, holds.held_networks(rt.reader))
            ),
            PeriodicTask("warnings", 3600.0, upkeep.log_warnings),
            PeriodicTask(
                "account data", 10.0, lambda rt: upkeep.refresh_account_data(rt, holds.held_networks(rt.reader))
            ),
            PeriodicTask("backfill", 20.0, backfill.fill_in_missing),
            PeriodicTask("link cards", 1.0, approvals.read_cards),
            PeriodicTask("avatars", 10.0, avatars.fetch_next),
            PeriodicTask("holds", 60.0, lambda rt: rt.write(lambda _, tx: holds.drop_unasked(tx))),
            PeriodicTask("ended deliveries", 3600.0, engine.forget_ended),
            PeriodicTask("unused media", 3600.0, retention.remove_unused_media),
            PeriodicTask("renditions", 3600.0, renditions.clean),
            PeriodicTask("thumbnails", 3600.0, thumbnails.clean),
            PeriodicTask("scheduled backups", 60.0, self.backups.check),
            PeriodicTask("unfinished backups", 3600.0, clean_backups),
            PeriodicTask("unfinished restores", 3600.0, restore.remove_temp_dirs),
            PeriodicTask("dead processes", 3600.0, lambda rt: rt.process.forget_dead()),
            PeriodicTask("idempotency keys", 3600.0, in_steps(idempotency.clean)),
            PeriodicTask("posts of limited keys", 3600.0, in_steps(key_limits.clean)),
            PeriodicTask("old notifications", 3600.0, lambda rt: rt.write(notify_schedule.clean_messages)),
            PeriodicTask("consents", 3600.0, in_steps(consents.clean)),
            PeriodicTask("sessions", 3600.0, in_steps(sign_in.clean_sessions)),
            PeriodicTask("sign-in links", 3600.0, in_steps(sign_in.clean_links)),
            PeriodicTask("expired cooldowns", 3600.0, in_steps(lambda _, tx: waits.delete_past_cooldowns(tx))),
            PeriodicTask("expired profile waits", 3600.0, in_steps(lambda _, tx: waits.delete_own_waits(tx))),
            PeriodicTask("webhooks", 1.0, self.webhooks.check),
            PeriodicTask("retention", 5.0, retention.remove_expired),
            PeriodicTask("free pages", 60.0, storage.release_free_pages),
            PeriodicTask("usage", 60.0, usage.write_calls),
            PeriodicTask("decoder restart", 60.0, lambda _: client.retry_starting()),
            PeriodicTask("decoder check", 3600.0, lambda _: client.try_starting(), first_after_seconds=60.0),
            PeriodicTask("old usage", 3600.0, in_steps(usage.clean)),
            PeriodicTask("housekeeping record", 3600.0, lambda rt: rt.write(health.record_housekeeping)),
        ]
        for task in self.tasks:
            self._register(task)

    def _register(self, task: PeriodicTask) -> None:
        running, due_at = self.rt.running_tasks, self.rt.clock.monotonic() + task.first_after_seconds

        def is_due(_: datetime) -> bool:
            nonlocal due_at
            now = self.rt.clock.monotonic()
            if now < due_at or task.name in running:
                return False
            running[task.name], due_at = now, now + task.every_seconds
            return True

        @self.huey.periodic_task(is_due, name=task.name)  # type: ignore[untyped-decorator]
        def run() -> None:
            failed = True
            try:
                task.run(self.rt)
                failed = False
            except SocialpubError as error:
                log.warning("a periodic task could not finish", task=task.name, reason=error.detail)
            except Exception:
                log.error("a periodic task failed and runs again later", task=task.name, exc_info=True)
            finally:
                del running[task.name]
                health.record_task(self.rt, task.name, failed=failed)


def in_steps(clean: Callable[[Runtime, Tx], int]) -> Callable[[Runtime], int]:
    """Return a task that removes rows in small writes, so other writes are not delayed."""

    def run(rt: Runtime) -> int:
        removed = step = rt.write(clean)
        while step >= BATCH_ROWS and not rt.stopping.is_set():
            removed += (step := rt.write(clean))
        return removed

    return run


def clean_backups(rt: Runtime) -> None:
    """Remove the temporary folders of killed backups."""
    create.clean_temp_dirs(rt.settings, sees_all=False)
    schedule.remove_unfinished(rt)
