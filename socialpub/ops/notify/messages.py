"""The text of a message to the owner.

A message may pass through another company's service. It does not contain secrets, and only the beginning of a post.
"""

from collections.abc import Mapping
from typing import NamedTuple
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


class DueAlerts(NamedTuple):
    """The alerts of the next message."""

    begun: list[SentAlert]
    lasting: list[SentAlert]
    ended: list[SentAlert]


def compose_message(rt: Runtime, due: DueAlerts, alerts: Mapping[str, Alert], *, is_last: bool) -> tuple[str, str]:
    """Return the title and the body. `is_last`: today's limit is reached with this message."""
    needed = [*due.begun, *due.lasting]
    sentences = [alerts[row.key].sentence for row in needed] or [row.sentence for row in due.ended]
    if len(sentences) == 1:
        headline = sentences[0].partition(": ")[0].rstrip(".")
        summary = headline if needed else f"resolved: {headline}"
    else:
        summary = f"{len(sentences):,} problems {'need you' if needed else 'are resolved'}"
    parts = [
        *_part("Needs you", [_describe(rt, alerts[row.key]) for row in due.begun]),
        *_part("Still needs you", [_describe(rt, alerts[row.key]) for row in due.lasting]),
        *_part("Resolved", [_describe_end(row) for row in due.ended]),
    ]
    if is_last:
        parts.append("This is the last message of today. Later alerts are sent tomorrow (UTC).")
    return _sign(rt, summary, "\n\n".join(parts))


def compose_test(rt: Runtime) -> tuple[str, str]:
    return _sign(
        rt,
        "test message",
        "This is a test. You receive messages about problems that need you. Examples are accounts that must be "
        "connected again, failed deliveries, and networks that refuse your app.",
    )


def _sign(rt: Runtime, summary: str, body: str) -> tuple[str, str]:
    """Return the title and the body with the installation that the message comes from."""
    restored = ", restored from a backup" if appliance_state.restored_from(rt.db) else ""
    name = f"socialpub{restored} ({urlsplit(rt.settings.base_url).hostname or ''})"
    title = cut(" ".join(f"{name}: {summary}".split()), TITLE_CHARACTERS)
    body = f"{body}\n\n{name}, {rt.now():%Y-%m-%d %H:%M} UTC: {rt.settings.base_url}/"
    return visible(redact(title), keep="\n"), visible(redact(body), keep="\n")


def _part(heading: str, items: list[str]) -> list[str]:
    more = [f"- and {len(items) - MAX_NAMED:,} more"] if len(items) > MAX_NAMED else []
    return ["\n".join([f"{heading}:", *items[:MAX_NAMED], *more])] if items else []


def _describe(rt: Runtime, alert: Alert) -> str:
    lines = [f"- {cut(alert.sentence, SENTENCE_CHARACTERS)}", *(f"  · {line}" for line in alert.details)]
    return "\n".join([*lines, f"  {alert.remedy}", f"  {rt.settings.base_url}{alert.path}"])


def _describe_end(row: SentAlert) -> str:
    begin, end = (f"{at[:10]} {at[11:16]} UTC" for at in (row.since, row.ended_at or ""))
    return f"- Resolved: {cut(row.sentence, SENTENCE_CHARACTERS)} (from {begin} until {end})"
