"""Waits that a network named: kept for the whole profile, never shortened, and ended at once when they are too long."""

from datetime import timedelta

from socialpub.db.states import State
from socialpub.providers.responses import Throttled
from socialpub.runtime import Runtime
from tests.support.appliance import (
    accept,
    message_of,
    state_of,
)
from tests.support.drain import drain
from tests.support.hand_clock import HandClock
from tests.support.scripted_network import ScriptedNetwork


def test_a_limit_under_the_networks_own_name_keeps_the_others_of_the_profile_quiet(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert network.asked == ["create_post"], "the other one does not ask again"
    clock.forward(899)
    drain(rt)
    assert network.asked == ["create_post"]
    drain(rt, clock)
    assert {state_of(rt, first), state_of(rt, other)} == {State.PUBLISHED}


def test_a_wait_that_a_network_named_does_not_count_as_being_down(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    network.results["create_post"] = [Throttled("the day is full", retry_after_seconds=25 * 3600)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt, clock)
    assert {state_of(rt, first), state_of(rt, other)} == {State.PUBLISHED}, message_of(rt, other)


def test_a_wait_longer_than_a_day_ends_one_post_and_is_asked_about_again_for_the_others_after_a_day(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    network.results["create_post"] = [Throttled("monthly cap", retry_after_seconds=30 * 24 * 3600)]
    first, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert (state_of(rt, first), state_of(rt, other)) == (State.FAILED, State.QUEUED)
    assert network.asked == ["create_post"]
    clock.forward(86_399)
    drain(rt)
    assert network.asked == ["create_post"], "what a network names is never shortened, up to a day"
    clock.forward(2)
    drain(rt)
    assert state_of(rt, other) is State.PUBLISHED


def test_a_rate_limit_clears_the_mark_and_is_never_shortened(
    rt: Runtime, network: ScriptedNetwork, profile: str, clock: HandClock
) -> None:
    network.results["create_post"] = [Throttled("slow down", retry_after_seconds=900)]
    began = clock.now()
    post, other = accept(rt, profile), accept(rt, profile, body="other")
    drain(rt)
    assert network.asked == ["create_post"], "the other one does not ask again"
    drain(rt, clock)
    assert network.jobs[1].now - began >= timedelta(seconds=900)
    assert {state_of(rt, post), state_of(rt, other)} == {State.PUBLISHED}
    assert rt.reader.value("SELECT count(*) FROM delivery WHERE committed_at IS NULL") == 0


def test_a_wait_that_outlasts_the_patience_ends_the_delivery_at_once(
    rt: Runtime, network: ScriptedNetwork, profile: str
) -> None:
    network.results["create_post"] = [Throttled("monthly cap", retry_after_seconds=30 * 24 * 3600)]
    post = accept(rt, profile)
    drain(rt)
    assert state_of(rt, post) is State.FAILED
    assert "monthly cap" in message_of(rt, post)
