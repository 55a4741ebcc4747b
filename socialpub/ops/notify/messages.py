"""The text of a message to the owner: failed deliveries, drafts, the worker's absence and all other alerts.

A message may pass through another company's service. It does not contain secrets, and only the beginning of a post.

A position in the delivery log records which failures were sent, so a change of the clock has no effect.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from socialpub.core import units
from socialpub.core.clock import parse, stamp
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.connection import Database
from socialpub.db.models import DeliveryRow, NotificationRow
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import FailedDeliveries, FailedDelivery
from socialpub.db.tables import delivery_rows, notifications, post_rows
from socialpub.db.tables.notifications import SentAlert
from socialpub.ops import health
from socialpub.ops.alerts import Alert
from socialpub.ops.health import FindingCode
from socialpub.providers.registry import LABELS
from socialpub.publishing.delivery.read_back import STOPPED
from socialpub.runtime import Runtime

MAX_FAILURES = 5
FAILURES_NOT_OLDER_THAN = timedelta(days=7)
DRAFT_KEPT_BY_NETWORK = timedelta(hours=24)
"""The time until TikTok drops an unfinished draft (integrators, 2026)."""
DRAFT_REMEDY = (
    "Open the notification in the network's app and finish the post there. Copy the caption from the post's page."
)
LONG_ABSENCE = timedelta(minutes=10)
"""The shortest absence to report. A restart or an upgrade takes less time."""
ABSENCE_SHOWN_FOR = timedelta(days=1)
SILENCE = f"worker:{FindingCode.WORKER_LATE}:"
"""The alert that the web process may have sent. The message about the end of this alert makes an absence
alert redundant."""

MAX_NAMED = 12
"""The maximum number of alerts in each part: a hundred accounts may expire on one day."""
TEXT_CHARACTERS = 60
ERROR_CHARACTERS = 200
SENTENCE_CHARACTERS = 500
TITLE_CHARACTERS = 120
BODY_CHARACTERS = 12_000


# --- failed deliveries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failures:
    through: int
    """The last log entry that is included."""
    alert: Alert | None


def start_reporting_failures(rt: Runtime, tx: Database) -> None:
    """Report failures from now on, unless reporting has already started."""
    newest = log_list.newest_failure(tx)
    appliance_state.put_if_absent(tx, appliance_state.FAILURES_ALERTED, str(newest))


def record_sent_failures(tx: Database, through: int) -> None:
    appliance_state.put(tx, appliance_state.FAILURES_ALERTED, str(through))


def find_failures(rt: Runtime) -> Failures:
    """Return the failures that were not sent to the owner, without retried and stopped deliveries."""
    sent = int(appliance_state.get(rt.reader, appliance_state.FAILURES_ALERTED) or 0)
    through = log_list.newest_failure(rt.reader)
    if through <= sent:
        return Failures(sent, None)
    since = stamp(rt.now() - FAILURES_NOT_OLDER_THAN)
    failed = log_list.failures_after(rt.reader, sent, since, STOPPED, MAX_FAILURES)
    return Failures(through, _failures_alert(failed, sent) if failed.newest else None)


def _failures_alert(found: FailedDeliveries, sent: int) -> Alert:
    count = found.failed + found.unknown
    first = found.newest[0]
    lines = [_line(one) for one in found.newest]
    if count > len(lines):
        lines.append(f"and {count - len(lines):,} more")
    remedy = "Check each delivery, and retry the posts that you still want to publish."
    if found.unknown:
        remedy = "If the outcome is unknown, check the account first: the post may be published. Then retry the post."
    return Alert(
        AlertKind.DELIVERY,
        f"delivery:{sent}",
        _sentence(found),
        remedy,
        f"/posts/{first.post_id}" if count == 1 else "/",
        passes=True,
        details=tuple(lines),
    )


def _sentence(found: FailedDeliveries) -> str:
    many = log_list.MAX_FAILURES
    at_least = "At least " if found.failed + found.unknown >= many else ""
    parts = []
    if found.failed:
        parts.append("1 delivery failed" if found.failed == 1 else f"{found.failed:,} deliveries failed")
    if found.unknown:
        parts.append(f"the outcome of {found.unknown:,} is unknown")
    sentence = ", and ".join(parts)
    if not found.failed:
        sentence = "The outcome of 1 delivery is unknown"
        if found.unknown > 1:
            sentence = f"The outcome of {found.unknown:,} deliveries is unknown"
    return f"{at_least}{sentence}."


def _line(one: FailedDelivery) -> str:
    text = _beginning(one.text)
    post = f"“{text}”" if text else "A post without text"
    return (
        f"{post} to {one.profile_name} ({LABELS.get(one.provider, one.provider)}): {_cut(one.error, ERROR_CHARACTERS)}"
    )


def _beginning(text: str | None) -> str:
    return _cut(" ".join((text or "").split()), TEXT_CHARACTERS)


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else f"{text[: max_characters - 1].rstrip()}…"


# --- drafts ----------------------------------------------------------------------------------------------------------


def find_drafts(rt: Runtime) -> list[Alert]:
    """Return an alert for each draft in an app's inbox, oldest first, until the draft is posted or dropped."""
    since = stamp(rt.now() - DRAFT_KEPT_BY_NETWORK)
    rows = delivery_rows.published_without_id(rt.reader, since)
    return [_draft_alert(rt.reader, row) for row in rows if json.loads(row.memo).get("in_inbox")]


def _draft_alert(reader: Database, row: DeliveryRow) -> Alert:
    label = LABELS.get(row.provider, row.provider)
    post = post_rows.find(reader, row.post_id)
    text = _beginning(None if post is None else post.body)
    about = f": “{text}”" if text else ""
    return Alert(
        AlertKind.DRAFT,
        f"draft:{row.id}:inbox",
        f"A draft is waiting in the {label} inbox of {row.profile_name}{about}.",
        DRAFT_REMEDY,
        f"/posts/{row.post_id}",
        must_be_fixed=False,
        passes=True,
    )


# --- the worker's absence --------------------------------------------------------------------------------------------


def record_start(rt: Runtime, tx: Database) -> None:
    """Record the absence that ends with this start of the worker, unless the worker was stopped and missed nothing."""
    reported = appliance_state.get(tx, appliance_state.HEARTBEAT)
    ended = appliance_state.get(tx, appliance_state.WORKER_ENDED_AT)
    appliance_state.remove(tx, appliance_state.WORKER_ENDED_AT)
    if reported is None or tx.now - parse(reported) < LONG_ABSENCE:
        return
    late = health.find_overdue(tx, tx.now).count
    known = notifications.sent_alerts(tx).get(SILENCE)
    if (ended is None or late) and (known is None or known.told_at is None):
        away = {"since": reported, "until": tx.stamp, "late": late}
        appliance_state.put(tx, appliance_state.WORKER_AWAY, json.dumps(away))


def record_end(rt: Runtime, tx: Database) -> None:
    appliance_state.put(tx, appliance_state.WORKER_ENDED_AT, tx.stamp)


def find_absence(rt: Runtime) -> Alert | None:
    """Return the alert about a recent absence of the worker."""
    written = appliance_state.get(rt.reader, appliance_state.WORKER_AWAY)
    if written is None:
        return None
    away = json.loads(written)
    if rt.now() - parse(away["until"]) > ABSENCE_SHOWN_FOR:
        return None
    span = (parse(away["until"]) - parse(away["since"])).total_seconds()
    sentence = f"The worker was not running for {_in_words(span)}, until {away['until'][:16].replace('T', ' ')} UTC"
    if away["late"]:
        were = "1 delivery was" if away["late"] == 1 else f"{away['late']:,} deliveries were"
        sentence += f". When the worker returned, {were} overdue"
    return Alert(
        AlertKind.WORKER,
        f"worker:away:{away['since']}",
        f"{sentence}.",
        "The worker is running again. To find the cause, read its log and the system log.",
        "/system",
        passes=True,
    )


def _in_words(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 7200 else f"{seconds / 60:.0f} minutes"


# --- title and body --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DueAlerts:
    """The alerts of the next message."""

    begun: list[SentAlert] = field(default_factory=list)
    came_and_went: list[SentAlert] = field(default_factory=list)
    """Alerts that began and ended while the daily limit was reached."""
    lasting: list[SentAlert] = field(default_factory=list)
    ended: list[SentAlert] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.begun or self.came_and_went or self.lasting or self.ended)


@dataclass(frozen=True, slots=True)
class Sender:
    """The installation that a message comes from."""

    base_url: str
    restored_from: str | None = None
    """The instant of the restored backup, until publishing is resumed."""

    @property
    def name(self) -> str:
        host = urlsplit(self.base_url).hostname or ""
        return f"socialpub, restored from a backup ({host})" if self.restored_from else f"socialpub ({host})"


def compose_message(
    message: DueAlerts, found: Mapping[str, Alert], sender: Sender, now: datetime, *, last_of_day: int | None = None
) -> tuple[str, str]:
    """Return the title and the body. `last_of_day` is the daily limit if this is the last message of the day."""
    parts = [
        *_part("Needs you", [_item(one, found.get(one.key), sender) for one in message.begun]),
        *_part("Still needs you", [_item(one, found.get(one.key), sender) for one in message.lasting]),
        *_part("Began and ended while the daily limit was reached", [_over(one) for one in message.came_and_went]),
        *_part("Resolved", [_over(one) for one in message.ended]),
    ]
    held = sum(one.held_back for one in (*message.begun, *message.came_and_went, *message.lasting, *message.ended))
    if held:
        parts.append(f"{units.count(held, 'alert was', 'alerts were')} delayed by yesterday's limit.")
    if last_of_day is not None:
        parts.append(
            f"This is the last message of today (notify.daily_limit is {last_of_day}). "
            "Later alerts are sent tomorrow (UTC)."
        )
    parts.append(f"{sender.name}, {_moment(now)}: {sender.base_url}/")
    return _title(message, found, sender), _cut(_safe("\n\n".join(parts)), BODY_CHARACTERS)


def join_waiting(waiting: list[NotificationRow]) -> tuple[str, str]:
    """Return all messages that wait for a service as one message."""
    if len(waiting) == 1:
        return waiting[0].title, waiting[0].body
    bodies = "\n\n– – –\n\n".join(f"{one.title}\n\n{one.body}" for one in reversed(waiting))
    title = f"{waiting[-1].title.partition(': ')[0]}: {len(waiting)} delayed messages"
    return title, _cut(bodies, BODY_CHARACTERS)


def test_message(sender: Sender, now: datetime) -> tuple[str, str]:
    body = (
        "This is a test. You receive messages about problems that need you. Examples are accounts that must be "
        "connected again, failed deliveries, and networks that refuse your app.\n\n"
        f"{sender.name}, {_moment(now)}: {sender.base_url}/"
    )
    return f"{sender.name}: test message", body


def _title(message: DueAlerts, found: Mapping[str, Alert], sender: Sender) -> str:
    needs, over = [*message.begun, *message.lasting], [*message.ended, *message.came_and_went]
    if len(needs) == 1:
        # The current sentence, like the text below the title.
        now = found.get(needs[0].key)
        what = _headline(now.sentence if now else needs[0].sentence)
    elif needs:
        what = f"{len(needs):,} problems need you"
    elif len(over) == 1:
        what = f"resolved: {_headline(over[0].sentence)}"
    else:
        what = f"{len(over):,} problems are resolved"
    return _cut(_safe(f"{sender.name}: {' '.join(what.split())}"), TITLE_CHARACTERS)


def _headline(sentence: str) -> str:
    return sentence.partition(": ")[0].rstrip(".")


def _part(heading: str, items: list[str]) -> Iterator[str]:
    if items:
        more = [f"- and {len(items) - MAX_NAMED:,} more"] if len(items) > MAX_NAMED else []
        yield "\n".join([f"{heading}:", *items[:MAX_NAMED], *more])


def _item(known: SentAlert, alert: Alert | None, sender: Sender) -> str:
    if alert is None:
        return f"- {_cut(known.sentence, SENTENCE_CHARACTERS)}"
    remedy = f"{alert.remedy[:1].upper()}{alert.remedy[1:]}"
    lines = [f"- {_cut(alert.sentence, SENTENCE_CHARACTERS)}", *(f"  · {one}" for one in alert.details)]
    return "\n".join([*lines, f"  {remedy}", f"  {sender.base_url}{alert.path}"])


def _over(known: SentAlert) -> str:
    until = f" until {_short(known.ended_at)}" if known.ended_at else ""
    return f"- Resolved: {_cut(known.sentence, SENTENCE_CHARACTERS)} (from {_short(known.since)}{until})"


def _short(at: str) -> str:
    return f"{at[:10]} {at[11:16]} UTC"


def _moment(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _safe(text: str) -> str:
    return visible(redact(text), keep="\n")


def load_sender(rt: Runtime) -> Sender:
    return Sender(rt.settings.base_url, appliance_state.restored_from(rt.reader))
