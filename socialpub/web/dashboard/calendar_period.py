"""The month or week that a calendar shows: its days, its neighbours, and the instants that its days begin at.

Weeks begin on Monday and are numbered as ISO 8601 does it: the last days of a year may lie in week 1 of the next.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

FIRST_YEAR, LAST_YEAR = 2000, 2199
LONGEST_NAME = 20
"""Of what was asked for instead only the beginning is quoted."""
HOURS = range(24)

_DAY, _WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True, slots=True)
class CalendarPeriod:
    """`first` is the first day of the month, or the Monday of the week."""

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
        """Of an address (`2026-11` or `2026-W47`); without either the month of today. Raises ValueError with what is
        wrong in a sentence."""
        if not month and not week:
            return cls.month_of(today)
        given, view, example = (week, "week", "2026-W47") if week else (month, "month", "2026-11")
        try:
            period = cls("week" if week else "month", date.fromisoformat(week or f"{month}-01"))
        except ValueError:
            period = None
        if period is None or period.name != given or not period.is_shown:
            raise ValueError(
                f"The calendar has no {view} {given[:LONGEST_NAME]!r}: it goes from {FIRST_YEAR} to {LAST_YEAR}, and a "
                f"{view} is written like {example}."
            )
        return period

    @property
    def is_shown(self) -> bool:
        """Whether the calendar goes so far."""
        return (self.first + 6 * _DAY).year >= FIRST_YEAR and self.first.year <= LAST_YEAR

    @property
    def name(self) -> str:
        """As an address has it."""
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
        """Whole weeks: those of neighbouring months that share a week with this one, too."""
        begin = self.first - timedelta(days=self.first.weekday())
        end = self.first + _WEEK if self.view == "week" else self._next_first()
        end += timedelta(days=-end.weekday() % 7)
        return [begin + day * _DAY for day in range((end - begin).days)]

    def holds(self, day: date) -> bool:
        """Whether it is one of the period's own days."""
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
        """The month that most of the week lies in."""
        return CalendarPeriod.month_of(self.first + 3 * _DAY)

    def as_week(self, today: date) -> "CalendarPeriod":
        """A week of the month: the present one where it lies there, else the first."""
        return CalendarPeriod.week_of(today if self.view == "month" and self.holds(today) else self.first)


def midnights(days: list[date], zone: tzinfo) -> list[datetime]:
    """The instants that these days begin at, and the one that the last of them ends at."""
    return [begin_of(day, 0, zone) for day in [*days, days[-1] + _DAY]]


def hours(day: date, zone: tzinfo) -> list[datetime]:
    """The instants that the hours of a day begin at by its clock, and the one that the day ends at.

    An hour that a change of clocks skips ends as it begins; one that comes twice lasts two hours.
    """
    end = begin_of(day + _DAY, 0, zone)
    # In a day that a zone left out, as Samoa did with one, every hour ends before it begins.
    return [min(begin_of(day, hour, zone), end) for hour in HOURS] + [end]


def begin_of(day: date, hour: int, zone: tzinfo) -> datetime:
    """The first instant at which clocks show this hour of the day; one that is skipped begins where the gap does."""
    return datetime.combine(day, time(hour), zone).astimezone(UTC)
