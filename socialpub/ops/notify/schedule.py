"""The schedule of notifications: a thread compares the current alerts with those that were sent.

The owner gets a message when an alert begins, one reminder a day while it lasts, and one when it has ended. An alert
that begins again within an hour of its end never ended. An event (`Alert.is_event`) is sent once.

A message and its alerts are stored in one transaction, so no alert is forgotten or sent twice. A restored installation
that is still paused reports only the pause.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from socialpub.accounts.remedies import Surface
from socialpub.core import logging
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import SocialpubError
from socialpub.core.locks import FileLock
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import AlertRow, NotificationRow
from socialpub.db.queries import log_list
from socialpub.db.tables import notifications
from socialpub.db.tables.notifications import SentAlert
from socialpub.ops import alerts, health
from socialpub.ops.alerts import Alert, subject_of
from socialpub.ops.notify import messages, send
from socialpub.ops.notify.messages import DueAlerts
from socialpub.runtime import Runtime

GROUPING = timedelta(minutes=1)
"""The time that an alert waits for others, and that it must last."""
SAME_ALERT = timedelta(hours=1)
"""The time after its end within which an alert that begins again is the same. Messages about events of one kind also
have this distance: an agent may create a post for approval every minute."""
DAY = timedelta(days=1)
"""The time between reminders, and for which a message is kept for a failing service."""
DAILY_LIMIT = 20
INTERVAL_SECONDS = 10.0
JOIN_SECONDS = 5.0
SILENT_SECONDS = 300.0
"""The time without a report from the worker after which the web process notifies the owner."""

log = logging.get_logger(__name__)


def follow_alerts(rows: Mapping[str, SentAlert], alerts: Mapping[str, Alert], now: datetime) -> dict[str, SentAlert]:
    """Return the rows after a comparison with the current alerts."""
    subjects = {subject_of(key) for key in alerts}
    following = {
        key: replace(rows[key], ended_at=None)
        if key in rows
        else SentAlert(key, alert.kind.value, alert.sentence, alert.is_event, since=stamp(now))
        for key, alert in alerts.items()
    }
    for key, row in rows.items():
        if key not in alerts:
            ended = replace(row, ended_at=row.ended_at or stamp(now))
            # A subject with another alert is not resolved.
            is_reported = row.sent_at is not None and not row.is_event and subject_of(key) not in subjects
            if is_reported or not _passed(ended.ended_at, SAME_ALERT, now):
                following[key] = ended
    return following


def find_due(rows: Mapping[str, SentAlert], now: datetime) -> DueAlerts | None:
    """Return the alerts of the next message, or None if no message is due."""
    unsent = [row for row in rows.values() if row.sent_at is None and row.ended_at is None]
    events = [row for row in rows.values() if row.sent_at and row.is_event]
    states = [row for row in rows.values() if row.sent_at and not row.is_event]
    lasting = [row for row in states if row.ended_at is None]
    ended = [row for row in states if row.ended_at and _passed(row.ended_at, SAME_ALERT, now)]
    recent = {row.kind for row in events if not _passed(row.sent_at, SAME_ALERT, now)}
    begins = any(_passed(row.since, GROUPING, now) and not (row.is_event and row.kind in recent) for row in unsent)
    reminds = any(_passed(row.sent_at, DAY, now) for row in lasting)
    return DueAlerts(unsent, lasting if reminds else [], ended) if begins or reminds or ended else None


def _passed(at: str | None, time: timedelta, now: datetime) -> bool:
    return at is not None and now - parse(at) >= time


def forget_original(tx: Database) -> None:
    """Drop the messages and alerts that the original installation has sent or will send."""
    alerts.record_sent_failures(tx, log_list.newest_failure(tx))
    tx.delete(AlertRow)
    notifications.forget_sending(tx)


def clean_messages(rt: Runtime, tx: Database) -> None:
    tx.delete(NotificationRow, NotificationRow.at < stamp(tx.now - DAY))


def store_due_message(rt: Runtime) -> None:
    """Store a message if one is due."""
    now = rt.now()
    through, current = _load_alerts(rt)
    rows_before = notifications.sent_alerts(rt.db)
    rows = follow_alerts(rows_before, current, now)
    due = find_due(rows, now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    sent_today = notifications.count_since(rt.db, stamp(midnight))
    message = None
    if due is not None and sent_today < DAILY_LIMIT:
        message = messages.compose_message(rt, due, current, is_last=sent_today + 1 == DAILY_LIMIT)
        rows |= {row.key: replace(row, sent_at=stamp(now)) for row in (*due.begun, *due.lasting)}
        for row in due.ended:
            del rows[row.key]
    changed = [row for key, row in rows.items() if rows_before.get(key) != row]
    gone = [key for key in rows_before if key not in rows]
    failures_sent = any(row.kind == AlertKind.DELIVERY and row.sent_at for row in changed)

    def store(_: Runtime, tx: Database) -> None:
        tx.delete(AlertRow, AlertRow.key.in_(gone))
        notifications.put_alerts(tx, changed)
        if message is not None:
            notifications.add(tx, *message)
        if failures_sent:
            alerts.record_sent_failures(tx, through)

    if changed or gone:
        rt.write(store)


def _load_alerts(rt: Runtime) -> tuple[int, dict[str, Alert]]:
    """Return the log entry through which failures are included, and the alerts that the owner wants."""
    restored = appliance_state.restored_from(rt.db) is not None
    surface = Surface.DASHBOARD if rt.settings.dashboard.enabled else Surface.SHELL
    through, failures = alerts.find_failures(rt)
    current = [alert for alert in alerts.list_alerts(rt, surface) if alert.notifies]
    current += [*alerts.find_drafts(rt), *([failures] if failures else [])]
    kinds = [kind for kind in rt.settings.notify.causes if not restored or kind == AlertKind.PAUSED]
    return through, {alert.key: alert for alert in current if alert.kind in kinds}


class Notifier:
    """The thread that notifies the owner. It runs in the worker and, as a fallback, in the web process.

    A lock lets only one of these threads act at a time. The fallback acts only while no worker reports.
    """

    def __init__(self, rt: Runtime, *, is_fallback: bool = False) -> None:
        self.rt = rt
        self._is_fallback = is_fallback
        self._lock = FileLock(rt.settings.run_dir / "notifier.lock")
        self._is_registered = False
        self._accepted: dict[str, int] = {}
        """The last message that each service accepted in this process (`send.send_waiting`)."""
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start the thread, even without an address: the owner may add an address at any time.

        The worker calls this before it delivers, so that a delivery that fails in its first second is reported.
        """
        if not self._is_fallback and send.list_services(self.rt):
            self._register()
        self._thread.start()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def run_once(self) -> None:
        """Store a message if one is due, and send waiting messages."""
        age = health.heartbeat_age(self.rt.db, self.rt.now())
        if self._is_fallback and (age is None or abs(age) <= SILENT_SECONDS):
            return
        if send.list_services(self.rt) and self._lock.try_acquire():
            try:
                self._register()
                store_due_message(self.rt)
                send.send_waiting(self.rt, self._accepted)
            finally:
                self._lock.release()

    def _register(self) -> None:
        if not self._is_registered:
            self.rt.write(send.register_services)
            self._is_registered = True

    def _run(self) -> None:
        while not self.rt.stopping.wait(INTERVAL_SECONDS):
            try:
                self.run_once()
            except SocialpubError as error:
                log.warning("alerts could not be checked", reason=error.detail)
            except Exception:
                log.error("notifying the owner failed and is retried", exc_info=True)
