"""The words of a message to the owner: short plain text with a title, of what is due to be told.

It may pass through somebody else's service: no secret stands in it, and of a post no more than its beginning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from socialpub.core.redaction import redact
from socialpub.core.visible_text import visible
from socialpub.db.notifications import Notification
from socialpub.db.told_causes import ToldCause
from socialpub.ops.causes import Cause
from socialpub.ops.notify.failures import cut
from socialpub.ops.notify.telling import Due

TITLE_CHARACTERS = 120
SENTENCE_CHARACTERS = 500
MOST_NAMED = 12
"""Of each part. A hundred accounts that lapse on one day are still one message."""
BODY_CHARACTERS = 12_000


@dataclass(frozen=True, slots=True)
class Sender:
    """The installation that a message comes from."""

    base_url: str
    restored_from: str | None = None
    """The instant of the copy that it is, until it is resumed: it never speaks as its original would."""

    @property
    def name(self) -> str:
        host = urlsplit(self.base_url).hostname or ""
        return f"socialpub, restored from a backup ({host})" if self.restored_from else f"socialpub ({host})"


def compose(
    message: Due, found: Mapping[str, Cause], sender: Sender, now: datetime, *, last_of_day: int | None = None
) -> tuple[str, str]:
    """Title and body. `last_of_day` is the daily limit when this is the last message that it allows."""
    parts = [
        *_part("Needs you", [_told(one, found.get(one.key), sender) for one in message.begun]),
        *_part("Still needs you", [_told(one, found.get(one.key), sender) for one in message.lasting]),
        *_part("Came up and went, while the daily limit was reached", [_over(one) for one in message.came_and_went]),
        *_part("Well again", [_over(one) for one in message.ended]),
    ]
    held = sum(one.held_back for one in message.causes)
    if held:
        parts.append(f"{'1 of this was' if held == 1 else f'{held:,} of these were'} kept back by yesterday's limit.")
    if last_of_day is not None:
        parts.append(
            f"This is the last message of today (notify.daily_limit is {last_of_day}). "
            "What comes up from now on is told tomorrow (UTC)."
        )
    parts.append(f"{sender.name}, {_moment(now)}: {sender.base_url}/")
    return _title(message, found, sender), cut(_safe("\n\n".join(parts)), BODY_CHARACTERS)


def together(waiting: list[Notification]) -> tuple[str, str]:
    """What a service was not sent in time, as one message."""
    if len(waiting) == 1:
        return waiting[0].title, waiting[0].body
    bodies = "\n\n– – –\n\n".join(f"{one.title}\n\n{one.body}" for one in reversed(waiting))
    title = f"{waiting[-1].title.partition(': ')[0]}: {len(waiting)} messages that could not be sent before"
    return title, cut(bodies, BODY_CHARACTERS)


def test_message(sender: Sender, now: datetime) -> tuple[str, str]:
    """What shows that messages arrive."""
    body = (
        "This is a test. Messages like this one tell you when an account must be connected again, a delivery failed, a "
        f"network refuses your app, or something else needs you.\n\n{sender.name}, {_moment(now)}: {sender.base_url}/"
    )
    return f"{sender.name}: a test message", body


def _title(message: Due, found: Mapping[str, Cause], sender: Sender) -> str:
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
    return cut(_safe(f"{sender.name}: {' '.join(what.split())}"), TITLE_CHARACTERS)


def _headline(sentence: str) -> str:
    """A sentence without its details."""
    return sentence.partition(": ")[0].rstrip(".")


def _part(heading: str, items: list[str]) -> Iterator[str]:
    if items:
        more = [f"- and {len(items) - MOST_NAMED:,} more"] if len(items) > MOST_NAMED else []
        yield "\n".join([f"{heading}:", *items[:MOST_NAMED], *more])


def _told(known: ToldCause, cause: Cause | None, sender: Sender) -> str:
    if cause is None:
        return f"- {cut(known.sentence, SENTENCE_CHARACTERS)}"
    remedy = f"{cause.remedy[:1].upper()}{cause.remedy[1:]}"
    lines = [f"- {cut(cause.sentence, SENTENCE_CHARACTERS)}", *(f"  · {one}" for one in cause.details)]
    return "\n".join([*lines, f"  {remedy}", f"  {sender.base_url}{cause.path}"])


def _over(known: ToldCause) -> str:
    until = f" until {_short(known.ended_at)}" if known.ended_at else ""
    return f"- No longer: {cut(known.sentence, SENTENCE_CHARACTERS)} (from {_short(known.since)}{until})"


def _short(at: str) -> str:
    return f"{at[:10]} {at[11:16]} UTC"


def _moment(now: datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _safe(text: str) -> str:
    return visible(redact(text), keep="\n")
