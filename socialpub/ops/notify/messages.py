"""What a message to the owner says: failed deliveries, drafts, the worker's absence and every other alert.

It may pass through another company's service. It contains no secret, and only the beginning of a post.

The position in the log of deliveries records which failures were sent, so no clock changes it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from socialpub.core.clock import parse, stamp
from socialpub.core.secrets.redaction import redact, visible
from socialpub.core.settings.schema import AlertKind
from socialpub.db import appliance_state
from socialpub.db.connection import Row, Tx
from socialpub.db.models import NotificationRow
from socialpub.db.queries import log_list
from socialpub.db.queries.log_list import FailedDeliveries, FailedDelivery
from socialpub.db.tables import delivery_rows, notifications
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
"""TikTok drops a draft that was not finished in about a day (integrators, 2026)."""
DRAFT_REMEDY = (
    "Open the notification in the network's app and finish the post there. The post's page has the caption to copy."
)
LONG_ABSENCE = timedelta(minutes=10)
"""A restart or an upgrade takes less time."""
ABSENCE_SHOWN_FOR = timedelta(days=1)
SILENCE = f"worker:{FindingCode.WORKER_LATE}:"
"""The alert that the web process may have sent. Its end says the same."""

MAX_NAMED = 12
"""In each part: a hundred accounts may lapse on one day."""
TEXT_CHARACTERS = 60
"""Of a post: the message may pass through another company's service."""
ERROR_CHARACTERS = 200
SENTENCE_CHARACTERS = 500
TITLE_CHARACTERS = 120
BODY_CHARACTERS = 12_000


# --- failed deliveries -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failures:
    through: int
    """The log entry up to which all failures are included."""
    alert: Alert | None


def start_reporting_failures(rt: Runtime, tx: Tx) -> None:
    """Report failures from now on, unless they are reported already."""
    newest = log_list.newest_failure(tx)
    appliance_state.put_if_absent(tx, appliance_state.FAILURES_ALERTED, str(newest))


def record_sent_failures(tx: Tx, through: int) -> None:
    appliance_state.put(tx, appliance_state.FAILURES_ALERTED, str(through))


def find_failures(rt: Runtime) -> Failures:
    """Return the failures that were not sent to the owner. What was tried again or stopped is not among them."""
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
    remedy = "Look at each, and post it again where it should go out."
    if found.unknown:
        remedy = "Look at the account first where the outcome is unknown: the post may be out. Then post it again."
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
    """Return the beginning of a post in one line."""
    return _cut(" ".join((text or "").split()), TEXT_CHARACTERS)


def _cut(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else f"{text[: max_characters - 1].rstrip()}…"


# --- drafts ----------------------------------------------------------------------------------------------------------


def find_drafts(rt: Runtime) -> list[Alert]:
    """Return an alert for each draft in an app's inbox, oldest first: until it is posted, or the network drops it."""
    since = stamp(rt.now() - DRAFT_KEPT_BY_NETWORK)
    return [_draft_alert(row) for row in delivery_rows.drafts_in_inbox(rt.reader, since)]


def _draft_alert(row: Row) -> Alert:
    label = LABELS.get(row.provider, row.provider)
    text = _beginning(row.text)
    about = f": “{text}”" if text else ""
    return Alert(
        AlertKind.DRAFT,
        f"draft:{row.id}:inbox",
        f"A draft waits in the {label} inbox of {row.profile_name}{about}.",
        DRAFT_REMEDY,
        f"/posts/{row.post_id}",
        must_be_fixed=False,
        passes=True,
    )


# --- the worker's absence --------------------------------------------------------------------------------------------


def record_start(rt: Runtime, tx: Tx) -> None:
    """Record how long the worker was away, when it starts. Not if it was stopped and missed nothing."""
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


def record_end(rt: Runtime, tx: Tx) -> None:
    """Record that a worker was stopped."""
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
    sentence = f"The worker did not run for {_in_words(span)}, until {away['until'][:16].replace('T', ' ')} UTC"
    if away["late"]:
        were = "1 delivery was" if away["late"] == 1 else f"{away['late']:,} deliveries were"
        sentence += f"; {were} overdue when it came back"
    return Alert(
        AlertKind.WORKER,
        f"worker:away:{away['since']}",
        f"{sentence}.",
        "It works again. Its log, or that of the machine, says what ended it.",
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
    """While the daily limit was reached."""
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
    """Return title and body. `last_of_day` is the daily limit if this is the last message that it allows."""
    parts = [
        *_part("Needs you", [_item(one, found.get(one.key), sender) for one in message.begun]),
        *_part("Still needs you", [_item(one, found.get(one.key), sender) for one in message.lasting]),
        *_part("Came up and went, while the daily limit was reached", [_over(one) for one in message.came_and_went]),
        *_part("Well again", [_over(one) for one in message.ended]),
    ]
    held = sum(one.held_back for one in (*message.begun, *message.came_and_went, *message.lasting, *message.ended))
    if held:
        parts.append(f"{'1 of this was' if held == 1 else f'{held:,} of these were'} kept back by yesterday's limit.")
    if last_of_day is not None:
        parts.append(
            f"This is the last message of today (notify.daily_limit is {last_of_day}). "
            "What comes up from now on is told tomorrow (UTC)."
        )
    parts.append(f"{sender.name}, {_moment(now)}: {sender.base_url}/")
    return _title(message, found, sender), _cut(_safe("\n\n".join(parts)), BODY_CHARACTERS)


def join_waiting(waiting: list[NotificationRow]) -> tuple[str, str]:
    """Return everything that a service was not sent in time as one message."""
    if len(waiting) == 1:
        return waiting[0].title, waiting[0].body
    bodies = "\n\n– – –\n\n".join(f"{one.title}\n\n{one.body}" for one in reversed(waiting))
    title = f"{waiting[-1].title.partition(': ')[0]}: {len(waiting)} messages that could not be sent before"
    return title, _cut(bodies, BODY_CHARACTERS)


def test_message(sender: Sender, now: datetime) -> tuple[str, str]:
    body = (
        "This is a test. Messages like this one tell you when an account must be connected again, a delivery failed, a "
        f"network refuses your app, or something else needs you.\n\n{sender.name}, {_moment(now)}: {sender.base_url}/"
    )
    return f"{sender.name}: a test message", body


def _title(message: DueAlerts, found: Mapping[str, Alert], sender: Sender) -> str:
    needs, over = [*message.begun, *message.lasting], [*message.ended, *message.came_and_went]
    if len(needs) == 1:
        # As it is now, like the text below it.
        now = found.get(needs[0].key)
        what = _headline(now.sentence if now else needs[0].sentence)
    elif needs:
        what = f"{len(needs):,} things need you"
    elif len(over) == 1:
        what = f"well again, no longer: {_headline(over[0].sentence)}"
    else:
        what = f"{len(over):,} things are well again"
    return _cut(_safe(f"{sender.name}: {' '.join(what.split())}"), TITLE_CHARACTERS)


def _headline(sentence: str) -> str:
    """Return a sentence without its details."""
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
    return f"- No longer: {_cut(known.sentence, SENTENCE_CHARACTERS)} (from {_short(known.since)}{until})"


def _short(at: str) -> str:
    return f"{at[:10]} {at[11:16]} UTC"


def _moment(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _safe(text: str) -> str:
    return visible(redact(text), keep="\n")


def load_sender(rt: Runtime) -> Sender:
    return Sender(rt.settings.base_url, appliance_state.restored_from(rt.reader))
