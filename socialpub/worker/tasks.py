"""The periodic tasks of the worker: cleaning, renewal, scheduled backups."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from socialpub.accounts import account_data, avatars, consents, rate_limits, sign_in, token_upkeep, usage
from socialpub.core import logging
from socialpub.core.errors import SocialpubError
from socialpub.db.connection import BATCH_ROWS, Tx
from socialpub.db.tables import holds
from socialpub.media.decoder import client
from socialpub.ops import health, storage
from socialpub.ops.backup import create, last_backup, restore, schedule
from socialpub.ops.notify import schedule as notify_schedule
from socialpub.publishing import retention
from socialpub.publishing.delivery import backfill, engine, waiting
from socialpub.publishing.media import renditions, thumbnails
from socialpub.publishing.posts import idempotency
from socialpub.runtime import Runtime

# MERGED from worker/scheduled_copies.py: Copies that the worker has made by itself, `[backup] every` so long: each

BACKUP_CHECK_SECONDS = 60.0
REST_SECONDS = 300.0
"""After one has ended, whatever became of it: when no row could be written, nothing else would keep the next away."""
STOP_SECONDS = 3.0
NICE = 10

backup_log = logging.get_logger("socialpub.copies")


class ScheduledBackups:
    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        """On the monotonic clock."""

    def look(self, rt: Runtime) -> None:
        """Start one that is due, or tell how the last one ended."""
        every = rt.settings.backup.every
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._tell(rt, self._process.returncode)
            self._process, self._not_before = None, rt.clock.monotonic() + REST_SECONDS
        if every is None or rt.stopping.is_set() or rt.clock.monotonic() < self._not_before:
            return
        now = rt.now()
        if last_backup.next_at(last_backup.read(rt.reader), every, now) <= now:
            self._process = self._start(rt)

    def stop(self) -> None:
        """End one that is being made: what it left is removed before the next one."""
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

    def _tell(self, rt: Runtime, code: int) -> None:
        copy = last_backup.read(rt.reader)
        if code == 0:
            made = copy.scheduled
            backup_log.info("a copy was made", copy=made and made.folder, new_bytes=made and made.new_bytes)
        else:
            backup_log.error("a copy could not be made", exit_code=code, reason=copy.failure)


# MERGED from worker/housekeeping.py: What is due now and then, whether or not anything is published.

CHECK_SECONDS = 1.0

log = logging.get_logger("socialpub.sweep")


@dataclass(slots=True)
class PeriodicTask:
    name: str
    every_seconds: float
    run: Callable[[Runtime], object]
    due_at: float = 0.0
    """On the monotonic clock."""


class Housekeeping:
    def __init__(self, rt: Runtime) -> None:
        self.rt = rt
        self.copies = ScheduledBackups()
        self.tasks = [
            PeriodicTask("revocation", 10.0, token_upkeep.start_revocation),
            PeriodicTask("renewal of idle tokens", 60.0, renew_idle_tokens),
            PeriodicTask("warnings", 3600.0, token_upkeep.warn),
            PeriodicTask("account data", 10.0, fetch_account_data),
            PeriodicTask("backfill", 20.0, backfill.ask),
            PeriodicTask("pictures of accounts", 10.0, avatars.renew),
            PeriodicTask("holds", 60.0, lambda rt: rt.write(lambda _, tx: holds.drop_unasked(tx))),
            PeriodicTask("memories", 3600.0, engine.forget_ended),
            PeriodicTask("cleanup", 3600.0, retention.remove_unused_media),
            PeriodicTask("renditions", 3600.0, renditions.clean),
            PeriodicTask("thumbnails", 3600.0, thumbnails.clean),
            PeriodicTask("scheduled copies", BACKUP_CHECK_SECONDS, self.copies.look),
            PeriodicTask("copies that were killed", 3600.0, clean_backups),
            PeriodicTask("restores that were killed", 3600.0, restore.clean),
            PeriodicTask("processes that died", 3600.0, lambda rt: rt.process.forget_dead()),
            PeriodicTask("idempotency keys", 3600.0, in_steps(idempotency.clean)),
            PeriodicTask("messages to the owner", 3600.0, lambda rt: rt.write(notify_schedule.clean_messages)),
            PeriodicTask("consents", 3600.0, in_steps(consents.clean)),
            PeriodicTask("sessions", 3600.0, in_steps(sign_in.clean_sessions)),
            PeriodicTask("sign-in links", 3600.0, in_steps(sign_in.clean_links)),
            PeriodicTask("waits that are over", 3600.0, in_steps(rate_limits.clean)),
            PeriodicTask("waits in a profile's queue", 3600.0, in_steps(waiting.clean_own_waits)),
            PeriodicTask("retention", 5.0, retention.remove_expired),
            PeriodicTask("free pages", 60.0, storage.give_back),
            PeriodicTask("usage", 60.0, usage.write_calls),
            PeriodicTask("decoder that could not start", 60.0, lambda _: client.retry_starting()),
            PeriodicTask("decoder", 3600.0, lambda _: client.try_starting(), rt.clock.monotonic() + 60.0),
            PeriodicTask("old usage", 3600.0, in_steps(usage.clean)),
            PeriodicTask("note of housekeeping", 3600.0, health.note_housekept),
        ]
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        health.note_housekeeping_round(self.rt)
        self._thread.start()

    def join(self) -> None:
        self.copies.stop()
        self._thread.join(timeout=5)
        with contextlib.suppress(SocialpubError):  # worth a number on a page, but no failure
            usage.write_calls(self.rt)

    def _run(self) -> None:
        while not self.rt.stopping.is_set():
            for task in self.tasks:
                run_if_due(self.rt, task)
            health.note_housekeeping_round(self.rt)
            self.rt.stopping.wait(CHECK_SECONDS)


def in_steps(clean: Callable[[Runtime, Tx], int]) -> Callable[[Runtime], int]:
    """Let it remove rows in small writes, between which others have their turn, until few are left."""

    def run(rt: Runtime) -> int:
        removed = step = rt.write(clean)
        while step >= BATCH_ROWS and not rt.stopping.is_set():
            removed += (step := rt.write(clean))
        return removed

    return run


def run_if_due(rt: Runtime, task: PeriodicTask) -> None:
    """Run a task whose time has come. It outlives whatever fails inside it: the next time may go well."""
    now = rt.clock.monotonic()
    if now < task.due_at:
        return
    task.due_at = now + task.every_seconds
    try:
        task.run(rt)
    except SocialpubError as error:
        log.warning("a periodic task could not do all of its work", task=task.name, reason=error.detail)
    except Exception:
        log.error("a periodic task failed and runs again at its next time", task=task.name, exc_info=True)


def clean_backups(rt: Runtime) -> None:
    """Remove what killed backups left, wherever their folders are."""
    create.clean_temp_dirs(rt.settings, sees_all=False)
    schedule.clean(rt)


def renew_idle_tokens(rt: Runtime) -> str | None:
    """Renew one profile's tokens, not of a network that refuses this app; returns the profile's id, or None."""
    return token_upkeep.keep_alive(rt, holds.held(rt.reader))


def fetch_account_data(rt: Runtime) -> str | None:
    """Fetch the account data of one profile, not of a network that refuses this app; returns the profile's id, or
    None."""
    return account_data.keep_current(rt, holds.held(rt.reader))
