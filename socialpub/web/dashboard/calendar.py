"""`/calendar`: posts by day and hour in the browser's time zone: a month (`?month=2026-11`) or week (`?week=2026-W47`).

Weeks start on Monday and have ISO 8601 numbers. The last days of a year can belong to week 1 of the next year.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal
from urllib.parse import urlencode

from starlette.responses import Response

from socialpub.core.clock import parse, stamp
from socialpub.db.queries import calendar
from socialpub.db.queries.calendar import CalendarDay, CalendarPost
from socialpub.db.states import PostStatus
from socialpub.providers.registry import LABELS
from socialpub.publishing.posts import details
from socialpub.runtime import Runtime
from socialpub.web.dashboard import labels
from socialpub.web.dashboard.browser import times
from socialpub.web.dashboard.browser.visit import Visit, page
from socialpub.web.dashboard.labels import Badge

FIRST_YEAR, LAST_YEAR = 2000, 2199
MAX_QUOTED = 20
HOURS = range(24)

MAX_PER_DAY, MAX_PER_HOUR = 3, 4
"""The posts that a day or an hour shows. A link shows the number of other posts."""
MAX_COUNTED_PER_DAY, MAX_COUNTED_PER_HOUR = 1000, 100
MAX_SHOWN = 150
"""The maximum number of posts of a full page. With more posts, each day or hour shows only its first post."""
USUAL_HOUR = 9
"""The suggested hour of a new post, if that hour is in the future."""

DUE = Badge("Due", "warn")
"""A scheduled post whose time has come."""
_SIGNS = {PostStatus.SCHEDULED: "◷", PostStatus.PENDING: "↑", PostStatus.CANCELED: "–"}
_SIGNS_OF_SETTLED = {"good": "✓", "bad": "✕", "warn": "?", "": "→"}

_DAY, _WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """A month or a week. `first` is its first day or its Monday."""

    view: Literal["month", "week"]
    first: date

    @classmethod
    def month_of(cls, day: date) -> "CalendarPeriod":
        return cls("month", day.replace(day=1))

    @classmethod
    def week_of(cls, day: date) -> "CalendarPeriod":
        return cls("week", day - timedelta(days=day.weekday()))

    @classmethod
    def read(cls, month: str, week: str, today: date) -> "CalendarPeriod":
        """Read `2026-11` or `2026-W47`, by default the current month. Raises ValueError."""
        if not month and not week:
            return cls.month_of(today)
        text, view, example = (week, "week", "2026-W47") if week else (month, "month", "2026-11")
        try:
            period = cls("week" if week else "month", date.fromisoformat(week or f"{month}-01"))
        except ValueError:
            period = None
        if period is None or period.name != text or not period.is_shown:
            raise ValueError(
                f"The calendar does not contain the {view} {text[:MAX_QUOTED]!r}. Write a {view} like {example}, "
                "between "
                f"{FIRST_YEAR} and {LAST_YEAR}."
            )
        return period

    @property
    def is_shown(self) -> bool:
        return (self.first + 6 * _DAY).year >= FIRST_YEAR and self.first.year <= LAST_YEAR

    @property
    def name(self) -> str:
        if self.view == "month":
            return f"{self.first:%Y-%m}"
        year, week, _ = self.first.isocalendar()
        return f"{year}-W{week:02}"

    @property
    def path(self) -> str:
        return f"/calendar?{self.view}={self.name}"

    @property
    def title(self) -> str:
        """`November 2026`, or `Week 48, 23 to 29 November 2026`."""
        if self.view == "month":
            return f"{self.first:%B %Y}"
        last = self.first + 6 * _DAY
        begin = f"{self.first.day}"
        if self.first.month != last.month:
            begin += f"{self.first: %B}" if self.first.year == last.year else f"{self.first: %B %Y}"
        return f"Week {self.first.isocalendar().week}, {begin} to {last.day} {last:%B %Y}"

    @property
    def days(self) -> list[date]:
        """Whole weeks, including days of neighboring months."""
        begin = self.first - timedelta(days=self.first.weekday())
        end = self.first + _WEEK if self.view == "week" else self._next_first()
        end += timedelta(days=-end.weekday() % 7)
        return [begin + day * _DAY for day in range((end - begin).days)]

    def holds(self, day: date) -> bool:
        return self.view == "week" or (day.year, day.month) == (self.first.year, self.first.month)

    @property
    def previous(self) -> "CalendarPeriod":
        if self.view == "week":
            return CalendarPeriod("week", self.first - _WEEK)
        return CalendarPeriod.month_of(self.first - _DAY)

    @property
    def next(self) -> "CalendarPeriod":
        return CalendarPeriod(self.view, self._next_first())

    def _next_first(self) -> date:
        return self.first + _WEEK if self.view == "week" else (self.first + timedelta(days=31)).replace(day=1)

    def as_month(self) -> "CalendarPeriod":
        """Return the month that contains most of the week's days."""
        return CalendarPeriod.month_of(self.first + 3 * _DAY)

    def as_week(self, today: date) -> "CalendarPeriod":
        """Return the current week if the month contains it, otherwise the first week of the month."""
        return CalendarPeriod.week_of(today if self.view == "month" and self.holds(today) else self.first)


def midnights(days: list[date], zone: tzinfo) -> list[datetime]:
    """Return the start of each day and the end of the last day."""
    return [hour_begin(day, 0, zone) for day in [*days, days[-1] + _DAY]]


def hour_instants(day: date, zone: tzinfo) -> list[datetime]:
    """Return the start of each hour of a day, and the end of the day.

    An hour that a clock change skips has no length. A repeated hour has two hours.
    """
    end = hour_begin(day + _DAY, 0, zone)
    # Samoa once skipped a whole day, in which every hour would end before it starts.
    return [min(hour_begin(day, hour, zone), end) for hour in HOURS] + [end]


def hour_begin(day: date, hour: int, zone: tzinfo) -> datetime:
    """Return the first instant at which the clock shows this hour or a later one."""
    return datetime.combine(day, time(hour), zone).astimezone(UTC)


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """A post with its local time. `sign` is a symbol for its state."""

    post: CalendarPost
    local: datetime
    state: Badge
    sign: str
    is_due: bool
    """The post is scheduled, and its time has come."""

    @classmethod
    def from_post(cls, post: CalendarPost, zone: tzinfo, now: datetime) -> "CalendarEntry":
        at = parse(post.at)
        status = PostStatus(post.status)
        outcomes = (
            details.owner_outcome(delivery.provider, delivery.outcome, delivery.mode, delivery.provider_post_id)
            for delivery in post.deliveries
        )
        state = labels.outcomes_badge(status, outcomes)
        is_due = status is PostStatus.SCHEDULED and at <= now
        if is_due and state == labels.POST_STATES[status]:
            state = DUE
        return cls(post, times.to_local(at, zone), state, _SIGNS.get(status) or _SIGNS_OF_SETTLED[state.kind], is_due)

    @property
    def time(self) -> str:
        """`09:30`, with the zone if the clock repeats this hour."""
        other = self.local.replace(fold=1 - self.local.fold)
        twice = other.utcoffset() != self.local.utcoffset()
        return f"{self.local:%H:%M} {times.zone_abbreviation(self.local)}" if twice else f"{self.local:%H:%M}"

    @property
    def exact_time(self) -> str:
        """`09:30:00.000`: a move to another day or hour keeps the rest of the time."""
        return self.local.time().isoformat("milliseconds")

    @property
    def text(self) -> str:
        """The text on one line, or the kind of a post without text."""
        if self.post.text and self.post.text.strip():
            return " ".join(self.post.text.split())
        return {"video": "Video", "image": "Image"}.get(self.post.kind or "", "Post") + " without text"

    @property
    def networks(self) -> str:
        return ", ".join(dict.fromkeys(LABELS[delivery.provider] for delivery in self.post.deliveries))

    @property
    def is_movable(self) -> bool:
        return self.post.status == PostStatus.SCHEDULED and not self.is_due

    @property
    def is_under_way(self) -> bool:
        return not self.is_unapproved and (self.post.status == PostStatus.PENDING or self.is_due)

    @property
    def is_unapproved(self) -> bool:
        return self.state == labels.WAITS_FOR_APPROVAL


@dataclass(frozen=True, slots=True)
class CalendarDate:
    """The heading of a day. `compose_at` is the suggested time of a new post; None on past days."""

    day: date
    is_own: bool
    is_today: bool
    is_past: bool
    compose_at: str | None
    week: CalendarPeriod


@dataclass(frozen=True, slots=True)
class CalendarCell:
    """The posts of a day or hour. `at` is its value in the form: `2026-11-25` or `2026-11-25T14:00`."""

    date: CalendarDate
    at: str
    is_past: bool
    is_skipped: bool
    entries: Sequence[CalendarEntry]
    more: int
    more_path: str

    @property
    def classes(self) -> str:
        """The CSS classes. `open` is an hour for a new post."""
        is_free = not self.entries
        words = {
            "other": not self.date.is_own,
            "today": self.date.is_today,
            "past": self.is_past,
            "skipped": self.is_skipped,
            "free": is_free,
            "open": is_free and "T" in self.at and not self.is_past and not self.is_skipped,
        }
        return "".join(f" {word}" for word, holds in words.items() if holds)


@page()
async def show(rt: Runtime, visit: Visit) -> Response:
    today, problem = visit.now.astimezone(visit.zone).date(), None
    try:
        period = CalendarPeriod.read(visit.query.text("month"), visit.query.text("week"), today)
    except ValueError as error:
        period, problem = CalendarPeriod.month_of(today), f"{error} This is the current month."
    dates = [_calendar_date(visit, period, day, today) for day in period.days]
    if period.view == "month":
        instants, most, counted = midnights(period.days, visit.zone), MAX_PER_DAY, MAX_COUNTED_PER_DAY
    else:
        of_days = [hour_instants(day, visit.zone) for day in period.days]
        instants = [instant for day in of_days for instant in day[:-1]] + of_days[-1][-1:]
        most, counted = MAX_PER_HOUR, MAX_COUNTED_PER_HOUR
    stamps = [stamp(instant) for instant in instants]
    # In a thread, because thousands of posts take time to count.
    days = await rt.read_in_thread(lambda db: calendar.load_days(db, stamps, most, counted))
    if sum(len(spot.posts) for spot in days) > MAX_SHOWN:
        days = [spot._replace(posts=spot.posts[:1], more=spot.more + len(spot.posts[1:])) for spot in days]
    cells = [_cell(visit, period, dates, at, spot, instants[at + 1]) for at, spot in enumerate(days)]
    entries = [entry for cell in cells for entry in cell.entries]
    return visit.show(
        "calendar.html",
        http_status=400 if problem else 200,
        problem=problem,
        period=period,
        present=CalendarPeriod.week_of(today) if period.view == "week" else CalendarPeriod.month_of(today),
        month=period.as_month(),
        week=period.as_week(today),
        dates=dates,
        rows=_rows(period, cells),
        is_empty=not entries,
        max_counted=counted,
        is_under_way=any(entry.is_under_way for entry in entries),
    )


def _calendar_date(visit: Visit, period: CalendarPeriod, day: date, today: date) -> CalendarDate:
    open_hours = (hour for hour in HOURS[USUAL_HOUR:] if hour_begin(day, hour, visit.zone) > visit.now)
    hour = next(open_hours, None)
    compose_at = None if hour is None or day < today else f"{day}T{hour:02}:00"
    return CalendarDate(day, period.holds(day), day == today, day < today, compose_at, CalendarPeriod.week_of(day))


def _cell(
    visit: Visit, period: CalendarPeriod, dates: Sequence[CalendarDate], place: int, found: CalendarDay, end: datetime
) -> CalendarCell:
    begin = parse(found.begins_at)
    of_day, hour = (place, None) if period.view == "month" else divmod(place, len(HOURS))
    date = dates[of_day]
    last = stamp(end - timedelta(milliseconds=1))
    return CalendarCell(
        date=date,
        at=str(date.day) if hour is None else f"{date.day}T{hour:02}:00",
        is_past=end <= visit.now,
        is_skipped=begin >= end,
        entries=[CalendarEntry.from_post(post, visit.zone, visit.now) for post in found.posts],
        more=found.more,
        more_path="/posts?"
        + urlencode({"scheduledAfter": found.begins_at, "scheduledBefore": last, "orAccepted": "on"}),
    )


def _rows(period: CalendarPeriod, cells: Sequence[CalendarCell]) -> list[Sequence[CalendarCell]]:
    if period.view == "month":
        return [cells[start : start + 7] for start in range(0, len(cells), 7)]
    return [cells[hour :: len(HOURS)] for hour in HOURS]
