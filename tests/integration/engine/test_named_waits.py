"""Waits that a network named: kept for the whole profile, never shortened, and ended at once when they are too long."""

from socialpub.db.states import State
from socialpub.providers.responses import Throttled
from tests.support.appliance import accept, message_of, state_of
from tests.support.drain import drain


def test_a_limit_under_the_networks_own_name_keeps_the_others_of_the_profile_quiet(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert network.asked == ["create_post"], "the other one does not ask again"
    clock.forward(899)
    drain(rt)
    assert network.asked == ["create_post"]
    drain(rt, clock)
    assert {state_of(rt, first), state_of(rt, other)} == {State.PUBLISHED}


def test_a_wait_that_a_network_named_does_not_count_as_being_down(rt, network, profile, clock):
    network.results["create_post"] = [Throttled("the day is full", retry_after_seconds=25 * 3600)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt, clock)
    assert {state_of(rt, first), state_of(rt, other)} == {State.PUBLISHED}, message_of(rt, other)


def test_a_wait_longer_than_a_day_ends_one_post_and_is_asked_about_again_for_the_others_after_a_day(
    rt, network, profile, clock
):
    network.results["create_post"] = [Throttled("monthly cap", retry_after_seconds=30 * 24 * 3600)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert (state_of(rt, first), state_of(rt, other)) == (State.FAILED, State.QUEUED)
    assert "monthly cap" in message_of(rt, first)
    assert network.asked == ["create_post"]
    clock.forward(86_399)
    drain(rt)
    assert network.asked == ["create_post"], "what a network names is never shortened, up to a day"
    clock.forward(2)
    drain(rt)
    assert state_of(rt, other) is State.PUBLISHED
