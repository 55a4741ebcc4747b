"""The messages to the owner: a thread compares the current alerts with those that were sent.

The owner gets a message when an alert begins, one reminder a day while it lasts, and one when it has ended. An alert
that begins again within an hour of its end never ended. An event (`Alert.is_event`) is sent once.

A message and its alerts are stored in one transaction, so no alert is forgotten or sent twice. Each service gets the
messages one after the other, and a service that fails is retried later. A restored installation that is still paused
reports only the pause. A message may pass through another company's service, so it contains no secrets, and only the
beginning of a post.
"""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from socialpub.accounts.remedies import Surface
from socialpub.core import logging
from socialpub.core.clock import after, parse, stamp
from socialpub.core.errors import SocialpubError, cut
from socialpub.core.locks import FileLock
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import AlertRow, NotificationRow
from socialpub.db.queries import log_list
from socialpub.db.tables import notifications
from socialpub.db.tables.notifications import SentAlert
from socialpub.ops import alerts, health
from socialpub.ops.alerts import Alert, subject_of
from socialpub.ops.notify import send
from socialpub.ops.notify.send import Service
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

RETRY_SECONDS = 300.0
TITLE_CHARACTERS = 120

log = logging.get_logger(__name__)


class DueAlerts(NamedTuple):
    """The alerts of the next message."""

    begun: list[SentAlert]
    lasting: list[SentAlert]
    ended: list[SentAlert]


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
        message = _compose_message(rt, due, current, is_last=sent_today + 1 == DAILY_LIMIT)
        rows |= {row.key: replace(row, sent_at=stamp(now)) for row in (*due.begun, *due.lasting)}
        for row in due.ended:
            del rows[row.key]

    def store(_: Runtime, tx: Database) -> None:
        notifications.replace_alerts(tx, rows.values())
        if message is not None and due is not None:
            notifications.add(tx, *message)
            if any(row.kind == AlertKind.DELIVERY for row in due.begun):
                alerts.record_sent_failures(tx, through)

    if rows != rows_before:
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


# --- the text --------------------------------------------------------------------------------------------------------


def _compose_message(rt: Runtime, due: DueAlerts, alerts: Mapping[str, Alert], *, is_last: bool) -> tuple[str, str]:
    """Return the title and the body. `is_last`: today's limit is reached with this message."""
    needed = [*due.begun, *due.lasting]
    sentences = [alerts[row.key].sentence for row in needed] or [row.sentence for row in due.ended]
    if len(sentences) == 1:
        headline = sentences[0].partition(": ")[0].rstrip(".")
        summary = headline if needed else f"resolved: {headline}"
    else:
        summary = f"{len(sentences):,} problems {'need you' if needed else 'are resolved'}"
    parts = {
        "Needs you": [_describe(rt, alerts[row.key]) for row in due.begun],
        "Still needs you": [_describe(rt, alerts[row.key]) for row in due.lasting],
        "Resolved": [f"- Resolved: {row.sentence} (from {row.since} until {row.ended_at})" for row in due.ended],
    }
    # At the beginning, because some services cut a long message.
    texts = ["This is the last message of today. Later alerts are sent tomorrow (UTC)."] if is_last else []
    texts += ["\n".join([f"{heading}:", *items]) for heading, items in parts.items() if items]
    return _sign(rt, summary, "\n\n".join(texts))


def _describe(rt: Runtime, alert: Alert) -> str:
    lines = [f"- {alert.sentence}", *(f"  · {line}" for line in alert.details)]
    return "\n".join([*lines, f"  {alert.remedy}", f"  {rt.settings.base_url}{alert.path}"])


def _sign(rt: Runtime, summary: str, body: str) -> tuple[str, str]:
    """Return the title and the body with the installation that the message comes from."""
    restored = ", restored from a backup" if appliance_state.restored_from(rt.db) else ""
    name = f"socialpub{restored} ({urlsplit(rt.settings.base_url).hostname or ''})"
    title = cut(" ".join(f"{name}: {summary}".split()), TITLE_CHARACTERS)
    body = f"{body}\n\n{name}, {rt.now():%Y-%m-%d %H:%M} UTC: {rt.settings.base_url}/"
    return visible(redact(title), keep="\n"), visible(redact(body), keep="\n")


# --- sending ---------------------------------------------------------------------------------------------------------


def send_waiting(rt: Runtime) -> None:
    """Send each service its oldest waiting message. Blocks until all have responded or failed."""
    for service in send.list_services(rt):
        state = service.state
        if state is None or not state.waiting or (state.next_at or "") > rt.stamp():
            continue
        message = notifications.oldest_waiting(rt.db, state.sent_through)
        # Stored before the call, so that no message is repeated every few seconds if the disk is full afterwards.
        rt.db.write(notifications.note_try, service.id, after(rt.stamp(), RETRY_SECONDS))
        failure = send.send_message(rt.http, service.url.get_secret_value(), message.title, message.body)
        if failure is None:
            rt.db.write(notifications.note_sent, service.id, message.id)
            log.info("notification sent", service=service.name)
        elif not rt.stopping.is_set():  # otherwise, the stop interrupted the call
            rt.db.write(notifications.note_failed, service.id, failure)
            log.warning("notification failed", service=service.name, reason=failure, waiting=state.waiting)


def send_test(rt: Runtime) -> list[tuple[Service, str | None]]:
    """Send a test message to every service. Return the reason for each failure, or None. Blocks."""
    title, body = _sign(
        rt,
        "test message",
        "This is a test. You receive messages about problems that need you. Examples are accounts that must be "
        "connected again, failed deliveries, and networks that refuse your app.",
    )
    rt.write(send.register_services)
    results = []
    for service in send.list_services(rt):
        failure = send.send_message(rt.http, service.url.get_secret_value(), title, body)
        rt.db.write(notifications.note_tested, service.id, failure)
        results.append((service, failure))
    return results


class Notifier:
    """The thread that notifies the owner. It runs in the worker and, as a fallback, in the web process.

    A lock lets only one of these threads act at a time. The fallback acts only while no worker reports.
    """

    def __init__(self, rt: Runtime, *, is_fallback: bool = False) -> None:
        self.rt = rt
        self._is_fallback = is_fallback
        self._lock = FileLock(rt.settings.run_dir / "notifier.lock")
        self._is_registered = False
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
                send_waiting(self.rt)
            except SocialpubError as error:
                log.warning("the owner could not be notified", reason=error.detail)
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
            except Exception:
                log.error("notifying the owner failed and is retried", exc_info=True)
