"""Local times: the instants of a time in a zone, and errors for times that do not exist."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from socialpub.web.dashboard.browser import times


def read(text: str, zone: str = "Europe/Berlin") -> times.LocalTime:
    found = times.read_local(text, ZoneInfo(zone))
    assert found is not None
    return found


def test_an_ordinary_time_is_one_instant_for_every_choice():
    found = read("2026-11-25T09:00:30.250")
    assert found.instants == (datetime(2026, 11, 25, 8, 0, 30, 250_000, tzinfo=UTC),)
    assert found.instant("") == found.instant(times.SECOND) == found.instants[0]
    assert found.choices[1:] == []


@pytest.mark.parametrize("text", ["", "9:00", "2026-13-01T09:00", "2026-11-25T09:00+01:00", "0001-01-01T00:00"])
def test_what_is_no_time_of_a_clock_is_none(text):
    assert times.read_local(text, ZoneInfo("Europe/Berlin")) is None


@pytest.mark.parametrize(
    ("zone", "text", "problem"),
    [
        (
            "Europe/Berlin",
            "2027-03-28T02:30",
            "the clocks skip 02:30 on 28 Mar 2027 in Europe/Berlin. The next valid time is 03:00 CEST",
        ),
        (
            "Australia/Lord_Howe",  # by half an hour
            "2026-10-04T02:15",
            "the clocks skip 02:15 on 4 Oct 2026 in Australia/Lord_Howe. The next valid time is 02:30 UTC+11",
        ),
        (
            "Pacific/Apia",  # a whole day, when the island crossed the date line
            "2011-12-30T12:00",
            "the clocks skip 12:00 on 30 Dec 2011 in Pacific/Apia. The next valid time is 31 Dec 2011, 00:00 UTC+14",
        ),
    ],
)
def test_a_skipped_time_is_no_instant_and_the_next_valid_one_is_named(zone, text, problem):
    found = read(text, zone)
    assert (found.is_skipped, found.instant(""), found.instant(times.FIRST)) == (True, None, None)
    assert found.problem == problem


def test_a_repeated_time_is_two_instants_of_which_one_is_chosen():
    found = read("2026-10-25T02:30")
    assert found.is_repeated
    assert found.instant("") is None
    assert found.instant(times.FIRST) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert found.instant(times.SECOND) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert found.choices == [("first", "02:30 CEST (UTC+2)"), ("second", "02:30 CET (UTC+1)")]
    assert found.problem == (
        "the clocks show 02:30 on 25 Oct 2026 in Europe/Berlin twice: at 02:30 CEST (UTC+2) and at 02:30 CET (UTC+1). "
        "Choose one of them"
    )
    assert read("2026-11-01T01:30", "America/St_Johns").choices[0][1] == "01:30 NDT (UTC-2:30)"


def test_a_zone_without_a_name_is_shown_by_its_distance_from_utc():
    lord_howe = read("2027-04-04T01:45", "Australia/Lord_Howe")
    assert lord_howe.choices == [("first", "01:45 UTC+11"), ("second", "01:45 UTC+10:30")]
    instant = lord_howe.instants[1]
    assert times.format_time(instant, lord_howe.zone) == "4 Apr 2027, 01:45 UTC+10:30"
    assert times.format_exactly(instant, lord_howe.zone) == "4 Apr 2027, 01:45 UTC+10:30"
    assert times.format_time(instant, ZoneInfo("Australia/Sydney")) == "4 Apr 2027, 02:15 AEDT"


@pytest.mark.parametrize("instant", [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in range(3)])
def test_what_a_field_shows_of_an_instant_is_read_back_as_that_instant(instant):
    zone = ZoneInfo("Europe/Berlin")
    value, which = times.read_query_time(instant.isoformat(), zone) or ("", "")
    found = times.read_local(value, zone)
    assert found is not None
    assert found.instant(which) == instant
    assert (which == "") == (not found.is_repeated)


def test_an_address_that_names_a_repeated_time_leaves_the_choice_open():
    assert times.read_query_time("2026-10-25T02:30", ZoneInfo("Europe/Berlin")) == ("2026-10-25T02:30", "")
    assert times.read_query_time("tomorrow", ZoneInfo("Europe/Berlin")) is None
