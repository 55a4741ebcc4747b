"""What is due now and then, whether or not anything is published.

It may wait for a network or a disk, so it has a thread of its own in the worker.
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from socialpub.accounts import (
    account_data,
    avatars,
    browser_sessions,
    consents,
    cooldowns,
    idle_tokens,
    revocation,
    sign_in_links,
    usage,
)
from socialpub.core import logging
from socialpub.core.errors import SocialpubError
from socialpub.db.transaction import AT_ONCE, Tx
from socialpub.media import decoder_client
from socialpub.ops import database_file, housekeeping_report, worker_report
from socialpub.ops.copies import copy_download, copy_scratch, restore, scheduled_copy
from socialpub.ops.notify import rounds
from socialpub.publishing import (
    backfill,
    cleanup,
    engine,
    holds,
    idempotency,
    renditions,
    retention,
    scheduling,
    thumbnails,
)
from socialpub.runtime import Runtime
from socialpub.worker import scheduled_copies
from socialpub.worker.scheduled_copies import ScheduledCopies

LOOK_SECONDS = 1.0

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
        self.copies = ScheduledCopies()
        self.tasks = [
            PeriodicTask("revocation", 10.0, revocation.start),
            PeriodicTask("renewal of idle tokens", 60.0, renew_idle_tokens),
            PeriodicTask("warnings", 3600.0, idle_tokens.warn),
            PeriodicTask("account data", 10.0, fetch_account_data),
            PeriodicTask("backfill", 20.0, backfill.ask),
            PeriodicTask("pictures of accounts", 10.0, avatars.renew),
            PeriodicTask("holds", 60.0, lambda rt: rt.write(lambda _, tx: holds.drop_unasked(tx))),
            PeriodicTask("memories", 3600.0, engine.forget_ended),
            PeriodicTask("cleanup", 3600.0, cleanup.clean),
            PeriodicTask("renditions", 3600.0, renditions.clean),
            PeriodicTask("thumbnails", 3600.0, thumbnails.clean),
            PeriodicTask("scheduled copies", scheduled_copies.LOOK_SECONDS, self.copies.look),
            PeriodicTask("copies that nobody took", 3600.0, copy_download.clean),
            PeriodicTask("copies that were killed", 3600.0, clean_copies),
            PeriodicTask("restores that were killed", 3600.0, restore.clean),
            PeriodicTask("processes that died", 3600.0, lambda rt: rt.process.forget_dead()),
            PeriodicTask("idempotency keys", 3600.0, in_steps(idempotency.clean)),
            PeriodicTask("messages to the owner", 3600.0, lambda rt: rt.write(rounds.clean)),
            PeriodicTask("consents", 3600.0, in_steps(consents.clean)),
            PeriodicTask("sessions", 3600.0, in_steps(browser_sessions.clean)),
            PeriodicTask("sign-in links", 3600.0, in_steps(sign_in_links.clean)),
            PeriodicTask("waits that are over", 3600.0, in_steps(cooldowns.clean)),
            PeriodicTask("waits in a profile's queue", 3600.0, in_steps(scheduling.clean_own_waits)),
            PeriodicTask("retention", 5.0, retention.remove),
            PeriodicTask("free pages", 60.0, database_file.give_back),
            PeriodicTask("usage", 60.0, usage.write_calls),
            PeriodicTask("decoder that could not start", 60.0, lambda _: decoder_client.try_again()),
            PeriodicTask("decoder", 3600.0, lambda _: decoder_client.try_starting(), rt.clock.monotonic() + 60.0),
            PeriodicTask("old usage", 3600.0, in_steps(usage.clean)),
            PeriodicTask("note of housekeeping", 3600.0, housekeeping_report.note),
        ]
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        worker_report.note_round(self.rt)
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
            worker_report.note_round(self.rt)
            self.rt.stopping.wait(LOOK_SECONDS)


def in_steps(clean: Callable[[Runtime, Tx], int]) -> Callable[[Runtime], int]:
    """Let it remove rows in small writes, between which others have their turn, until few are left."""

    def run(rt: Runtime) -> int:
        removed = step = rt.write(clean)
        while step >= AT_ONCE and not rt.stopping.is_set():
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


def clean_copies(rt: Runtime) -> None:
    """What copies that were cut off have left, wherever they were to lie."""
    copy_scratch.clean_hourly(rt)
    scheduled_copy.clean(rt)


def renew_idle_tokens(rt: Runtime) -> str | None:
    """Renew one profile's tokens, not of a network that refuses this app; returns the profile's id, or None."""
    return idle_tokens.keep_alive(rt, holds.held(rt.reader))


def fetch_account_data(rt: Runtime) -> str | None:
    """Fetch the account data of one profile, not of a network that refuses this app; returns the profile's id, or
    None."""
    return account_data.keep_current(rt, holds.held(rt.reader))
