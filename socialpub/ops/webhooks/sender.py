"""Sends the events of the log: each address has its own thread and its own HTTP client.

An address gets one event at a time, in the order of writing. The row contains its position, the time of the next try
and the number of tries, so a restart continues. An event is sent twice only if this process ends between the response
and the write.
"""

import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import takewhile

from socialpub.core import logging
from socialpub.core.clock import after
from socialpub.core.errors import SocialpubError
from socialpub.core.locks import FileLock
from socialpub.db import appliance_state, clock_jumps
from socialpub.db.connection import BATCH_ROWS, Database
from socialpub.db.models import WebhookRow
from socialpub.db.queries import api_json
from socialpub.db.tables import log_entries, webhooks
from socialpub.ops.webhooks import calls, receivers
from socialpub.ops.webhooks.calls import WebhookResponse
from socialpub.runtime import Runtime

POLL_SECONDS = 1.0
GIVEN_UP_AFTER = timedelta(days=7)
"""The age at which an event is left out."""
FAILED_SECONDS = 10.0
"""The wait after an error of the database."""
FIRST_RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 3600.0
STOP_SECONDS = 3.0
"""The time that a stop waits for a response. Otherwise, the next start sends the event again."""

log = logging.get_logger(__name__)


def retry_seconds(tries: int) -> float:
    """Return the wait after this number of failed tries: 5 s, doubling to an hour, and up to half of it as jitter."""
    doubled = FIRST_RETRY_SECONDS * 2 ** min(tries - 1, 20)
    return float(min(doubled, LONGEST_RETRY_SECONDS)) * (1 + random.random() / 2)


class WebhookSender:
    """Sends the events of one address. `run_once` is a round of its thread."""

    def __init__(self, rt: Runtime, webhook_id: str) -> None:
        self.rt = rt
        self.id = webhook_id
        self.http = rt.http.separate(lookups=1)
        self._unsaved: Callable[[], None] | None = None
        """Stores the result of the last call, after a failed write."""
        self._idle_version: int | None = None
        """The version of the database in which this thread last found no event."""
        self.thread = threading.Thread(target=self._run, name=f"webhook-{webhook_id[-6:]}", daemon=True)

    def run_once(self) -> float | None:
        """Send the next event if it is due. Return the seconds until the next round, or None at the end."""
        rt = self.rt
        rt.db.follow_clock()  # before the age of an event is read
        self._save()
        version = rt.db.data_version
        if version == self._idle_version:
            return POLL_SECONDS
        row = webhooks.find(rt.db, self.id)
        if row is None or row.disabled_at is not None:
            return None
        if appliance_state.restored_from(rt.db) is not None or (row.next_at or "") > rt.stamp():
            return POLL_SECONDS
        newest, types = log_entries.newest_number(rt.db), receivers.log_types(row)
        events = log_entries.list_after(rt.db, row.sent_through, types, 1)
        if not events:
            if newest > row.sent_through:
                rt.db.write(webhooks.note_read, self.id, newest)
            self._idle_version = version
            return POLL_SECONDS
        [(number, at)] = events
        too_old = clock_jumps.written_before(rt.db, rt.now(), GIVEN_UP_AFTER)
        if at <= too_old:
            batch = log_entries.list_after(rt.db, row.sent_through, types, BATCH_ROWS)
            old = list(takewhile(lambda entry: entry[1] <= too_old, batch))
            rt.db.write(webhooks.note_left_out, self.id, old[-1][0], len(old))
            log.warning("events were too old and were left out", webhook=self.id, address=row.name, events=len(old))
        else:
            self._send(row, number)
        return 0.0

    def _send(self, row: WebhookRow, number: int) -> None:
        event = api_json.event(self.rt.db, number)
        if event is None:
            return  # removed just now
        entry_id, body = event
        response = calls.call(self.http, receivers.open_target(self.rt, row), entry_id, body, self.rt.now())
        if response.status is None and self.rt.stopping.is_set():
            return  # the stop interrupted the call
        self._unsaved = partial(self.rt.write, _record, row, number, response)
        self._save()

    def _save(self) -> None:
        if self._unsaved is not None:
            self._unsaved()
            self._unsaved = None

    def _run(self) -> None:
        wait: float | None = 0.0
        while wait is not None and not self.rt.stopping.wait(wait):
            try:
                wait = self.run_once()
            except SocialpubError as error:
                wait = FAILED_SECONDS
                log.warning("a webhook could not be served", webhook=self.id, reason=error.detail)
            except Exception:
                wait = FAILED_SECONDS
                log.error("a webhook failed unexpectedly and is retried", webhook=self.id, exc_info=True)
        if not self.rt.stopping.is_set():
            self.http.close()


def _record(rt: Runtime, tx: Database, row: WebhookRow, number: int, response: WebhookResponse) -> None:
    """Store the result of a call."""
    about = {"webhook": row.id, "address": row.name}
    if response.accepted:
        webhooks.note_accepted(tx, row.id, number, response.text)
        if row.tries:
            tx.call_after_commit(partial(log.info, "a webhook accepts events again", **about))
    elif response.gone:
        webhooks.note_gone(tx, row.id, response.text)
        tx.call_after_commit(partial(log.warning, "a webhook answered 410 and is disabled", **about))
    else:
        next_at = after(tx.stamp, retry_seconds(row.tries + 1))
        webhooks.note_failed(tx, row.id, response.text, next_at)
        facts = {**about, "reason": response.text, "next_at": next_at}
        tx.call_after_commit(partial(log.warning, "a webhook did not accept an event", **facts))


class WebhookThreads:
    """Starts a thread for each address. Only one process sends at a time."""

    def __init__(self) -> None:
        self._lock: FileLock | None = None
        self._senders: dict[str, WebhookSender] = {}

    def check(self, rt: Runtime) -> None:
        """Start the threads of new addresses. Threads of removed addresses end by themselves."""
        self._senders = {id: sender for id, sender in self._senders.items() if sender.thread.is_alive()}
        new = [id for id in webhooks.list_enabled(rt.db) if id not in self._senders]
        if not new or rt.stopping.is_set():
            return
        if self._lock is None:
            lock = FileLock(rt.settings.run_dir / "webhooks.lock")
            if not lock.try_acquire():
                return
            self._lock = lock
        for id in new:
            self._senders[id] = WebhookSender(rt, id)
            self._senders[id].thread.start()

    def stop(self) -> None:
        """Wait for the calls in progress, and interrupt them after a while."""
        give_up_at = time.monotonic() + STOP_SECONDS
        for sender in self._senders.values():
            sender.thread.join(max(give_up_at - time.monotonic(), 0.0))
            sender.http.close()
        if self._lock is not None:
            self._lock.release()
