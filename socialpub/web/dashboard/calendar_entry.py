"""A post as a calendar shows it: its time by the reader's clock, and how it stands in a word with a sign."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from socialpub.core.clock import parse
from socialpub.db.models import PostStatus
from socialpub.db.post_calendar import CalendarPost
from socialpub.providers.registry import LABELS


@dataclass(frozen=True, slots=True)
class EntryState:
    word: str
    sign: str
    """The same at a glance; never without the word for those who do not see it."""
    kind: str
    """`good`, `bad`, `warn` or nothing: its colour."""


SCHEDULED = EntryState("Scheduled", "◷", "")
DUE = EntryState("Due", "◷", "warn")
PUBLISHING = EntryState("Publishing", "↑", "")
PUBLISHED = EntryState("Published", "✓", "good")
FAILED = EntryState("Failed", "✕", "bad")
PARTLY_FAILED = EntryState("Failed in part", "✕", "bad")
UNKNOWN = EntryState("Outcome unknown", "?", "warn")
CANCELED = EntryState("Canceled", "–", "")


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """`local` is its time in the reader's zone."""

    post: CalendarPost
    local: datetime
    state: EntryState

    @classmethod
    def of(cls, post: CalendarPost, zone: tzinfo, now: datetime) -> "CalendarEntry":
        at = parse(post.at)
        return cls(post, at.astimezone(zone), _state(post, is_due=at <= now))

    @property
    def time(self) -> str:
        """`09:30`, with the zone in an hour that comes twice on that day."""
        other = self.local.replace(fold=1 - self.local.fold)
        twice = other.utcoffset() != self.local.utcoffset()
        return f"{self.local:%H:%M} {self.local.tzname()}" if twice else f"{self.local:%H:%M}"

    @property
    def exact_time(self) -> str:
        """What stays when it is moved to another day or hour: `09:30:00.000`."""
        return self.local.time().isoformat("milliseconds")

    @property
    def text(self) -> str:
        """The beginning of its text on one line; of a post without text what it shows."""
        if self.post.text and self.post.text.strip():
            return " ".join(self.post.text.split())
        return {"video": "A video", "image": "A picture"}.get(self.post.kind or "", "A post") + " without text"

    @property
    def networks(self) -> list[str]:
        """Their names, each once."""
        return list(dict.fromkeys(LABELS[delivery.provider] for delivery in self.post.deliveries))

    @property
    def is_movable(self) -> bool:
        """Whether its time can still be changed."""
        return self.state is SCHEDULED

    @property
    def is_under_way(self) -> bool:
        return self.state in (DUE, PUBLISHING)


def _state(post: CalendarPost, *, is_due: bool) -> EntryState:
    match PostStatus(post.status):
        case PostStatus.SCHEDULED:
            return DUE if is_due else SCHEDULED
        case PostStatus.PENDING:
            return PUBLISHING
        case PostStatus.CANCELED:
            return CANCELED
        case PostStatus.SETTLED:
            outcomes = {delivery.outcome for delivery in post.deliveries}
            if "unknown" in outcomes:
                return UNKNOWN
            if "failed" in outcomes:
                return FAILED if len(outcomes) == 1 else PARTLY_FAILED
            return PUBLISHED
