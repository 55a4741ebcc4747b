"""The schedule of notifications: a thread compares the current alerts with those that were sent.

Alerts that begin together are sent together. A lasting alert is repeated each week. An alert that returns is grouped
longer each time. The end of an alert is sent after a few minutes, except for an event. Pure functions decide this.

A message and its alerts are stored in one transaction, so no alert is forgotten or sent twice. A restored installation
that is still paused reports only the pause.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from socialpub.accounts.hints import Surface
from socialpub.core import logging
from socialpub.core.clock import parse, stamp
from socialpub.core.errors import SocialpubError
from socialpub.core.locks import FileLock
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import NotificationRow, ToldCauseRow
from socialpub.db.queries import log_list
from socialpub.db.tables import notifications
from socialpub.db.tables.notifications import SentAlert
from socialpub.ops import alerts, health
from socialpub.ops.alerts import Alert, subject_of
from socialpub.ops.notify import messages, send
from socialpub.ops.notify.messages import DueAlerts, Failures
from socialpub.ops.notify.send import SendingStopped
from socialpub.runtime import Runtime

GROUPING = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(minutes=30),
    timedelta(hours=1),
)
"""The times that an alert waits for others: at its first occurrence within a day, its second, and so on."""
STAYS_WELL = timedelta(minutes=5)
REMIND = timedelta(days=7)
REMEMBERED = timedelta(days=1)
"""The time within which an alert that begins again counts as returning."""
KEPT = timedelta(days=7)
"""The time for which a message is kept for a failing service. Later, a newer message contains lasting alerts."""
INTERVAL_SECONDS = 10.0
JOIN_SECONDS = 5.0
SILENT = timedelta(minutes=5)
"""The time without a report from the worker after which the web process notifies the owner."""

log = logging.get_logger("socialpub.notify")


# --- decisions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AlertChanges:
    known: dict[str, SentAlert]
    changed: list[SentAlert]
    forgotten: list[str]


def compare_alerts(known: Mapping[str, SentAlert], found: Mapping[str, Alert], now: datetime) -> AlertChanges:
    after: dict[str, SentAlert] = {}
    for key, alert in found.items():
        after[key] = _present_alert(known[key], now) if key in known else _new_alert(known, alert, now)
    subjects = {subject_of(key) for key in found}
    for key, old in known.items():
        if key not in found:
            missing = _missing_alert(old, now, succeeded=old.subject in subjects)
            if missing is not None:
                after[key] = missing
    changed = [one for key, one in after.items() if known.get(key) != one]
    return AlertChanges(after, changed, [key for key in known if key not in after])


def _new_alert(known: Mapping[str, SentAlert], alert: Alert, now: datetime) -> SentAlert:
    sent = [one for one in known.values() if one.subject == alert.subject and one.told_at is not None]
    return SentAlert(
        alert.key,
        alert.subject,
        alert.kind.value,
        alert.sentence,
        alert.passes,
        stamp(now),
        # Each event has its own key.
        returns=len(sent) if alert.passes else 0,
    )


def _present_alert(old: SentAlert, now: datetime) -> SentAlert:
    if old.ended_at is None:
        return old
    if old.told_at is not None:  # the end was not sent yet, so for the owner the alert lasted
        return replace(old, ended_at=None, returns=old.returns if old.passes else old.returns + 1)
    short = now - parse(old.ended_at) < STAYS_WELL
    return replace(old, since=old.since if short or old.held_back else stamp(now), ended_at=None)


def _missing_alert(old: SentAlert, now: datetime, *, succeeded: bool) -> SentAlert | None:
    """Return the remaining record of an ended alert. `succeeded`: its subject has another alert now."""
    if old.ended_at is None:
        return None if succeeded and not old.passes else replace(old, ended_at=stamp(now))
    if old.held_back or (old.told_at is not None and not old.passes):
        return old  # its end must still be sent
    return old if now - parse(old.ended_at) < REMEMBERED else None


def find_due(known: Mapping[str, SentAlert], now: datetime) -> DueAlerts:
    """Return the alerts that have waited long enough, with all other unsent alerts."""
    unsent = [one for one in known.values() if one.told_at is None and one.ended_at is None]
    sent = [one for one in known.values() if one.told_at is not None and not one.passes]
    found = DueAlerts(
        begun=[one for one in unsent if now - parse(one.since) >= _grouping(one)],
        came_and_went=[one for one in known.values() if one.held_back and one.ended_at is not None],
        lasting=[one for one in sent if one.ended_at is None and now - parse(one.told_at or "") >= REMIND],
        ended=[
            one
            for one in sent
            if one.ended_at is not None and now - parse(one.ended_at) >= max(STAYS_WELL, _grouping(one))
        ],
    )
    if found:
        subjects = {one.subject for one in found.begun}  # a loop of an agent begins an alert for each post
        found.begun.extend(
            one for one in unsent if one not in found.begun and (not one.returns or one.subject in subjects)
        )
    return found


def mark_sent(message: DueAlerts, now: datetime) -> list[SentAlert]:
    at = stamp(now)
    return [
        *(replace(one, told_at=at, held_back=False) for one in (*message.begun, *message.lasting)),
        *(replace(one, held_back=False) for one in message.came_and_went),
        *(replace(one, told_at=None, returns=one.returns + 1) for one in message.ended),
    ]


def mark_held_back(message: DueAlerts) -> list[SentAlert]:
    """Return the alerts that the daily limit delays. Ends and reminders wait without a mark."""
    return [replace(one, held_back=True) for one in message.begun if not one.held_back]


def _grouping(alert: SentAlert) -> timedelta:
    return GROUPING[min(alert.returns, len(GROUPING) - 1)]


# --- messages ---------------------------------------------------------------------------------------------------------


def prepare_services(rt: Runtime, tx: Database) -> None:
    """Store the services when a process begins to notify. Earlier failures are not reported."""
    names = {service.id: service.name for service in send.list_services(rt, tx)}
    clean_messages(rt, tx)
    notifications.set_services(tx, names)
    messages.start_reporting_failures(rt, tx)


def forget_original(tx: Database) -> None:
    """Drop the messages and alerts that the original installation has sent or will send."""
    messages.record_sent_failures(tx, log_list.newest_failure(tx))
    tx.delete(ToldCauseRow)
    notifications.forget_sending(tx)


def store_due_message(rt: Runtime) -> bool:
    """Store a message if one is due. Return whether a message was stored."""
    now = rt.now()
    restored = appliance_state.restored_from(rt.reader)
    failed = messages.find_failures(rt)
    found = {alert.key: alert for alert in _find_alerts(rt, failed, restored)}
    known = {
        key: one
        for key, one in notifications.sent_alerts(rt.reader).items()
        if not restored or one.kind == AlertKind.PAUSED
    }
    changes = compare_alerts(known, found, now)
    due = find_due(changes.known, now)
    today = notifications.count_since(rt.reader, stamp(now.replace(hour=0, minute=0, second=0, microsecond=0)))
    limit = rt.settings.notify.daily_limit
    if due and today < limit:
        last_of_day = limit if today + 1 == limit else None
        text = messages.compose_message(due, found, messages.load_sender(rt), now, last_of_day=last_of_day)
        rt.write(_store_message, changes, due, text, failed, now_known=mark_sent(due, now))
        return True
    held = mark_held_back(due)
    if changes.changed or changes.forgotten or held:
        rt.write(_store_changes, changes, held)
    return False


def clean_messages(rt: Runtime, tx: Database) -> None:
    """Remove old messages, and those that the original installation of a restored backup sends."""
    oldest = stamp(tx.now - KEPT)
    if appliance_state.restored_from(tx):
        oldest = max(oldest, appliance_state.paused_at(tx) or oldest)
    tx.delete(NotificationRow, NotificationRow.at < oldest)


def _find_alerts(rt: Runtime, failed: Failures, restored: str | None) -> list[Alert]:
    surface = Surface.DASHBOARD if rt.settings.dashboard.enabled else Surface.SHELL
    found = [alert for alert in alerts.list_alerts(rt, surface) if alert.calls]
    found += messages.find_drafts(rt)
    found += [alert for alert in (messages.find_absence(rt), failed.alert) if alert is not None]
    wanted = [kind for kind in rt.settings.notify.causes if not restored or kind == AlertKind.PAUSED]
    return [alert for alert in found if alert.kind in wanted]


def _store_changes(rt: Runtime, tx: Database, changes: AlertChanges, now_known: list[SentAlert]) -> None:
    tx.delete(ToldCauseRow, ToldCauseRow.key.in_(changes.forgotten))
    notifications.put_alerts(tx, [*changes.changed, *now_known])


def _store_message(
    rt: Runtime,
    tx: Database,
    changes: AlertChanges,
    due: DueAlerts,
    text: tuple[str, str],
    failed: Failures,
    *,
    now_known: list[SentAlert],
) -> None:
    _store_changes(rt, tx, changes, now_known)
    notifications.add(tx, *text)
    if any(one.kind == AlertKind.DELIVERY for one in due.begun):
        messages.record_sent_failures(tx, failed.through)


class Notifier:
    """The thread that notifies the owner. It runs in the worker and, as a fallback, in the web process.

    A lock lets only one of these threads act at a time. The fallback acts only while no worker reports.
    """

    def __init__(self, rt: Runtime, *, is_fallback: bool = False) -> None:
        self.rt = rt
        self._is_fallback = is_fallback
        self._lock = FileLock(rt.settings.run_dir / "notifier.lock")
        self._begun = False
        self._accepted: dict[str, tuple[int, int]] = {}
        """Accepted messages that no row records yet (`send.send_waiting`)."""
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
        """Store a message if one is due, and send all waiting messages. Raises `SendingStopped`."""
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
        return age is not None and abs(age) > SILENT.total_seconds()

    def _run(self) -> None:
        while not self.rt.stopping.wait(INTERVAL_SECONDS):
            try:
                self.run_once()
            except SendingStopped:
                return
            except SocialpubError as error:
                log.warning("alerts could not be checked", reason=error.detail)
            except Exception:
                # The next attempt may succeed.
                log.error("notifying the owner failed and is retried", exc_info=True)
