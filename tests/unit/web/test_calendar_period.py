"""Months and weeks of a calendar, over the ends of years and through changes of clocks."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from socialpub.core.clock import stamp
from socialpub.web.dashboard.calendar import CalendarPeriod, hour_instants, midnights

TODAY = date(2026, 11, 18)
BERLIN = ZoneInfo("Europe/Berlin")


def month(name: str) -> CalendarPeriod:
    return CalendarPeriod.read(name, "", TODAY)


def week(name: str) -> CalendarPeriod:
    return CalendarPeriod.read("", name, TODAY)


def test_without_an_address_it_is_the_present_month():
    period = CalendarPeriod.read("", "", TODAY)
    assert (period.name, period.title, period.path) == ("2026-11", "November 2026", "/calendar?month=2026-11")


@pytest.mark.parametrize(
    ("name", "first", "last", "weeks"),
    [
        ("2026-11", "2026-10-26", "2026-12-06", 6),
        ("2027-02", "2027-02-01", "2027-02-28", 4),  # neither begins nor ends within a week
        ("2028-02", "2028-01-31", "2028-03-05", 5),
        ("2026-12", "2026-11-30", "2027-01-03", 5),
        ("2000-01", "1999-12-27", "2000-02-06", 6),
        ("2199-12", "2199-11-25", "2200-01-05", 6),
    ],
)
def test_a_month_is_shown_in_whole_weeks(name, first, last, weeks):
    days = month(name).days
    assert (str(days[0]), str(days[-1]), len(days)) == (first, last, 7 * weeks)
    assert [day for day in days if month(name).holds(day)] == [day for day in days if str(day).startswith(name)]


@pytest.mark.parametrize(
    ("name", "title", "before", "after"),
    [
        ("2026-W48", "Week 48, 23 to 29 November 2026", "2026-W47", "2026-W49"),
        ("2026-W49", "Week 49, 30 November to 6 December 2026", "2026-W48", "2026-W50"),
        ("2026-W53", "Week 53, 28 December 2026 to 3 January 2027", "2026-W52", "2027-W01"),
        ("2025-W01", "Week 1, 30 December 2024 to 5 January 2025", "2024-W52", "2025-W02"),
    ],
)
def test_weeks_are_numbered_over_the_ends_of_years(name, title, before, after):
    period = week(name)
    assert (period.name, period.title, period.previous.name, period.next.name) == (name, title, before, after)
    assert (period.previous.next, period.next.previous) == (period, period)
    assert [day.weekday() for day in period.days] == list(range(7))


def test_one_can_go_on_month_by_month_and_week_by_week_from_end_to_end():
    for period, least in ((month("2000-01"), 200 * 12), (week("2000-W01"), 200 * 52)):
        seen = 0
        while period.is_shown:
            assert CalendarPeriod.read(*((period.name, "") if period.view == "month" else ("", period.name)), TODAY)
            assert period.next.previous == period
            period, seen = period.next, seen + 1
        assert seen >= least


def test_month_and_week_lead_to_each_other():
    assert month("2026-11").as_week(TODAY).name == "2026-W47"  # where today is
    assert month("2026-12").as_week(TODAY).name == "2026-W49"
    assert week("2026-W53").as_month().name == "2026-12"  # most of it
    assert week("2025-W01").as_month().name == "2025-01"


@pytest.mark.parametrize(
    ("asked_month", "asked_week"),
    [
        ("2026-13", ""), ("2026-00", ""), ("2026-1", ""), ("2026-11-01", ""), ("November", ""), ("٢٠٢٦-١١", ""),
        ("1999-12", ""), ("2200-01", ""), ("9999-12", ""), ("0000-01", ""), ("-2026-11", ""), ("2026-11 ", ""),
        ("", "2025-W53"), ("", "2026-W00"), ("", "2026W47"), ("", "2026-W47-1"), ("", "2026-47"), ("", "9999-W53"),
        ("", "1999-W51"), ("", "W47"), ("x" * 5000, ""),
    ],
)  # fmt: skip
def test_invalid_and_absurd_years_are_refused(asked_month, asked_week):
    with pytest.raises(ValueError, match="between 2000 and 2199") as told:
        CalendarPeriod.read(asked_month, asked_week, TODAY)
    assert len(str(told.value)) < 200


def test_a_day_may_have_23_or_25_hours():
    spring, autumn = date(2026, 3, 29), date(2026, 10, 25)
    for day, length in ((spring, 23), (autumn, 25), (date(2026, 11, 18), 24)):
        begin, end = midnights([day], BERLIN)
        assert (end - begin).total_seconds() == length * 3600
        assert hour_instants(day, BERLIN)[0] == begin
        assert hour_instants(day, BERLIN)[-1] == end
    skipped = hour_instants(spring, BERLIN)
    assert skipped[2] == skipped[3] == datetime(2026, 3, 29, 1, tzinfo=UTC)
    twice = hour_instants(autumn, BERLIN)
    assert (twice[3] - twice[2]).total_seconds() == 7200


@pytest.mark.parametrize(
    ("zone", "day", "begin", "end"),
    [
        ("America/New_York", date(2026, 11, 1), "2026-11-01T04:00:00.000Z", "2026-11-02T05:00:00.000Z"),
        ("Asia/Kolkata", date(2026, 11, 1), "2026-10-31T18:30:00.000Z", "2026-11-01T18:30:00.000Z"),
        ("Pacific/Apia", date(2026, 11, 1), "2026-10-31T11:00:00.000Z", "2026-11-01T11:00:00.000Z"),
        ("Pacific/Apia", date(2011, 12, 30), "2011-12-30T10:00:00.000Z", "2011-12-30T10:00:00.000Z"),  # left out
        ("America/Havana", date(2025, 11, 2), "2025-11-02T04:00:00.000Z", "2025-11-03T05:00:00.000Z"),  # at midnight
        ("Asia/Beirut", date(2025, 3, 30), "2025-03-29T22:00:00.000Z", "2025-03-30T21:00:00.000Z"),  # no midnight
    ],
)
def test_a_day_is_that_of_the_zone(zone, day, begin, end):
    assert [stamp(instant) for instant in midnights([day], ZoneInfo(zone))] == [begin, end]
    instants = hour_instants(day, ZoneInfo(zone))
    assert instants == sorted(instants)
