"""A clock that is set, and what else counts from a moment."""

import pytest

from socialpub.accounts import profiles, upkeep
from socialpub.db.states import State
from socialpub.providers.base import Published, Wait
from socialpub.providers.responses import NoAnswer, Throttled
from socialpub.publishing.delivery import backfill
from socialpub.worker import reconciler
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain

WEEK = 7 * 86400.0


def test_tokens_are_erased_after_an_hour_though_the_clock_went_back(rt, network, profile, clock):
    def down(*_):
        raise NoAnswer("down")

    network.oauth.revoke = down
    rt.write(profiles.disconnect, profile)
    rt.write(reconciler.beat)
    clock.jump(-WEEK)
    rt.write(reconciler.beat)
    for _ in range(10):
        clock.forward(600)
        upkeep.revoke_disconnected(rt)
    assert rt.reader.value("SELECT access_token FROM profile") is None


def test_an_id_that_is_told_later_is_filled_in_though_the_clock_went_forward(rt, network, profile, clock):
    network.results["create_post"] = [Published(None)]
    told = [None, Published("77")]
    network.fill_in = lambda job: told.pop(0)
    accept(rt, profile)
    drain(rt)
    clock.forward(61)
    backfill.ask(rt)
    clock.jump(WEEK)
    rt.write(reconciler.beat)
    clock.forward(3600)
    backfill.ask(rt)
    assert rt.reader.value("SELECT provider_post_id FROM delivery") == "77"


@pytest.mark.parametrize("seconds", [-5.0, 5e8, 1.7e12, 1e15, float("inf"), float("nan")])
def test_an_absurd_wait_of_a_step_ends_nothing(rt, network, profile, clock, seconds):
    network.results["create_post"] = [Wait(seconds, "X asks to wait")]
    post = accept(rt, profile)
    drain(rt, clock)
    assert state_of(rt, post) is State.PUBLISHED, message_of(rt, post)
    assert network.asked == ["create_post", "create_post"]


@pytest.mark.parametrize("seconds", [5e8, 1.7e12, 1e15])
def test_an_absurd_wait_of_a_revocation_is_stored_for_a_day_at_most(rt, network, profile, clock, seconds):
    def limited(*_):
        raise Throttled("slow down", retry_after_seconds=seconds)

    network.oauth.revoke = limited
    rt.write(profiles.disconnect, profile)
    upkeep.revoke_disconnected(rt)
    until = rt.reader.value("SELECT until FROM not_before")
    assert until is not None
    assert until <= "2026-10-13T09:00:00.000Z"
