"""The worker's tasks: deliver a profile's due posts, and the background tasks."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from huey import crontab

from socialpub.accounts import avatars, consents, key_limits, sign_in, upkeep, usage
from socialpub.core import logging
from socialpub.core.errors import SocialpubError, Unavailable
from socialpub.db import appliance_state
from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.tables import waits
from socialpub.media.decoder import client
from socialpub.ops import health, storage
from socialpub.ops.backup import create, last_backup, restore, schedule
from socialpub.ops.notify import notifier
from socialpub.ops.webhooks.sender import WebhookThreads
from socialpub.publishing import backfill, retention
from socialpub.publishing.delivery import engine
from socialpub.publishing.media import renditions, thumbnails
from socialpub.publishing.posts import approvals, idempotency
from socialpub.runtime import CausedTask, Runtime
from socialpub.worker.queues import Queues

log = logging.get_logger(__name__)

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
        if last_backup.next_backup_at(last_backup.load(rt.db), every, now) <= now:
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
        last = last_backup.load(rt.db)
        if code == 0:
            made = last.scheduled
            log.info("a backup was created", backup=made and made.folder, new_bytes=made and made.new_bytes)
        else:
            log.error("a backup could not be created", exit_code=code, reason=last.failure)


# --- background tasks -------------------------------------------------------------------------------------------------


CAUSED_SECONDS = 60.0
"""The interval of tasks that a write causes. A run repeats lost wake-ups and failed calls, and renews old data."""


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    name: str
    act: Callable[[Runtime], object]
    every_seconds: float | None = None
    """The reconciler enqueues the task at this interval, because a cron expression has minutes."""
    minute: str = "*"
    """Otherwise Huey's scheduler enqueues the task at these minutes. A clock that is set may skip a run."""


class Tasks:
    """Runs the tasks of the queues. A failure never ends a thread."""

    def __init__(self, rt: Runtime, queues: Queues) -> None:
        self.rt, self.queues = rt, queues
        self._starting = threading.Lock()
        self.backups = ScheduledBackups()
        self.webhooks = WebhookThreads()
        hourly: list[tuple[str, Callable[[Runtime], object]]] = [
            ("unused media", retention.remove_unused_media),
            ("renditions", renditions.clean),
            ("thumbnails", thumbnails.clean),
            ("unfinished backups", clean_backups),
            ("unfinished restores", restore.remove_temp_dirs),
            ("dead processes", lambda rt: rt.process.forget_dead()),
            ("idempotency keys", in_steps(idempotency.clean)),
            ("posts of limited keys", in_steps(key_limits.clean)),
            ("old notifications", lambda rt: rt.write(notifier.clean_messages)),
            ("consents", in_steps(consents.clean)),
            ("sessions", in_steps(sign_in.clean_sessions)),
            ("sign-in links", in_steps(sign_in.clean_links)),
            ("past waits", in_steps(lambda _, tx: waits.delete_past(tx))),
            ("decoder check", lambda _: client.try_starting()),
            ("old usage", in_steps(usage.clean)),
            ("housekeeping record", lambda rt: rt.write(health.record_housekeeping)),
        ]
        self.all = {
            task.name: task
            for task in (
                BackgroundTask(CausedTask.REVOCATION, upkeep.revoke_disconnected, CAUSED_SECONDS),
                BackgroundTask(
                    CausedTask.ACCOUNT_DATA,
                    lambda rt: upkeep.refresh_account_data(rt, waits.held_networks(rt.db)),
                    CAUSED_SECONDS,
                ),
                BackgroundTask("backfill", backfill.fill_in_missing, 20.0),
                BackgroundTask("link cards", approvals.read_cards, 1.0),
                BackgroundTask(CausedTask.AVATARS, avatars.fetch_next, CAUSED_SECONDS),
                BackgroundTask("webhooks", self.webhooks.check, 1.0),
                BackgroundTask("retention", retention.Retention().remove_expired, 5.0),
                BackgroundTask("token renewal", lambda rt: upkeep.renew_idle_tokens(rt, waits.held_networks(rt.db))),
                BackgroundTask("holds", lambda rt: rt.write(lambda _, tx: waits.delete_unasked_holds(tx))),
                BackgroundTask("scheduled backups", self.backups.check),
                BackgroundTask("free pages", storage.release_free_pages),
                BackgroundTask("usage", usage.write_calls),
                BackgroundTask("decoder restart", lambda _: client.retry_starting()),
                *(BackgroundTask(name, act, minute=str(3 * n % 60)) for n, (name, act) in enumerate(hourly)),
            )
        }
        for task in self.all.values():
            if task.every_seconds is None:
                declare = queues.background.periodic_task(crontab(minute=task.minute), name=task.name)
                declare(partial(self.run, task.name))

    def deliver(self, network: str, profile_id: str) -> None:
        """Run the due deliveries of a profile. If another profile waits, the profile goes to the end of its queue."""
        if appliance_state.paused_at(self.rt.db):
            return
        others_wait = lambda: self.queues.networks[network].pending_count() > 0  # noqa: E731
        try:
            if engine.work(self.rt, profile_id, others_wait):
                self.queues.deliver(network, profile_id)
        except Unavailable as error:
            log.warning("the database is unavailable; the reconciler tries again", reason=error.detail)
        except Exception:
            log.error("a worker thread failed unexpectedly and continues", exc_info=True)

    def run(self, name: str) -> None:
        """Run a background task, unless it is running. A lock in the queue file would outlive a killed worker."""
        running = self.rt.running_tasks
        with self._starting:
            if name in running:
                return
            running[name] = self.rt.clock.monotonic()
        failed = True
        try:
            self.all[name].act(self.rt)
            failed = False
        except SocialpubError as error:
            log.warning("a background task could not finish", task=name, reason=error.detail)
        except Exception:
            log.error("a background task failed and runs again later", task=name, exc_info=True)
        finally:
            del running[name]
            # `doctor`, readiness and notifications report a task that fails every time.
            failures = self.rt.task_failures
            failures[name] = failures.get(name, 0) + 1 if failed else 0


def in_steps(clean: Callable[[Runtime, Database], int]) -> Callable[[Runtime], int]:
    """Return a task that removes rows in small writes, so other writes are not delayed."""

    def run(rt: Runtime) -> int:
        removed = step = rt.write(clean)
        while step >= BATCH_ROWS and not rt.stopping.is_set():
            removed += (step := rt.write(clean))
        return removed

    return run


def clean_backups(rt: Runtime) -> None:
    create.remove_download(rt)
    schedule.remove_unfinished(rt)
