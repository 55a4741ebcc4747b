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

from socialpub.accounts.hints import Surface
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
REMIND = timedelta(days=1)
DAILY_LIMIT = 20
KEPT = timedelta(days=1)
"""The time for which a message is kept for a failing service. Reminders repeat lasting alerts."""
INTERVAL_SECONDS = 10.0
JOIN_SECONDS = 5.0
SILENT_SECONDS = 300.0
"""The time without a report from the worker after which the web process notifies the owner."""

log = logging.get_logger(__name__)


# --- decisions -------------------------------------------------------------------------------------------------------


def follow_alerts(known: Mapping[str, SentAlert], alerts: Mapping[str, Alert], now: datetime) -> dict[str, SentAlert]:
    """Return the rows after a comparison with the current alerts."""
    rows = {
        key: replace(known[key], ended_at=None)
        if key in known
        else SentAlert(key, alert.kind.value, alert.sentence, alert.is_event, since=stamp(now))
        for key, alert in alerts.items()
    }
    subjects = {subject_of(key) for key in alerts}
    for key, row in known.items():
        if key not in alerts:
            ended = replace(row, ended_at=row.ended_at or stamp(now))
            # A subject with another alert is not resolved.
            is_reported = row.sent_at is not None and not row.is_event and subject_of(key) not in subjects
            if is_reported or not _is_over(ended, now):
                rows[key] = ended
    return rows


def find_due(rows: Mapping[str, SentAlert], now: datetime) -> DueAlerts | None:
    """Return the alerts of the next message, or None if no message is due."""
    unsent = [row for row in rows.values() if row.sent_at is None and row.ended_at is None]
    lasting = [row for row in rows.values() if row.sent_at and row.ended_at is None and not row.is_event]
    ended = [row for row in rows.values() if row.sent_at and not row.is_event and _is_over(row, now)]
    events = [row for row in rows.values() if row.is_event and row.sent_at]
    recent = {row.kind for row in events if not _passed(row.sent_at or "", SAME_ALERT, now)}
    begins = any(_passed(row.since, GROUPING, now) and not (row.is_event and row.kind in recent) for row in unsent)
    reminds = any(_passed(row.sent_at or "", REMIND, now) for row in lasting)
    if begins or reminds or ended:
        return DueAlerts(unsent, lasting if reminds else [], ended)
    return None


def _is_over(row: SentAlert, now: datetime) -> bool:
    return row.ended_at is not None and _passed(row.ended_at, SAME_ALERT, now)


def _passed(at: str, time: timedelta, now: datetime) -> bool:
    return now - parse(at) >= time


# --- messages --------------------------------------------------------------------------------------------------------


def prepare_services(rt: Runtime, tx: Database) -> None:
    """Store the services when a process begins to notify. Earlier failures are not reported."""
    clean_messages(rt, tx)
    notifications.set_services(tx, {service.id: service.name for service in send.list_services(rt, tx)})
    alerts.start_reporting_failures(rt, tx)


def forget_original(tx: Database) -> None:
    """Drop the messages and alerts that the original installation has sent or will send."""
    alerts.record_sent_failures(tx, log_list.newest_failure(tx))
    tx.delete(AlertRow)
    notifications.forget_sending(tx)


def store_due_message(rt: Runtime) -> None:
    """Store a message if one is due."""
    now = rt.now()
    through, current = _load_alerts(rt)
    known = notifications.sent_alerts(rt.reader)
    if appliance_state.restored_from(rt.reader) is not None:
        known = {key: row for key, row in known.items() if row.kind == AlertKind.PAUSED}
    rows = follow_alerts(known, current, now)
    due = find_due(rows, now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    sent_today = notifications.count_since(rt.reader, stamp(midnight))
    message = None
    if due is not None and sent_today < DAILY_LIMIT:
        is_last = sent_today + 1 == DAILY_LIMIT
        message = messages.compose_message(due, current, messages.load_sender(rt), now, is_last=is_last)
        rows |= {row.key: replace(row, sent_at=stamp(now)) for row in (*due.begun, *due.lasting)}
        for row in due.ended:
            del rows[row.key]
    if message is not None or rows != known:
        rt.write(_store, known, rows, message, through)


def clean_messages(rt: Runtime, tx: Database) -> None:
    """Remove old messages, and those that the original installation of a restored backup sends."""
    oldest = stamp(tx.now - KEPT)
    if appliance_state.restored_from(tx):
        oldest = max(oldest, appliance_state.paused_at(tx) or oldest)
    tx.delete(NotificationRow, NotificationRow.at < oldest)


def _load_alerts(rt: Runtime) -> tuple[int, dict[str, Alert]]:
    """Return the log entry through which failures are included, and the alerts that the owner wants."""
    restored = appliance_state.restored_from(rt.reader) is not None
    surface = Surface.DASHBOARD if rt.settings.dashboard.enabled else Surface.SHELL
    through, failures = alerts.find_failures(rt)
    current = [alert for alert in alerts.list_alerts(rt, surface) if alert.notifies]
    current += [*alerts.find_drafts(rt), *([failures] if failures else [])]
    kinds = [kind for kind in rt.settings.notify.causes if not restored or kind == AlertKind.PAUSED]
    return through, {alert.key: alert for alert in current if alert.kind in kinds}


def _store(
    rt: Runtime,
    tx: Database,
    known: Mapping[str, SentAlert],
    rows: Mapping[str, SentAlert],
    message: tuple[str, str] | None,
    through: int,
) -> None:
    tx.delete(AlertRow, AlertRow.key.in_([key for key in known if key not in rows]))
    changed = [row for key, row in rows.items() if known.get(key) != row]
    notifications.put_alerts(tx, changed)
    if message is not None:
        notifications.add(tx, *message)
    if any(row.kind == AlertKind.DELIVERY and row.sent_at for row in changed):
        alerts.record_sent_failures(tx, through)


class Notifier:
    """The thread that notifies the owner. It runs in the worker and, as a fallback, in the web process.

    A lock lets only one of these threads act at a time. The fallback acts only while no worker reports.
    """

    def __init__(self, rt: Runtime, *, is_fallback: bool = False) -> None:
        self.rt = rt
        self._is_fallback = is_fallback
        self._lock = FileLock(rt.settings.run_dir / "notifier.lock")
        self._begun = False
        self._accepted: dict[str, int] = {}
        """The last message that each service accepted in this process (`send.send_waiting`)."""
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    def start(self) -> None:
        """Start the thread, even without an address: the owner may add an address at any time.

        The worker calls this before it delivers, so that a delivery that fails in its first second is reported.
        """
        if not self._is_fallback and send.list_services(self.rt):
            self._begin()
        self._thread.start()

    def join(self) -> None:
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def run_once(self) -> None:
        """Store a message if one is due, and send waiting messages."""
        if not send.list_services(self.rt) or (self._is_fallback and not self._is_silent()):
            return
        if not self._lock.try_acquire():
            return
        try:
            self._begin()
            store_due_message(self.rt)
            send.send_waiting(self.rt, self._accepted)
        finally:
            self._lock.release()

    def _begin(self) -> None:
        if not self._begun:
            self.rt.write(prepare_services)
            self._begun = True

    def _is_silent(self) -> bool:
        age = health.heartbeat_age(self.rt.reader, self.rt.now())
        return age is not None and abs(age) > SILENT_SECONDS

    def _run(self) -> None:
        while not self.rt.stopping.wait(INTERVAL_SECONDS):
            try:
                self.run_once()
            except SocialpubError as error:
                log.warning("alerts could not be checked", reason=error.detail)
            except Exception:
                # The next attempt may succeed.
                log.error("notifying the owner failed and is retried", exc_info=True)
