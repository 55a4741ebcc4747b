"""Durations and sizes as texts."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from socialpub.core import units


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("24h", timedelta(hours=24)),
        ("90d", timedelta(days=90)),
        ("0s", timedelta(0)),
        (" 1h ", timedelta(hours=1)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, duration):
    assert units.parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "90", "h", "1.5h", "-1h", "+1h", "1h30m", "1 h", "24H", "1w", "٣h", "9" * 40])
def test_anything_else_is_rejected_with_the_accepted_form(text):
    with pytest.raises(ValueError, match="90s, 15m, 24h or 90d"):
        units.parse_duration(text)


def test_the_longest_duration_still_leads_to_a_date():
    with pytest.raises(ValueError, match="at most 36500d"):
        units.parse_duration("36501d")
    assert datetime(2026, 11, 21, tzinfo=UTC) + units.parse_duration("36500d") > datetime(2126, 1, 1, tzinfo=UTC)


@given(st.integers(0, 36500 * 86400))
def test_a_formatted_duration_can_be_parsed(seconds):
    assert units.parse_duration(units.duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_up_to_two_days_are_written_in_hours():
    written = [units.duration(timedelta(hours=hours)) for hours in (1, 24, 48, 72)]
    assert written == ["1h", "24h", "48h", "3d"]


@pytest.mark.parametrize(
    ("size_bytes", "written"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (16 << 10, "16 KiB (16384 bytes)"),
        (157_286_400, "150 MiB (157286400 bytes)"),
        (1_572_865, "1.5 MiB (1572865 bytes)"),
        (1 << 32, "4 GiB (4294967296 bytes)"),
    ],
)
def test_a_size_has_its_unit_and_its_exact_number(size_bytes, written):
    assert units.size(size_bytes) == written
