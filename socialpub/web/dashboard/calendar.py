"""`/calendar`: posts by day and hour in the reader's time zone, as a month (`?month=2026-11`) or a week
(`?week=2026-W47`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from urllib.parse import quote, urlencode

from socialpub.core.clock import parse, stamp
from socialpub.db import post_calendar
from socialpub.db.post_calendar import CalendarDay
from socialpub.runtime import Runtime
from socialpub.web.answer import Answer
from socialpub.web.dashboard.calendar_entry import CalendarEntry
from socialpub.web.dashboard.calendar_period import HOURS, CalendarPeriod, begin_of, hours, midnights
from socialpub.web.dashboard.page import page
from socialpub.web.dashboard.visit import Visit

MOST_OF_A_DAY, MOST_OF_AN_HOUR = 3, 4
"""So many posts are shown; of the others it is said how many there are."""
MOST_COUNTED_OF_A_DAY, MOST_COUNTED_OF_AN_HOUR = 1000, 100
MOST_IN_ALL = 150
"""Where more would be shown, each hour shows only its first: the page stays quick and can be looked through."""
USUAL_HOUR = 9
"""A new post for a day is suggested for this hour, or for the next one that is still to come."""


@dataclass(frozen=True, slots=True)
class CalendarDate:
    """A day as a heading; `compose_at` is when a new post on it would go out, None when the day is over."""

    day: date
    is_own: bool
    is_today: bool
    is_past: bool
    compose_at: str | None
    week: CalendarPeriod


@dataclass(frozen=True, slots=True)
class CalendarCell:
    """The posts of a day or of an hour. `at` is what a form for another time calls it: `2026-11-25`, with the hour
    behind it in a week. `more_path` leads to a list of all its posts."""

    date: CalendarDate
    at: str
    is_past: bool
    is_skipped: bool
    entries: Sequence[CalendarEntry]
    more: int
    more_path: str

    @property
    def classes(self) -> str:
        """How its looks differ from those of others, each word behind a blank. `open`: an hour for a new post."""
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
async def show(rt: Runtime, visit: Visit) -> Answer:
    """The month or the week."""
    today, problem = visit.now.astimezone(visit.zone).date(), None
    try:
        period = CalendarPeriod.read(visit.query.text("month"), visit.query.text("week"), today)
    except ValueError as error:
        period, problem = CalendarPeriod.month_of(today), f"{error} This is the present month."
    dates = [_date(visit, period, day, today) for day in period.days]
    if period.view == "month":
        instants, most, counted = midnights(period.days, visit.zone), MOST_OF_A_DAY, MOST_COUNTED_OF_A_DAY
    else:
        of_days = [hours(day, visit.zone) for day in period.days]
        instants = [instant for day in of_days for instant in day[:-1]] + of_days[-1][-1:]
        most, counted = MOST_OF_AN_HOUR, MOST_COUNTED_OF_AN_HOUR
    stamps = [stamp(instant) for instant in instants]
    # A day with thousands of posts takes a while to count.
    found = await rt.read_aside(lambda reader: post_calendar.read(reader, stamps, most, counted))
    if sum(len(spot.posts) for spot in found) > MOST_IN_ALL:
        found = [_thinned(spot) for spot in found]
    cells = [_cell(visit, period, dates, at, spot, instants[at + 1]) for at, spot in enumerate(found)]
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
        most_counted=counted,
        is_under_way=any(entry.is_under_way for entry in entries),
        quoted=lambda path: quote(path, safe="/"),
    )


def _date(visit: Visit, period: CalendarPeriod, day: date, today: date) -> CalendarDate:
    open_hours = (hour for hour in HOURS[USUAL_HOUR:] if begin_of(day, hour, visit.zone) > visit.now)
    hour = next(open_hours, None)
    compose_at = None if hour is None or day < today else f"{day}T{hour:02}:00"
    return CalendarDate(day, period.holds(day), day == today, day < today, compose_at, CalendarPeriod.week_of(day))


def _cell(
    visit: Visit, period: CalendarPeriod, dates: Sequence[CalendarDate], place: int, found: CalendarDay, end: datetime
) -> CalendarCell:
    begin = parse(found.begins_at)
    of_day, hour = (place, None) if period.view == "month" else divmod(place, len(HOURS))
    shown = dates[of_day]
    last = stamp(end - timedelta(milliseconds=1))
    return CalendarCell(
        date=shown,
        at=str(shown.day) if hour is None else f"{shown.day}T{hour:02}:00",
        is_past=end <= visit.now,
        is_skipped=begin >= end,
        entries=[CalendarEntry.of(post, visit.zone, visit.now) for post in found.posts],
        more=found.more,
        more_path="/posts?"
        + urlencode({"scheduledAfter": found.begins_at, "scheduledBefore": last, "orAccepted": "on"}),
    )


def _thinned(spot: CalendarDay) -> CalendarDay:
    return replace(spot, posts=spot.posts[:1], more=spot.more + len(spot.posts[1:]))


def _rows(period: CalendarPeriod, cells: Sequence[CalendarCell]) -> list[Sequence[CalendarCell]]:
    """Of a month a row per week, of a week a row per hour."""
    if period.view == "month":
        return [cells[start : start + 7] for start in range(0, len(cells), 7)]
    return [cells[hour :: len(HOURS)] for hour in HOURS]
