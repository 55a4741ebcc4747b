"""Ids ascend, but the next id cannot be guessed."""

from datetime import UTC, datetime, timedelta

from socialpub.core.clock import new_id, parse_id

NOW = datetime(2026, 9, 21, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_the_next_id_cannot_be_guessed_from_the_last_id():
    made = [new_id(NOW) for _ in range(2000)]
    drawn = {int(one.replace("-", "")[16:], 16) & (1 << 62) - 1 for one in made}
    assert len(drawn) == len(made)
    # Each of the 62 bits is as often 0 as 1.
    for bit in range(62):
        ones = sum(number >> bit & 1 for number in drawn)
        assert 800 < ones < 1200, bit


def test_ids_ascend_when_the_clock_stops_or_goes_back():
    made = [new_id(at) for at in (NOW, NOW, NOW - 5 * SECOND, NOW + SECOND / 1000, datetime.fromtimestamp(0, UTC))]
    assert made == sorted(made)
    assert all(parse_id(one.upper()) == one for one in made)
