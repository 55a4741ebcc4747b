"""The age of a row is correct, even if the clock was set since."""

import itertools
from datetime import timedelta

import pytest

from socialpub.core.clock import stamp
from socialpub.db import clock_jumps
from socialpub.runtime import Runtime
from tests.support.hand_clock import HandClock

DAY = 86_400.0
KEPT = timedelta(days=30)


def before(rt: Runtime) -> str:
    return clock_jumps.written_before(rt.db, rt.now(), KEPT)


def jump(rt: Runtime, clock: HandClock, days: float) -> None:
    clock.jump(days * DAY)
    rt.db.follow_clock()


def test_without_jumps_the_result_is_a_subtraction(rt: Runtime) -> None:
    assert before(rt) == stamp(rt.now() - KEPT)


@pytest.mark.parametrize("jumps", [*itertools.product((-900.0, -20.0, 20.0, 900.0), repeat=2), (20.0, 20.0, -10.0)])
def test_no_row_becomes_old_too_early(rt: Runtime, clock: HandClock, jumps: tuple[float, ...]) -> None:
    written = [rt.stamp()]
    for days in jumps:
        clock.forward(DAY)
        jump(rt, clock, days)
        written.append(rt.stamp())
    clock.forward((30 - len(jumps)) * DAY - 60)
    assert all(at > before(rt) for at in written), "none of it is 30 days old"
    clock.forward((900 * len(jumps) + 31) * DAY)
    assert all(at <= before(rt) for at in written)


def test_a_corrected_wrong_date_delays_nothing(rt: Runtime, clock: HandClock) -> None:
    at = rt.stamp()
    jump(rt, clock, 900)
    clock.forward(3600)
    jump(rt, clock, -900)
    clock.forward(30 * DAY)
    assert at <= before(rt)
