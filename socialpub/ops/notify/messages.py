"""The text of a message to the owner.

A message may pass through another company's service. It does not contain secrets, and only the beginning of a post.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from socialpub.core.errors import cut
from socialpub.core.secrets.redaction import redact, visible
from socialpub.db import appliance_state
from socialpub.db.tables.notifications import SentAlert
from socialpub.ops.alerts import Alert
from socialpub.runtime import Runtime

MAX_NAMED = 12
"""The maximum number of alerts in each part: a hundred accounts may expire on one day."""
SENTENCE_CHARACTERS = 500
TITLE_CHARACTERS = 120
BODY_CHARACTERS = 12_000


@dataclass(frozen=True, slots=True)
class DueAlerts:
    """The alerts of the next message."""

    begun: list[SentAlert] = field(default_factory=list)
    lasting: list[SentAlert] = field(default_factory=list)
    ended: list[SentAlert] = field(default_factory=list)


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

    def sign(self, now: datetime) -> str:
        return f"{self.name}, {now:%Y-%m-%d %H:%M} UTC: {self.base_url}/"


def load_sender(rt: Runtime) -> Sender:
    return Sender(rt.settings.base_url, appliance_state.restored_from(rt.reader))


def compose_message(
    due: DueAlerts, alerts: Mapping[str, Alert], sender: Sender, now: datetime, *, is_last: bool = False
) -> tuple[str, str]:
    """Return the title and the body. `is_last`: today's limit is reached with this message."""
    parts = [
        *_part("Needs you", [_describe(row, alerts.get(row.key), sender) for row in due.begun]),
        *_part("Still needs you", [_describe(row, alerts.get(row.key), sender) for row in due.lasting]),
        *_part("Resolved", [_describe_end(row) for row in due.ended]),
    ]
    if is_last:
        parts.append("This is the last message of today. Later alerts are sent tomorrow (UTC).")
    parts.append(sender.sign(now))
    title = f"{sender.name}: {_summarize(due, alerts)}"
    return cut(_safe(" ".join(title.split())), TITLE_CHARACTERS), cut(_safe("\n\n".join(parts)), BODY_CHARACTERS)


def compose_test(sender: Sender, now: datetime) -> tuple[str, str]:
    body = (
        "This is a test. You receive messages about problems that need you. Examples are accounts that must be "
        "connected again, failed deliveries, and networks that refuse your app."
    )
    return f"{sender.name}: test message", f"{body}\n\n{sender.sign(now)}"


def _summarize(due: DueAlerts, alerts: Mapping[str, Alert]) -> str:
    needed = [*due.begun, *due.lasting]
    if len(needed) == 1:
        alert = alerts.get(needed[0].key)
        return _headline(alert.sentence if alert else needed[0].sentence)
    if needed:
        return f"{len(needed):,} problems need you"
    if len(due.ended) == 1:
        return f"resolved: {_headline(due.ended[0].sentence)}"
    return f"{len(due.ended):,} problems are resolved"


def _headline(sentence: str) -> str:
    return sentence.partition(": ")[0].rstrip(".")


def _part(heading: str, items: list[str]) -> Iterator[str]:
    if items:
        more = [f"- and {len(items) - MAX_NAMED:,} more"] if len(items) > MAX_NAMED else []
        yield "\n".join([f"{heading}:", *items[:MAX_NAMED], *more])


def _describe(row: SentAlert, alert: Alert | None, sender: Sender) -> str:
    if alert is None:
        return f"- {cut(row.sentence, SENTENCE_CHARACTERS)}"
    lines = [f"- {cut(alert.sentence, SENTENCE_CHARACTERS)}", *(f"  · {line}" for line in alert.details)]
    return "\n".join([*lines, f"  {alert.remedy}", f"  {sender.base_url}{alert.path}"])


def _describe_end(row: SentAlert) -> str:
    until = f" until {_minute(row.ended_at)}" if row.ended_at else ""
    return f"- Resolved: {cut(row.sentence, SENTENCE_CHARACTERS)} (from {_minute(row.since)}{until})"


def _minute(at: str) -> str:
    return f"{at[:10]} {at[11:16]} UTC"


def _safe(text: str) -> str:
    return visible(redact(text), keep="\n")
