"""A post as a calendar shows it: its time by the reader's clock, and how it stands in a word with a sign."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from socialpub.core.clock import parse
from socialpub.db.models import PostStatus
from socialpub.db.post_calendar import CalendarPost
from socialpub.providers.registry import LABELS
from socialpub.publishing import post_details
from socialpub.web.dashboard import post_words, times
from socialpub.web.dashboard.post_words import StateWord

DUE = StateWord("Due", "warn")
"""Scheduled, and its time has come: it starts at any moment, or waits for something that the post's page tells."""

_SIGNS = {PostStatus.SCHEDULED: "◷", PostStatus.PENDING: "↑", PostStatus.CANCELED: "–"}
_SIGNS_OF_SETTLED = {"good": "✓", "bad": "✕", "warn": "?", "": "→"}


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """`local` is its time in the reader's zone, `sign` its state at a glance: never without the word for those who do
    not see it."""

    post: CalendarPost
    local: datetime
    state: StateWord
    sign: str

    @classmethod
    def of(cls, post: CalendarPost, zone: tzinfo, now: datetime) -> "CalendarEntry":
        at = parse(post.at)
        status = PostStatus(post.status)
        outcomes = (
            post_details.owner_outcome(one.provider, one.outcome, one.mode, one.provider_post_id)
            for one in post.deliveries
        )
        state = post_words.of_outcomes(status, outcomes)
        if status is PostStatus.SCHEDULED and at <= now:
            state = DUE
        return cls(post, times.localized(at, zone), state, _SIGNS.get(status) or _SIGNS_OF_SETTLED[state.kind])

    @property
    def time(self) -> str:
        """`09:30`, with the zone in an hour that comes twice on that day."""
        other = self.local.replace(fold=1 - self.local.fold)
        twice = other.utcoffset() != self.local.utcoffset()
        return f"{self.local:%H:%M} {times.abbreviation(self.local)}" if twice else f"{self.local:%H:%M}"

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
    def networks(self) -> str:
        """Their names, each once."""
        return ", ".join(dict.fromkeys(LABELS[delivery.provider] for delivery in self.post.deliveries))

    @property
    def is_movable(self) -> bool:
        """Whether its time can still be changed."""
        return self.post.status == PostStatus.SCHEDULED and self.state is not DUE

    @property
    def is_under_way(self) -> bool:
        return self.post.status == PostStatus.PENDING or self.state is DUE
